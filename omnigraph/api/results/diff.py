"""`Diff`: the result of comparing two states, as entities, as tables, or as counts.

Each table is compared only once, when it is first read.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from omnigraph.api.error_boundary import Guarded
from omnigraph.api.optional_imports import import_optional
from omnigraph.errors import InputError
from omnigraph.errors.conflict import to_json_value
from omnigraph.history.diff import diff_snapshots
from omnigraph.history.entities import OPS, EntityChange, Op, TableChanges
from omnigraph.history.schema_changes import SchemaChange, compare_schemas
from omnigraph.history.snapshot import Snapshot
from omnigraph.records.cached_property import cached_property
from omnigraph.values.name_rules import quote_name, require_names
from omnigraph.values.table_key import TableKey

DiffFilterNames = str | Iterable[str] | None
_ENTITY_KINDS = ("node", "edge")
_TEXT_COLUMNS = ("kind", "type", "id", "op")
DIFF_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXT_COLUMNS),
        ("changed", pa.list_(pa.string())),
        ("before", pa.string()),
        ("after", pa.string()),
        ("src", pa.string()),
        ("dst", pa.string()),
    ]
)


class LazyTableChanges(Guarded):
    """Changes grouped by table, read on first use and cached."""

    def __init__(self, load_changes: Callable[[], Iterator[TableChanges]]) -> None:
        self._load_changes = load_changes

    @cached_property
    def tables(self) -> list[TableChanges]:
        """All changed tables, in key order."""
        return list(self._load_changes())


@dataclass(frozen=True)
class Diff(Guarded):
    """The entities that differ between two states. Iterating over a diff yields `EntityChange` records.

    Records are ordered by type, then by id. Changes that were later reverted are not included, nor is maintenance such
    as compaction. `from_commit` and `to_commit` are the commit ids of the two states. Values from the first state are
    converted to the second state's schema. `schema_change` describes how the schemas differ.
    """

    lazy_changes: LazyTableChanges
    from_commit: str
    to_commit: str
    types: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    ops: tuple[str, ...] = OPS
    schema_change: SchemaChange | None = None

    def tables(self) -> Iterator[TableChanges]:
        """Yield each type's changes as Arrow tables. The old and new versions of updated rows are in the same order."""
        for table_changes in self.lazy_changes.tables:
            entity_kind, type_name = table_changes.key.kind, table_changes.key.type_name
            is_included = (self.kinds is None or entity_kind in self.kinds) and (
                self.types is None or type_name in self.types
            )
            selected_changes = table_changes.select_ops(self.ops) if is_included else None
            if selected_changes is not None and not selected_changes.is_empty:
                yield selected_changes

    def __iter__(self) -> Iterator[EntityChange]:
        for table_changes in self.tables():
            yield from table_changes.records()

    def __len__(self) -> int:
        return sum(table_changes.total for table_changes in self.tables())

    def __bool__(self) -> bool:
        return self.schema_change is not None or any(True for _ in self.tables())

    def __repr__(self) -> str:
        change_counts = self.summary()
        counts_text = ", ".join(
            f"{change_counts[count_name]} {count_name}" for count_name in ("inserts", "updates", "deletes")
        )
        schema_note = "" if self.schema_change is None else ", schema change"
        return f"<Diff of {self.from_commit} and {self.to_commit}: {counts_text}{schema_note}>"

    @property
    def inserts(self) -> "Diff":
        """The same diff, with only the added entities."""
        return replace(self, ops=("insert",), schema_change=None)

    @property
    def updates(self) -> "Diff":
        """The same diff, with only the changed entities."""
        return replace(self, ops=("update",), schema_change=None)

    @property
    def deletes(self) -> "Diff":
        """The same diff, with only the removed entities."""
        return replace(self, ops=("delete",), schema_change=None)

    def summary(self) -> dict[str, Any]:
        """Count inserts, updates and deletes, in total and by type."""
        return sum_change_counts(self.counts())

    def counts(self) -> dict[TableKey, dict[Op, int]]:
        """Count inserts, updates and deletes by table key."""
        return {table_changes.key: dict(table_changes.counts) for table_changes in self.tables()}

    def to_arrow(self) -> pa.Table:
        """Return one row per change. The old and new properties are JSON strings."""
        change_rows = [_change_row(change) for change in self]
        return pa.Table.from_pylist(change_rows, schema=DIFF_SCHEMA)

    def to_pandas(self) -> Any:
        """Return the changes as a pandas DataFrame."""
        import_optional("pandas")
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        from omnigraph.api.results.notebook_cards import diff_card

        return diff_card(self, repr(self)[1:-1], self.summary())


def sum_change_counts(counts: Mapping[TableKey, Mapping[Op, int]]) -> dict[str, Any]:
    """Convert change counts per table to totals and counts per type.

    >>> sum_change_counts({TableKey("node:A"): {"insert": 2, "update": 0, "delete": 1}})["inserts"]
    2
    """
    by_type = {table_key.type_name: dict(counts[table_key]) for table_key in sorted(counts)}
    total_by_op = {op: sum(type_counts[op] for type_counts in by_type.values()) for op in OPS}
    return {**{f"{op}s": count for op, count in total_by_op.items()}, "types": by_type}


def compare_snapshots(
    old_snapshot: Snapshot,
    new_snapshot: Snapshot,
    types: DiffFilterNames = None,
    kinds: DiffFilterNames = None,
    ops: DiffFilterNames = None,
) -> Diff:
    """Return the differences between two states, optionally only for some types, kinds or operations."""
    known_types = {table_key.type_name for table_key in (*old_snapshot.tables, *new_snapshot.tables)}
    type_names = _validate_names(types, known_types, "type")
    kind_names = _validate_names(kinds, _ENTITY_KINDS, "kind")
    op_names = _validate_names(ops, OPS, "operation")
    included_types = frozenset(type_names) if type_names is not None else None
    lazy_changes = LazyTableChanges(
        lambda: diff_snapshots(
            old_snapshot, new_snapshot, _select_table_keys(old_snapshot, new_snapshot, included_types, kind_names)
        )
    )
    return Diff(
        lazy_changes,
        old_snapshot.commit_id,
        new_snapshot.commit_id,
        included_types,
        frozenset(kind_names) if kind_names is not None else None,
        OPS if op_names is None else tuple(op for op in OPS if op in op_names),
        _schema_change(old_snapshot, new_snapshot, type_names, kind_names) if op_names is None else None,
    )


def _schema_change(
    old_snapshot: Snapshot,
    new_snapshot: Snapshot,
    type_names: tuple[str, ...] | None,
    kind_names: tuple[str, ...] | None,
) -> SchemaChange | None:
    """Return the schema differences that affect the selected types."""
    included_kinds = _ENTITY_KINDS if kind_names is None else kind_names
    if type_names is None and kind_names is None:
        return compare_schemas(old_snapshot, new_snapshot)
    included_types = frozenset(
        (table_key.kind, table_key.type_name)
        for table_key in (*old_snapshot.tables, *new_snapshot.tables)
        if table_key.kind in included_kinds and (type_names is None or table_key.type_name in type_names)
    )
    return compare_schemas(old_snapshot, new_snapshot, included_types)


def _select_table_keys(
    old_snapshot: Snapshot,
    new_snapshot: Snapshot,
    included_types: frozenset[str] | None,
    included_kinds: tuple[str, ...] | None,
) -> list[TableKey]:
    """Return the tables to compare. Excluded tables are not read, so they cannot cause errors."""
    from omnigraph.history.diff import changed_table_keys

    return [
        table_key
        for table_key in changed_table_keys(old_snapshot, new_snapshot)
        if (included_types is None or table_key.type_name in included_types)
        and (included_kinds is None or table_key.kind in included_kinds)
    ]


def _validate_names(
    requested_names: DiffFilterNames, valid_names: Iterable[str], option_label: str
) -> tuple[str, ...] | None:
    if requested_names is None:
        return None
    checked_names = tuple(require_names(requested_names, option_label))
    unknown_names = [requested_name for requested_name in checked_names if requested_name not in valid_names]
    if unknown_names:
        valid_text = ", ".join(sorted(valid_names))
        raise InputError(f"unknown {option_label} {quote_name(unknown_names[0])}", reason=f"expected {valid_text}")
    return checked_names


def _change_row(change: EntityChange) -> dict[str, Any]:
    text_fields: dict[str, Any] = {column_name: getattr(change, column_name) for column_name in _TEXT_COLUMNS}
    property_images = {"before": change.before, "after": change.after}
    image_texts = {
        image_name: None if properties is None else json.dumps(to_json_value(properties))
        for image_name, properties in property_images.items()
    }
    return {**text_fields, "changed": list(change.changed), **image_texts, **(change.endpoints or {})}
