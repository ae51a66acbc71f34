"""Apply patches to stored rows: determine which values change and which rules the new rows violate.

This module defines what a patch may change. It reads only the patched properties and the columns that the affected
rules need, so the cost of a patch does not depend on how many properties its type has. Rows that already have the given
values are omitted. This module writes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Check, EdgeType, NodeType, Range, Unique
from omnigraph.rules.delta import Addresses, Positions, TableDelta, as_single_array
from omnigraph.rules.lookup import Lookup
from omnigraph.rules.row_rules import row_violations
from omnigraph.rules.unique import repeated_records, unique_violations
from omnigraph.rules.violation import Violation
from omnigraph.storage.arrow import table_key
from omnigraph.storage.large_blobs import comparable_rows
from omnigraph.storage.value_equality import same_rows
from omnigraph.storage.wide_rows import take_positions

from .partial_records import Mask, PartialRows

if TYPE_CHECKING:
    from omnigraph.values.table_key import TableKey

_MISSING_HINT = "add new entities with mode 'append' or 'merge'; a patch changes only existing entities"
_ENDPOINT_MEMBERS = {"src": "from", "dst": "to"}


@dataclass(frozen=True, slots=True)
class PatchedTable:
    """The rows in one table that a patch changes.

    `rows` has `id`, the patched columns with their new values, and the other columns that rules read. `row_ids`,
    `addresses` and `input_lines` are aligned with `rows`.
    """

    entity_type: NodeType | EdgeType
    rows: pa.Table
    patched_names: tuple[str, ...]
    row_ids: Positions
    addresses: Addresses
    input_lines: Positions

    @property
    def table_key(self) -> "TableKey":
        """The key of the table."""
        return table_key(self.entity_type)

    def filter(self, is_retained: Mask) -> "PatchedTable":
        """Return the rows that a mask selects."""
        return replace(
            self,
            rows=self.rows.filter(pa.array(is_retained)),
            row_ids=self.row_ids[is_retained],
            addresses=self.addresses[is_retained],
            input_lines=self.input_lines[is_retained],
        )

    def to_delta(self, rows: pa.Table) -> TableDelta:
        """Return the change to the given rows, which may be complete or contain only the columns that rules read."""
        positions = np.arange(rows.num_rows, dtype=np.int64)
        return TableDelta(
            self.table_key, rows, positions, self.row_ids, self.addresses, self.input_lines, from_records=True
        )


def apply_patches(
    patches: Mapping["TableKey", PartialRows], lookup: Lookup, *, limit: int | None
) -> tuple[list[PatchedTable], list[Violation]]:
    """Return the changed rows in each table, and at most `limit` violations."""
    patched_tables: list[PatchedTable] = []
    violations: list[Violation] = []
    for partial_rows in patches.values():
        if not partial_rows.rows.num_rows:
            continue
        patched, table_violations = apply_patch(partial_rows, lookup, limit=limit)
        patched_tables.append(patched)
        violations += table_violations
    return patched_tables, violations[:limit]


def apply_patch(
    partial_rows: PartialRows, lookup: Lookup, *, limit: int | None
) -> tuple[PatchedTable, list[Violation]]:
    """Apply one type's patches to the stored rows."""
    violations = list(islice(_repeated_patches(partial_rows), limit))
    if violations:
        partial_rows = _first_records(partial_rows)
    columns = _columns_to_read(partial_rows.entity_type, partial_rows.patched_names)
    partial_rows, stored_rows, mismatches = _match_stored(partial_rows, lookup, columns, limit)
    patched, is_changed = _apply_values(partial_rows, stored_rows)
    patched = patched.filter(is_changed)
    violations += mismatches
    violations += islice(_broken_rules(patched, lookup), limit)
    return patched, violations[:limit]


def resolve_patch(
    partial_rows: PartialRows, lookup: Lookup, columns: Sequence[str]
) -> tuple[PatchedTable, Mask, list[Violation]]:
    """Return the rows that the records identify, a mask of changed rows, and the violations.

    The returned rows have the given columns and the patched columns. The violations are for records that match no row
    and for edges with different endpoints; no rules are checked here. If several records patch the same row, the row
    appears in the result once for each record.
    """
    read_columns = list(dict.fromkeys([*columns, *partial_rows.patched_names]))
    partial_rows, stored_rows, violations = _match_stored(partial_rows, lookup, read_columns, None)
    patched, is_changed = _apply_values(partial_rows, stored_rows)
    return patched, is_changed, violations


def _match_stored(
    partial_rows: PartialRows, lookup: Lookup, columns: Sequence[str], limit: int | None
) -> tuple[PartialRows, pa.Table, list[Violation]]:
    """Return the records whose rows exist, these rows in the same order, and violations.

    The violations are for records whose row does not exist, and for edges whose endpoints differ from the stored ones.
    """
    stored_rows = lookup.find(
        table_key(partial_rows.entity_type), {"id": partial_rows.ids.unique()}, columns, with_row_ids=True
    )
    match_index = pc.index_in(partial_rows.ids, value_set=as_single_array(stored_rows["id"]))
    is_stored: Mask = pc.is_valid(match_index).to_numpy(zero_copy_only=False)
    violations = list(islice(_missing_rows(partial_rows, ~is_stored), limit))
    if not is_stored.all():
        partial_rows = _filter_records(partial_rows, is_stored)
    stored_rows = take_positions(stored_rows, match_index.drop_null())
    violations += islice(_moved_endpoints(partial_rows, stored_rows), limit)
    return partial_rows, stored_rows, violations


def _broken_rules(patched: PatchedTable, lookup: Lookup) -> Iterator[Violation]:
    """Yield the violations of rules that involve the columns that the patch changes."""
    if not patched.rows.num_rows:
        return
    yield from broken_row_rules(patched)
    unique_type = _with_unique_rules(patched.entity_type, patched.patched_names)
    yield from repeated_records(unique_type, patched.to_delta(patched.rows))
    yield from held_values(patched, lookup)


def broken_row_rules(patched: PatchedTable) -> Iterator[Violation]:
    """Yield violations of the rules for single rows."""
    yield from row_violations(_with_row_rules(patched), patched.rows, patched.input_lines)


def held_values(patched: PatchedTable, lookup: Lookup) -> Iterator[Violation]:
    """Yield violations for rows whose unique values already occur in other stored rows."""
    unique_type = _with_unique_rules(patched.entity_type, patched.patched_names)
    yield from unique_violations(unique_type, patched.to_delta(patched.rows), lookup)


def _repeated_patches(partial_rows: PartialRows) -> Iterator[Violation]:
    """Yield violations for records that patch the same row, because the result would depend on their order."""
    ids = partial_rows.ids
    if len(ids) == len(ids.unique()):
        return
    first_lines: dict[str, int] = {}
    for entity_id, line_number in zip(ids.to_pylist(), partial_rows.input_lines.tolist(), strict=True):
        if entity_id in first_lines:
            yield Violation(
                "key",
                table_key(partial_rows.entity_type),
                entity_id,
                input_line=line_number,
                conflicting_line=first_lines[entity_id],
            )
        first_lines[entity_id] = line_number


def _columns_to_read(entity_type: NodeType | EdgeType, patched_names: Sequence[str]) -> list[str]:
    endpoints = list(_ENDPOINT_MEMBERS) if isinstance(entity_type, EdgeType) else []
    unique_type = _with_unique_rules(entity_type, patched_names)
    rule_columns = [name for rule in unique_type.constraints if isinstance(rule, Unique) for name in rule.columns]
    return list(dict.fromkeys(["id", *endpoints, *patched_names, *rule_columns]))


def _with_unique_rules(entity_type: NodeType | EdgeType, patched_names: Sequence[str]) -> NodeType | EdgeType:
    """Return the type with only the `@unique` rules that the patched columns can break."""
    patched = set(patched_names)
    rules = tuple(
        rule for rule in entity_type.constraints if isinstance(rule, Unique) and not patched.isdisjoint(rule.columns)
    )
    return replace(entity_type, constraints=rules)


def _with_row_rules(patched: PatchedTable) -> NodeType | EdgeType:
    """Return the type with only the patched properties and their row rules, each of which reads one column."""
    entity_type, names = patched.entity_type, set(patched.patched_names)
    properties = tuple(prop for prop in entity_type.properties if prop.name in names)
    rules = tuple(rule for rule in entity_type.constraints if isinstance(rule, Range | Check) and rule.column in names)
    return replace(entity_type, properties=properties, constraints=rules)


def _missing_rows(partial_rows: PartialRows, is_missing: Mask) -> Iterator[Violation]:
    for position in np.flatnonzero(is_missing):
        yield Violation(
            "missing",
            table_key(partial_rows.entity_type),
            partial_rows.ids[int(position)].as_py(),
            input_line=int(partial_rows.input_lines[position]),
            hint=_MISSING_HINT,
        )


def _moved_endpoints(partial_rows: PartialRows, stored_rows: pa.Table) -> Iterator[Violation]:
    """Yield violations for edges whose endpoints in the patch differ from the stored endpoints."""
    if not isinstance(partial_rows.entity_type, EdgeType):
        return
    for column_name, member_name in _ENDPOINT_MEMBERS.items():
        given, stored = as_single_array(partial_rows.rows[column_name]), as_single_array(stored_rows[column_name])
        for position in pc.indices_nonzero(pc.fill_null(pc.not_equal(given, stored), False)).to_pylist():
            reason = f"'{member_name}' is '{stored[position]}' and cannot be changed"
            yield Violation(
                "endpoint",
                table_key(partial_rows.entity_type),
                partial_rows.ids[position].as_py(),
                column_name,
                reason,
                int(partial_rows.input_lines[position]),
                given[position].as_py(),
                hint="delete the edge and insert a new one",
            )


def _first_records(partial_rows: PartialRows) -> PartialRows:
    is_first = np.zeros(len(partial_rows.ids), bool)
    is_first[pc.index_in(partial_rows.ids.unique(), value_set=partial_rows.ids).to_numpy()] = True
    return _filter_records(partial_rows, is_first)


def _filter_records(partial_rows: PartialRows, is_retained: Mask) -> PartialRows:
    return replace(
        partial_rows,
        rows=partial_rows.rows.filter(pa.array(is_retained)),
        input_lines=partial_rows.input_lines[is_retained],
    )


def _apply_values(partial_rows: PartialRows, stored_rows: pa.Table) -> tuple[PatchedTable, Mask]:
    """Return the rows with their new values, and a mask of the rows that change; the inputs must be aligned."""
    is_changed = np.zeros(stored_rows.num_rows, bool)
    new_columns = _new_values(partial_rows, stored_rows)
    if new_columns:
        new_rows, old_rows = pa.table(new_columns), stored_rows.select(list(new_columns))
        is_changed = ~same_rows(comparable_rows(new_rows), comparable_rows(old_rows))
    other_names = [name for name in stored_rows.column_names if name not in new_columns and not name.startswith("_row")]
    patched = PatchedTable(
        partial_rows.entity_type,
        pa.table({**{name: stored_rows[name] for name in other_names}, **new_columns}),
        partial_rows.patched_names,
        stored_rows["_rowid"].to_numpy().astype(np.int64),
        stored_rows["_rowaddr"].to_numpy(),
        partial_rows.input_lines,
    )
    return patched, is_changed


def _new_values(partial_rows: PartialRows, stored_rows: pa.Table) -> dict[str, pa.Array]:
    """Return the new values for each patched column; the records and the stored rows must be aligned."""
    new_columns = {}
    for name in partial_rows.patched_names:
        given = as_single_array(partial_rows.rows[name])
        stored = as_single_array(stored_rows[name]).cast(given.type)
        new_columns[name] = _choose_values(partial_rows.given_mask(name), given, stored)
    return new_columns


def _choose_values(is_given: Mask, given: pa.Array, stored: pa.Array) -> pa.Array:
    """For each row, return the given value if the record contains one, and otherwise the stored value."""
    if is_given.all():
        return given
    positions = np.arange(len(given), dtype=np.int64)
    return pa.concat_arrays([stored, given]).take(pa.array(np.where(is_given, positions + len(given), positions)))
