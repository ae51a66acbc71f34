"""Compare property types by the values that they store.

A migration accepts only types that can hold every old value. A merge also converts numbers value by value, because the
two sides of the merge may have chosen different types. This module reads no data.
"""

from omnigraph.values import PropertyType, ScalarType

# Number types, each with the types that can represent all its values exactly.
_WIDER_TYPES = {
    ScalarType.I32: (ScalarType.I64, ScalarType.F64),
    ScalarType.U32: (ScalarType.U64, ScalarType.I64, ScalarType.F64),
    ScalarType.F32: (ScalarType.F64,),
}


def can_hold_values(new_type: PropertyType, old_type: PropertyType) -> bool:
    """Return whether `new_type` can store all values of `old_type`: it must be the same type or a wider number type.

    Nulls and enum values are not considered; they are checked against the data.
    """
    if old_type.is_list != new_type.is_list or old_type.is_enum != new_type.is_enum:
        return False
    if old_type.scalar is new_type.scalar:
        return old_type.vector_dim == new_type.vector_dim
    return new_type.scalar in _WIDER_TYPES.get(old_type.scalar, ())


def can_convert_values(new_type: PropertyType, old_type: PropertyType) -> bool:
    """Return whether values of one type can be expressed in the other, as far as they fit.

    Properties with the same id and types for which this is false are different properties: both sides of a merge added
    a property with the same name.
    """
    are_numbers = old_type.scalar.is_numeric and new_type.scalar.is_numeric
    return can_hold_values(new_type, old_type) or (are_numbers and old_type.is_list == new_type.is_list)
