"""Changed entities: their old and new values, and which properties differ.

Owns the form in which changes are passed on, as aligned Arrow tables and as records. It does not
know how changes are found.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from omnigraph.storage.equality import same_values

Op = Literal["insert", "update", "delete"]
OPS: tuple[Op, ...] = ("insert", "update", "delete")
_ENDS = ("src", "dst")
_PIECE = 4_096  # rows converted to records at a time


@dataclass(frozen=True, slots=True)
class EntityChange:
    """One changed entity. `before` and `after` are its properties, None where it does not exist.

    `changed` names the properties that an update changed; it may include `src` and `dst`.
    """

    kind: str
    type: str
    id: str
    op: Op
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    changed: tuple[str, ...] = ()
    endpoints_before: dict[str, str] | None = None
    endpoints_after: dict[str, str] | None = None

    @property
    def endpoints(self) -> dict[str, str] | None:
        """The endpoints of an edge: the current ones, or the last ones if it was deleted."""
        return self.endpoints_after or self.endpoints_before


@dataclass(frozen=True)
class TableChanges:
    """The changes of one type, each table sorted by id; both `updated` tables are aligned."""

    key: str
    inserted: pa.Table
    before: pa.Table
    after: pa.Table
    deleted: pa.Table

    @property
    def total(self) -> int:
        """The number of changed entities."""
        return int(self.inserted.num_rows + self.after.num_rows + self.deleted.num_rows)

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        return self.total == 0

    @property
    def ids(self) -> pa.Array:
        """The ids of all changed entities."""
        parts = (self.inserted["id"], self.after["id"], self.deleted["id"])
        return pa.concat_arrays([part.combine_chunks() for part in parts])

    @cached_property
    def counts(self) -> dict[Op, int]:
        """The number of changed entities by operation."""
        tables = (self.inserted, self.after, self.deleted)
        return {op: one.num_rows for op, one in zip(OPS, tables, strict=True)}

    def only(self, ops: Sequence[str]) -> "TableChanges":
        """Return only the changes of the given operations."""
        kept = {op: slice(None) if op in ops else slice(0) for op in OPS}
        update = kept["update"]
        return TableChanges(
            self.key,
            self.inserted[kept["insert"]],
            self.before[update],
            self.after[update],
            self.deleted[kept["delete"]],
        )

    def records(self) -> Iterator[EntityChange]:
        """Yield the changes one by one, by id; converts a few thousand rows at a time."""
        found = (self._inserts(), self._updates(), self._deletes())
        yield from _merged([iter(one) for one in found])

    def _inserts(self) -> Iterator[EntityChange]:
        for row in _rows(self.inserted):
            yield _change(self.key, "insert", None, row)

    def _deletes(self) -> Iterator[EntityChange]:
        for row in _rows(self.deleted):
            yield _change(self.key, "delete", row, None)

    def _updates(self) -> Iterator[EntityChange]:
        names = changed_columns(self.before, self.after)
        pairs = zip(_rows(self.before), _rows(self.after), names, strict=True)
        for before, after, changed in pairs:
            yield _change(self.key, "update", before, after, changed)


def changed_columns(before: pa.Table, after: pa.Table) -> list[tuple[str, ...]]:
    """Return, for each pair of aligned rows, the names of the columns that differ."""
    found: list[list[str]] = [[] for _ in range(before.num_rows)]
    for name in before.column_names:
        for at in np.flatnonzero(~same_values(before[name], after[name])):
            found[int(at)].append(name)
    return [tuple(one) for one in found]


def _merged(parts: list[Iterator[EntityChange]]) -> Iterator[EntityChange]:
    """Merge sorted sequences into one; ids are ordered by their UTF-8 bytes, as Arrow sorts."""
    from heapq import merge

    ranks = {op: at for at, op in enumerate(OPS)}
    return merge(*parts, key=lambda one: (one.id.encode(), ranks[one.op]))


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=_PIECE):
        yield from batch.to_pylist()


def _change(
    key: str,
    op: Op,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    changed: tuple[str, ...] = (),
) -> EntityChange:
    kind, _, name = key.partition(":")
    entity = (after or before or {})["id"]
    images = _properties(before, kind), _properties(after, kind)
    ends = (_ends(before), _ends(after)) if kind == "edge" else (None, None)
    return EntityChange(kind, name, entity, op, *images, changed, *ends)


def _properties(row: dict[str, Any] | None, kind: str) -> dict[str, Any] | None:
    hidden = ("id", *_ENDS) if kind == "edge" else ("id",)
    return None if row is None else {n: v for n, v in row.items() if n not in hidden}


def _ends(row: dict[str, Any] | None) -> dict[str, str] | None:
    return None if row is None else {name: row[name] for name in _ENDS}
