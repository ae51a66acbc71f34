"""HEAD of a table: its attached versions, which only external writers ever add to.

Owns what each external commit did there, as far as it can be proved. This package never commits to
HEAD and no manifest names it, so nothing here can change what a graph shows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from .failures import AbsentError
from .find import digest, read
from .store import Handles, Memory, Store, new_session
from .table import Table, field_digest, mark_of

_LAST = (1 << 64) - 1
FIRST = 1  # where HEAD stays unless an external writer moves it
Effect = Literal["none", "append", "other", "unknown"]


@dataclass(frozen=True, slots=True)
class Step:
    """One attached version: the operation that created it, and its effect on the rows.

    The effect is `unknown` if the version can no longer be read; `error` says why.
    """

    version: int
    operation: str
    effect: Effect
    error: str | None = None


def unremembering(store: Store) -> Store:
    """Return the same store with empty caches, so that it sees the current state of the store."""
    return replace(store, handles=Handles(), memory=Memory(), session=new_session())


def attached_versions(store: Store, location: str) -> list[int]:
    """Return the attached versions of a table, oldest first, by one listing."""
    names = (one.name.rpartition("/")[2] for one in store.objects.list(f"{location}/_versions"))
    stems = (name.removesuffix(".manifest") for name in names if name.endswith(".manifest"))
    return sorted(_LAST - int(stem) for stem in stems if stem.isdecimal())


def read_steps(store: Store, location: str, after: int, upto: int) -> Iterator[Step]:
    """Yield what the versions after `known_version` did, up to `last_version`."""
    there = set(attached_versions(store, location))
    for version in range(after + 1, upto + 1):
        if version in there:
            yield _step(store, location, version)
        else:
            error = f"version {version} of HEAD no longer exists"
            yield Step(version, "Unknown", "unknown", error)


def _step(store: Store, location: str, version: int) -> Step:
    try:
        now = store.open(location, version)
        made = now.read_transaction(version)
    except TypeError:  # Lance cannot decode a compaction that remapped an index
        return _compared(store, location, version)
    except (OSError, ValueError) as error:
        return Step(version, "Unknown", "unknown", f"version {version} of HEAD: {error}")
    if made is None:
        reason = f"version {version} of HEAD does not record its transaction"
        return Step(version, "Unknown", "unknown", reason)
    name = type(made.operation).__name__
    if name in ("Rewrite", "CreateIndex"):
        return Step(version, name, "none")
    if name == "BaseOperation":  # an operation that Lance's Python API does not expose
        return _unnamed(store, location, version)
    return Step(version, name, "append" if name == "Append" else "other")


def _unnamed(store: Store, location: str, version: int) -> Step:
    """Classify an unexposed operation: it reserved fragment ids if nothing else changed."""
    before, now = (Table(location, store.open(location, one)) for one in (version - 1, version))
    same = _marks(before) == _marks(now) and field_digest(before) == field_digest(now)
    return Step(version, "ReserveFragments", "none") if same else Step(version, "Unknown", "other")


def _marks(table: Table) -> list[Any]:
    return [mark_of(one.metadata) for one in table.dataset.get_fragments()]


def _compared(store: Store, location: str, version: int) -> Step:
    """Classify an unreadable operation: it was a compaction if the rows are unchanged."""
    try:
        before, now = (head_rows(store, location, one) for one in (version - 1, version))
    except (AbsentError, OSError, ValueError) as error:
        return Step(version, "Unknown", "unknown", f"version {version} of HEAD: {error}")
    same = before.schema.equals(now.schema) and digest(before) == digest(now)
    return Step(version, "Rewrite", "none") if same else Step(version, "Unknown", "other")


def head_table(store: Store, location: str, version: int) -> Table:
    """Open a table as external tools see it."""
    return Table(location, store.open(location, version))


def head_rows(store: Store, location: str, version: int) -> pa.Table:
    """Return all rows that external tools see at an attached version, with blobs as bytes."""
    table = head_table(store, location, version)
    return read(table, table.schema.names)
