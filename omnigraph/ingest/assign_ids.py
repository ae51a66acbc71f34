"""Entity ids: derived from a key, given by the caller, or generated.

A key always yields the same id. An id that is given together with a key must equal the id derived from that key.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InputError
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR, ordered_key_columns
from omnigraph.values import PropertyType, ScalarType, entity_id, spell_float
from omnigraph.values.clock_and_ids import new_ulid, reserve_ulids

from .columns import FaultCallback

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)
_DIGIT_TRIPLES = _ALPHABET[np.arange(32**3)[:, None] >> np.array([10, 5, 0]) & 31]
_LOW_BITS = 50  # the last ten digits of a ULID, five bits each
_LOW_MASK = (1 << _LOW_BITS) - 1
_ESCAPED_IN_JSON = r'["\\\x00-\x1f]'
_INTEGER_TYPES = {ScalarType.DATE: pa.int32(), ScalarType.DATETIME: pa.int64()}


def key_ids(ir: SchemaIR, entity_type: NodeType | EdgeType, rows: pa.Table, report_fault: FaultCallback) -> pa.Array:
    """Derive the ids of keyed entities; a null or empty key is reported and yields null."""
    key_names = ordered_key_columns(ir, entity_type.name, entity_type.kind)
    key_types = [entity_type.column_type(key_name) for key_name in key_names]
    spelled_columns = [
        spell_column(key_type, rows[key_name]) for key_type, key_name in zip(key_types, key_names, strict=True)
    ]
    entity_ids, is_special = _plain_ids(spelled_columns)
    if not pc.any(is_special).as_py():
        return entity_ids
    return _replace_special_ids(key_names, spelled_columns, entity_ids, is_special, report_fault)


def spell_column(property_type: PropertyType, column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return the canonical spelling of every value in a column."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if property_type.scalar is ScalarType.STRING:
        return column
    if property_type.scalar.is_float:
        is_single = property_type.scalar is ScalarType.F32
        spellings = [
            number if number is None else spell_float(number, single=is_single) for number in column.to_pylist()
        ]
        return pa.array(spellings, pa.string())
    if property_type.scalar in _INTEGER_TYPES:
        column = column.cast(_INTEGER_TYPES[property_type.scalar])
    return column.cast(pa.string())


def given_or_new_ids(supplied_ids: Sequence[object] | pa.Array, report_fault: FaultCallback) -> pa.Array:
    """Return the given ids, with generated ids where none is given; values that are not strings are reported."""
    if isinstance(supplied_ids, pa.Array):
        if (
            _is_string_array(supplied_ids)
            and not supplied_ids.null_count
            and not pc.any(pc.equal(supplied_ids, "")).as_py()
        ):
            return supplied_ids
        supplied_ids = supplied_ids.to_pylist()
    return pa.array(
        [_given_or_new_id(position, supplied_id, report_fault) for position, supplied_id in enumerate(supplied_ids)],
        pa.string(),
    )


def generate_ids(id_count: int) -> pa.Array:
    """Generate increasing ULIDs.

    >>> first, second = generate_ids(2).to_pylist()
    >>> len(first), first < second
    (26, True)
    """
    first_ulid = reserve_ulids(id_count)
    low_parts = (first_ulid & _LOW_MASK) + np.arange(id_count, dtype=np.int64)
    high_parts = [first_ulid >> _LOW_BITS, (first_ulid >> _LOW_BITS) + 1]  # the low bits may overflow once
    high_digits = np.array(
        [[high_part >> 5 * digit_position & 31 for digit_position in range(15, -1, -1)] for high_part in high_parts]
    )
    digits = np.empty((id_count, 26), np.uint8)
    digits[:, :16] = _ALPHABET[high_digits][low_parts >> _LOW_BITS]
    digits[:, 16] = _ALPHABET[low_parts >> 45 & 31]
    for digit_position, shift in ((17, 30), (20, 15), (23, 0)):
        digits[:, digit_position : digit_position + 3] = _DIGIT_TRIPLES[low_parts >> shift & 32767]
    offsets = pa.array(np.arange(0, 26 * id_count + 1, 26, dtype=np.int32))
    return pa.StringArray.from_buffers(id_count, offsets.buffers()[1], pa.py_buffer(digits))


def check_ids_match_keys(
    expected_ids: pa.Array, supplied_ids: Sequence[object] | pa.Array, report_fault: FaultCallback
) -> None:
    """Report given ids that differ from the ids derived from their keys."""
    if isinstance(supplied_ids, pa.Array):
        if _is_string_array(supplied_ids) and expected_ids.equals(supplied_ids):
            return
        supplied_ids = supplied_ids.to_pylist()
    for position, supplied_id in enumerate(supplied_ids):
        if supplied_id is None:
            continue
        expected_id = expected_ids[position].as_py()
        if not isinstance(supplied_id, str):
            report_fault(position, InputError(reason=f"id must be a string, got {type(supplied_id).__name__}"))
        elif expected_id is not None and supplied_id != expected_id:
            reason = f"id '{supplied_id}' does not match its key; expected '{expected_id}'"
            report_fault(position, InputError(reason=reason))


def _given_or_new_id(position: int, supplied_id: object, report_fault: FaultCallback) -> str | None:
    if supplied_id is None:
        return new_ulid()
    if isinstance(supplied_id, str) and supplied_id:
        try:
            supplied_id.encode()
        except UnicodeEncodeError:
            report_fault(position, InputError(reason="id is not valid Unicode"))
            return None
        return supplied_id
    complaint = "must not be empty" if supplied_id == "" else f"must be a string, got {type(supplied_id).__name__}"
    report_fault(position, InputError(reason=f"id {complaint}"))
    return None


def _plain_ids(spelled_columns: Sequence[pa.Array]) -> tuple[pa.Array, pa.Array]:
    """Build all ids without escaping or validation; return them with a mask of the rows that need `entity_id`."""
    if len(spelled_columns) == 1:
        (only_column,) = spelled_columns
        return only_column, pc.or_kleene(pc.is_null(only_column), pc.equal(only_column, ""))
    joined = pc.binary_join_element_wise(*spelled_columns, '","')
    is_special = pc.is_null(joined)
    for spelled_column in spelled_columns:
        is_special = pc.or_kleene(is_special, pc.match_substring_regex(spelled_column, _ESCAPED_IN_JSON))
    return pc.binary_join_element_wise('["', joined, '"]', ""), is_special


def _replace_special_ids(
    key_names: Sequence[str],
    spelled_columns: Sequence[pa.Array],
    entity_ids: pa.Array,
    is_special: pa.Array,
    report_fault: FaultCallback,
) -> pa.Array:
    """Rebuild the ids of the masked rows one by one, and return all ids; a row without a key is reported."""
    string_types = [PropertyType(ScalarType.STRING)] * len(key_names)
    positions = np.flatnonzero(is_special.to_numpy(zero_copy_only=False))
    special_columns = [spelled_column.take(pa.array(positions)).to_pylist() for spelled_column in spelled_columns]
    special_ids: list[str | None] = []
    for position, key_values in zip(positions.tolist(), zip(*special_columns, strict=True), strict=True):
        try:
            special_ids.append(entity_id(string_types, key_values, key_names))
        except InputError as error:
            report_fault(position, error)
            special_ids.append(None)
    return pc.replace_with_mask(entity_ids, is_special, pa.array(special_ids, pa.string()))


def _is_string_array(values: pa.Array) -> bool:
    return bool(pa.types.is_string(values.type))
