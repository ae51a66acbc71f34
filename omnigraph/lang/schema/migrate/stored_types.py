"""Compare property types by the values that they can store.

A migration accepts a new type only if it can hold every old value. A merge also converts numbers one value at a time,
because the two sides may have chosen different types. This module reads no data.
"""

from omnigraph.values import PropertyType, ScalarType

# Number types, each with the types that can represent all of its values exactly.
_WIDER_TYPES = {
    ScalarType.I32: (ScalarType.I64, ScalarType.F64),
    ScalarType.U32: (ScalarType.U64, ScalarType.I64, ScalarType.F64),
    ScalarType.F32: (ScalarType.F64,),
}


def can_hold_values(new_type: PropertyType, old_type: PropertyType) -> bool:
    """Return whether `new_type` is the same as `old_type`, or a wider number type that can hold all of its values.

    Nulls and enum values are ignored here, because they are checked against the data.
    """
    if old_type.is_list != new_type.is_list or old_type.is_enum != new_type.is_enum:
        return False
    if old_type.scalar is new_type.scalar:
        return old_type.vector_dim == new_type.vector_dim
    return new_type.scalar in _WIDER_TYPES.get(old_type.scalar, ())


def can_convert_values(new_type: PropertyType, old_type: PropertyType) -> bool:
    """Return whether every value of `old_type` that fits in `new_type` can be converted to it.

    If two properties share an id but their values cannot be converted, they are different properties: each side of a
    merge added a property with the same name.
    """
    are_numbers = old_type.scalar.is_numeric and new_type.scalar.is_numeric
    return can_hold_values(new_type, old_type) or (are_numbers and old_type.is_list == new_type.is_list)
