"""`Diff`: the result of comparing two states, as entities, as tables, or as counts.

Owns the forms of a diff. Each table is compared when it is first read, and only once.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from omnigraph.boundary import Guarded
from omnigraph.errors import InputError
from omnigraph.errors.conflict import plain_value
from omnigraph.extras import extra
from omnigraph.history.diff import diff_snapshots
from omnigraph.history.entities import OPS, EntityChange, Op, TableChanges
from omnigraph.history.snapshot import Snapshot
from omnigraph.naming import quote_name, require_names

Names = str | Iterable[str] | None
_KINDS = ("node", "edge")
_TEXTS = ("kind", "type", "id", "op")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        ("changed", pa.list_(pa.string())),
        ("before", pa.string()),
        ("after", pa.string()),
        ("src", pa.string()),
        ("dst", pa.string()),
    ]
)


class Found(Guarded):
    """Changes by table, read on first use and cached."""

    def __init__(self, find: Callable[[], Iterator[TableChanges]]) -> None:
        self._find = find

    @cached_property
    def tables(self) -> list[TableChanges]:
        """Every table that changed, in order."""
        return list(self._find())


@dataclass(frozen=True)
class Diff(Guarded):
    """The entities that differ between two states; iterate over `EntityChange` records.

    Records are ordered by type, then by id. A change that was reverted is not a difference, nor is
    anything that only moved data. `from_commit` and `to_commit` are the ids of the two states.
    """

    found: Found
    from_commit: str
    to_commit: str
    types: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    ops: tuple[str, ...] = OPS

    def tables(self) -> Iterator[TableChanges]:
        """Yield the changes as aligned Arrow tables, type by type."""
        for one in self.found.tables:
            kind, _, name = one.key.partition(":")
            wanted = (self.kinds is None or kind in self.kinds) and (
                self.types is None or name in self.types
            )
            kept = one.only(self.ops) if wanted else None
            if kept is not None and not kept.empty:
                yield kept

    def __iter__(self) -> Iterator[EntityChange]:
        for one in self.tables():
            yield from one.records()

    def __len__(self) -> int:
        return sum(one.total for one in self.tables())

    def __bool__(self) -> bool:
        return any(True for _ in self.tables())

    def __repr__(self) -> str:
        told = self.summary()
        counts = ", ".join(f"{told[name]} {name}" for name in ("inserts", "updates", "deletes"))
        return f"<Diff of {self.from_commit} and {self.to_commit}: {counts}>"

    @property
    def inserts(self) -> "Diff":
        """Only the added entities."""
        return replace(self, ops=("insert",))

    @property
    def updates(self) -> "Diff":
        """Only the changed entities."""
        return replace(self, ops=("update",))

    @property
    def deletes(self) -> "Diff":
        """Only the removed entities."""
        return replace(self, ops=("delete",))

    def summary(self) -> dict[str, Any]:
        """Count inserts, updates and deletes, in total and by type."""
        return summed(self.counts())

    def counts(self) -> dict[str, dict[Op, int]]:
        """Count inserts, updates and deletes by table key."""
        return {one.key: dict(one.counts) for one in self.tables()}

    def to_arrow(self) -> pa.Table:
        """Return one row per change; properties before and after are JSON text."""
        rows = [_row(one) for one in self]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def to_pandas(self) -> Any:
        """Return the same as a pandas DataFrame."""
        extra("pandas")
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        from omnigraph.notebook import diff_card

        return diff_card(self, repr(self)[1:-1])


def summed(counts: Mapping[str, Mapping[Op, int]]) -> dict[str, Any]:
    """Add up changes counted by table, in total and by type.

    >>> summed({"node:A": {"insert": 2, "update": 0, "delete": 1}})["inserts"]
    2
    """
    by_type = {key.partition(":")[2]: dict(counts[key]) for key in sorted(counts)}
    total = {op: sum(one[op] for one in by_type.values()) for op in OPS}
    return {**{f"{op}s": count for op, count in total.items()}, "types": by_type}


def compare_snapshots(
    old: Snapshot, new: Snapshot, types: Names = None, kinds: Names = None, ops: Names = None
) -> Diff:
    """Return the difference of two states, optionally of some types, kinds or operations only."""
    known = {key.partition(":")[2] for key in (*old.tables, *new.tables)}
    chosen, sorts = _names(types, known, "type"), _names(kinds, _KINDS, "kind")
    wanted = _names(ops, OPS, "operation")
    named = frozenset(chosen) if chosen is not None else None
    found = Found(lambda: diff_snapshots(old, new, _keys(old, new, named, sorts)))
    return Diff(
        found,
        old.commit_id,
        new.commit_id,
        named,
        frozenset(sorts) if sorts is not None else None,
        OPS if wanted is None else tuple(op for op in OPS if op in wanted),
    )


def _keys(
    old: Snapshot, new: Snapshot, types: frozenset[str] | None, kinds: tuple[str, ...] | None
) -> list[str]:
    """Return the tables to compare; an excluded table is not read, so it cannot be refused."""
    from omnigraph.history.diff import changed_keys

    parts = [(key, *key.split(":", 1)) for key in changed_keys(old, new)]
    return [
        key
        for key, kind, name in parts
        if (types is None or name in types) and (kinds is None or kind in kinds)
    ]


def _names(given: Names, known: Iterable[str], what: str) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(require_names(given, what))
    wrong = [name for name in names if name not in known]
    if wrong:
        valid = ", ".join(sorted(known))
        raise InputError(f"unknown {what} {quote_name(wrong[0])}", reason=f"expected {valid}")
    return names


def _row(one: EntityChange) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(one, name) for name in _TEXTS}
    images = {"before": one.before, "after": one.after}
    texts = {n: None if v is None else json.dumps(plain_value(v)) for n, v in images.items()}
    return {**row, "changed": list(one.changed), **texts, **(one.endpoints or {})}
