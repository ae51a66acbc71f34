"""HEAD of a table: the line of attached versions, which only foreign tools ever add to.

Owns what each foreign commit did there, as far as it can be proved. We never commit to HEAD and no
state ever names it, so nothing here can change what a graph shows.
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
FIRST = 1  # where HEAD stays unless somebody else moves it
Effect = Literal["none", "append", "other", "unknown"]


@dataclass(frozen=True, slots=True)
class Step:
    """One attached version: the operation that made it, and what that did to the rows.

    `unknown` is what cannot be read any more, `error` why.
    """

    version: int
    operation: str
    effect: Effect
    error: str | None = None


def unremembering(store: Store) -> Store:
    """The same store, without open tables and remembered objects: it sees what is there now."""
    return replace(store, handles=Handles(), memory=Memory(), session=new_session())


def attached_versions(store: Store, location: str) -> list[int]:
    """The attached versions of a table that are there, oldest first: one listing."""
    names = (one.name.rpartition("/")[2] for one in store.objects.list(f"{location}/_versions"))
    stems = (one.removesuffix(".manifest") for one in names if one.endswith(".manifest"))
    return sorted(_LAST - int(stem) for stem in stems if stem.isdecimal())


def read_steps(store: Store, location: str, after: int, upto: int) -> Iterator[Step]:
    """What the versions above `after` did, up to HEAD."""
    there = set(attached_versions(store, location))
    for version in range(after + 1, upto + 1):
        if version in there:
            yield _step(store, location, version)
        else:
            yield Step(version, "Unknown", "unknown", f"version {version} of HEAD is gone")


def _step(store: Store, location: str, version: int) -> Step:
    try:
        now = store.open(location, version)
        made = now.read_transaction(version)
    except TypeError:  # Lance cannot show a compaction that moved an index along
        return _compared(store, location, version)
    except (OSError, ValueError) as error:
        return Step(version, "Unknown", "unknown", f"version {version} of HEAD: {error}")
    if made is None:
        reason = f"version {version} of HEAD does not tell what made it"
        return Step(version, "Unknown", "unknown", reason)
    name = type(made.operation).__name__
    if name in ("Rewrite", "CreateIndex"):
        return Step(version, name, "none")
    if name == "BaseOperation":  # an operation that Lance has no name for
        return _unnamed(store, location, version)
    return Step(version, name, "append" if name == "Append" else "other")


def _unnamed(store: Store, location: str, version: int) -> Step:
    """Numbers reserved for fragments, if nothing but numbers changed."""
    before, now = (Table(location, store.open(location, one)) for one in (version - 1, version))
    same = _marks(before) == _marks(now) and field_digest(before) == field_digest(now)
    return Step(version, "ReserveFragments", "none") if same else Step(version, "Unknown", "other")


def _marks(table: Table) -> list[Any]:
    return [mark_of(one.metadata) for one in table.dataset.get_fragments()]


def _compared(store: Store, location: str, version: int) -> Step:
    """Compaction, if the rows are the same as before."""
    try:
        before, now = (head_rows(store, location, one) for one in (version - 1, version))
    except (AbsentError, OSError, ValueError) as error:
        return Step(version, "Unknown", "unknown", f"version {version} of HEAD: {error}")
    same = before.schema.equals(now.schema) and digest(before) == digest(now)
    return Step(version, "Rewrite", "none") if same else Step(version, "Unknown", "other")


def head_table(store: Store, location: str, version: int) -> Table:
    """A table as plain tools see it."""
    return Table(location, store.open(location, version))


def head_rows(store: Store, location: str, version: int) -> pa.Table:
    """All rows that plain tools see at an attached version, with blobs as bytes."""
    table = head_table(store, location, version)
    return read(table, table.schema.names)
