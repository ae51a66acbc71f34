"""Partial records of one type, grouped by the columns that they contain.

A record identifies its row by its complete key or by `id`. Omitting a column is different from setting it to null. This
module does not check whether the rows exist.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from omnigraph.errors import InputError, KeyConflict
from omnigraph.lang.schema.catalog import EdgeType, Key, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.rules.delta import Positions, as_single_array
from omnigraph.storage.arrow import table_key
from omnigraph.values.table_key import TableKey

from .edge_endpoints import ENDPOINT_COLUMNS
from .frames import is_frame, take_type_data, to_arrow_table
from .load_limits import load_limits
from .problem import ProblemCollector
from .record_envelope import with_line_number
from .record_intake import Intake

Verb = Literal["upsert", "patch"]
_ENDPOINTS = tuple(ENDPOINT_COLUMNS.values())


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Records with the same columns; `rows` contains their ids and the given columns."""

    rows: pa.Table
    line_numbers: Positions
    ids_generated: bool

    @property
    def ids(self) -> pa.Array:
        """The ids of the records."""
        return as_single_array(self.rows["id"])


@dataclass(frozen=True, slots=True)
class PartialRecords:
    """The records of one type, grouped by the columns that they contain."""

    entity_type: NodeType | EdgeType
    groups: tuple[ColumnGroup, ...]

    @property
    def table_key(self) -> TableKey:
        """The key of the table."""
        return table_key(self.entity_type)

    @property
    def record_count(self) -> int:
        """The number of records."""
        return sum(group.rows.num_rows for group in self.groups)

    @property
    def ids(self) -> list[str]:
        """The ids, in the order of the records."""
        if not self.groups:
            return []
        line_numbers = np.concatenate([group.line_numbers for group in self.groups])
        ids = pa.concat_arrays([group.ids for group in self.groups])
        ordered_ids: list[str] = ids.take(pa.array(np.argsort(line_numbers, kind="stable"))).to_pylist()
        return ordered_ids

    def changed_columns(self, group: ColumnGroup) -> dict[str, pa.Array]:
        """Return the columns of a group that change existing rows: all columns except the id and the key."""
        identity = {"id", *_key_columns(self.entity_type)}
        return {name: as_single_array(group.rows[name]) for name in group.rows.column_names if name not in identity}


def read_partial_records(ir: SchemaIR, type_name: str, data: Any, verb: Verb) -> PartialRecords:
    """Read records, a table or a frame; if there are problems, raise the first one.

    Raises:
        KeyConflict: Two records identify the same row.

    """
    entity_type = resolve_type(ir.catalog, type_name, ignore_case=True)
    problems = ProblemCollector()
    groups = [
        _read_group(ir, entity_type, names, records, verb, problems) for names, records in _split_by_columns(data)
    ]
    problems.raise_first()
    partial_records = PartialRecords(entity_type, tuple(group for group in groups if group.rows.num_rows))
    _reject_repeated_rows(partial_records)
    return partial_records


@dataclass(frozen=True, slots=True)
class _NumberedRecords:
    """A whole table, or records with the same members and their positions in the input."""

    records: list[dict[str, Any]] | pa.Table
    numbers: list[int]


def _split_by_columns(data: Any) -> Iterator[tuple[frozenset[str], _NumberedRecords]]:
    if is_frame(data):
        table = to_arrow_table(data)
        yield frozenset(table.column_names), _NumberedRecords(table, [])
        return
    groups: dict[frozenset[str], _NumberedRecords] = {}
    for number, record in enumerate(data, 1):
        members = _members_of(number, record)
        group = groups.setdefault(frozenset(members), _NumberedRecords([], []))
        group.records.append(members)
        group.numbers.append(number)
    yield from groups.items()


def _members_of(number: int, record: Any) -> dict[str, Any]:
    if isinstance(record, Mapping):
        members = dict(record)
    elif dataclasses.is_dataclass(record) and not isinstance(record, type):
        members = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    else:
        error = InputError(reason=f"expected a dict or a dataclass, got {type(record).__name__}")
        raise with_line_number(error, number)
    if members.get("id") is None:
        members.pop("id", None)
    return members


def _read_group(
    ir: SchemaIR,
    entity_type: NodeType | EdgeType,
    names: frozenset[str],
    group: _NumberedRecords,
    verb: Verb,
    problems: ProblemCollector,
) -> ColumnGroup:
    stored_names = {ENDPOINT_COLUMNS.get(name, name) for name in names} if _is_edge(entity_type) else set(names)
    first_number = group.numbers[0] if group.numbers else 1
    if verb == "patch":
        group = _complete_patches(entity_type, stored_names, group, first_number)
    keeps_key = verb == "upsert" or set(_key_columns(entity_type)) <= stored_names
    narrow_type = _narrow_type(entity_type, stored_names, keeps_key=keeps_key)
    intake = Intake(ir, problems, load_limits())
    buffer = intake.buffer_for(narrow_type)
    buffer.member_names = frozenset({"id", *(prop.name for prop in entity_type.properties)})
    if isinstance(group.records, pa.Table):
        take_type_data(intake, narrow_type, group.records)
    else:
        for number, record in zip(group.numbers, group.records, strict=True):
            take_type_data(intake, narrow_type, [record], number)
    rows = buffer.all_rows()
    rows = rows.drop_columns(list(_ENDPOINTS)) if verb == "patch" and _is_edge(entity_type) else rows
    return ColumnGroup(rows, buffer.line_positions(), buffer.all_ids_generated)


def _complete_patches(
    entity_type: NodeType | EdgeType, stored_names: set[str], group: _NumberedRecords, first_number: int
) -> _NumberedRecords:
    """Check how patches identify their rows; edge patches get empty endpoints, because intake requires endpoints."""
    error = _naming_error(entity_type, stored_names, group)
    if error is not None:
        raise with_line_number(error, first_number)
    absent_endpoints = [name for name in _ENDPOINTS if name not in stored_names] if _is_edge(entity_type) else []
    if isinstance(group.records, pa.Table):
        empty_texts, table = pa.array([""] * group.records.num_rows, pa.string()), group.records
        for endpoint in absent_endpoints:
            table = table.append_column(endpoint, empty_texts)
        return replace(group, records=table)
    return replace(group, records=[{**record, **dict.fromkeys(absent_endpoints, "")} for record in group.records])


def _naming_error(
    entity_type: NodeType | EdgeType, stored_names: set[str], group: _NumberedRecords
) -> InputError | None:
    key_columns = set(_key_columns(entity_type))
    given_endpoints = stored_names & set(_ENDPOINTS) - key_columns if _is_edge(entity_type) else set()
    if given_endpoints:
        reason = f"the endpoints of {entity_type.name} cannot be changed"
        return InputError(reason=reason, hint="delete the edge and insert it again")
    if key_columns and key_columns <= stored_names:
        return None
    key_text = f"({', '.join(sorted(key_columns))})"
    if key_columns & stored_names:
        reason = f"only part of the {entity_type.name} key {key_text} is given"
        return InputError(reason=reason, hint="specify the complete key, or only 'id'")
    has_ids = not isinstance(group.records, pa.Table) or "id" not in stored_names or not group.records["id"].null_count
    if "id" in stored_names and has_ids:
        return None
    key_hint = f"its key {key_text} or " if key_columns else ""
    return InputError(reason=f"patching {entity_type.name} requires {key_hint}'id'")


def _narrow_type(entity_type: NodeType | EdgeType, stored_names: set[str], *, keeps_key: bool) -> NodeType | EdgeType:
    """Return the type with only the given properties and, if rows are identified by their keys, the key properties."""
    key_columns = _key_columns(entity_type) if keeps_key else ()
    read_names = stored_names | set(key_columns)
    return replace(
        entity_type,
        properties=tuple(prop for prop in entity_type.properties if prop.name in read_names),
        constraints=tuple(
            constraint for constraint in entity_type.constraints if isinstance(constraint, Key) and keeps_key
        ),
    )


def _key_columns(entity_type: NodeType | EdgeType) -> tuple[str, ...]:
    return next((constraint.columns for constraint in entity_type.constraints if isinstance(constraint, Key)), ())


def _is_edge(entity_type: NodeType | EdgeType) -> bool:
    return isinstance(entity_type, EdgeType)


def _reject_repeated_rows(partial_records: PartialRecords) -> None:
    first_numbers: dict[str, int] = {}
    for group in partial_records.groups:
        if len(partial_records.groups) == 1 and len(group.ids.unique()) == len(group.ids):
            return
        for number, entity_id in zip(group.line_numbers.tolist(), group.ids.to_pylist(), strict=True):
            if entity_id in first_numbers:
                lines = sorted((number, first_numbers[entity_id]))
                raise KeyConflict(
                    type_key=partial_records.table_key,
                    entity_id=entity_id,
                    line=lines[1],
                    first_input_position=lines[0],
                    hint="include each entity only once",
                )
            first_numbers[entity_id] = number
