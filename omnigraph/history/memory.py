"""What a handle has shown its caller: the base of strict writes.

A strict write (update, delete, overwrite) decides on what the caller saw. Owns the content id of
each table as it was last shown. Maintenance since then passes; a logical change is a conflict.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .commit import Commit, TableEntry
from .plan import SameContent, WriteTxn


class Shown:
    """The tables as a handle last showed them; a query or a refresh moves it, a write alone not."""

    def __init__(self, tables: Mapping[str, TableEntry]) -> None:
        self._lock = threading.Lock()
        self._seen = dict(tables)

    def show(self, tables: Mapping[str, TableEntry]) -> None:
        """The caller has seen these tables; a table that is not named was not seen."""
        with self._lock:
            self._seen = {**self._seen, **tables}

    def strict(self, keys: Iterable[str] = ()) -> "Watch":
        """A condition for one write: nothing the caller has not seen happened to these tables."""
        with self._lock:
            seen = {key: self._seen[key] for key in keys if key in self._seen}
        return Watch(tuple(SameContent(key, e.content_id, e.version) for key, e in seen.items()))

    def wrote(self, commit: Commit, watch: "Watch") -> None:
        """Follow one's own write, except where it landed on a change that was never shown."""
        with self._lock:
            for key, entry in commit.tables.items():
                before, base = self._seen.get(key), watch.base.get(key)
                if entry is not None and (before and before.content_id) == base:
                    self._seen[key] = entry


@dataclass(slots=True)
class Watch:
    """A condition of a write that also remembers on which contents it was checked last."""

    same: tuple[SameContent, ...] = ()
    base: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> list[Any]:
        """The watched contents as plain data."""
        return ["watch", [one.to_json() for one in self.same]]

    def check(self, txn: WriteTxn) -> None:
        """Compare content ids with those that were shown."""
        for one in self.same:
            one.check(txn)
        self.base = {key: entry.content_id for key, entry in txn.base.state.tables.items()}
