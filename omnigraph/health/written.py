"""What a write that just landed can tell about the tables it touched, without any request.

Light, because every first write of a process loads it. A table that was warned about is not looked
at again by the same handle.
"""

from collections.abc import Sequence
from typing import Any

from omnigraph.history.commit import Commit
from omnigraph.history.state import State
from omnigraph.storage.index import covered
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table

from .limits import UNINDEXED, Warned, of_log, of_table


def written_warnings(store: Store, state: State, commit: Commit) -> list[Warned]:
    """What is beyond its limit: fragments and rows without an index, and the log."""
    uri = store.root.uri
    found = list(of_log(uri, log_length(state)))
    for key in sorted(commit.tables):
        entry = state.tables.get(key)
        held = store.handles.get(entry.location, entry.lance_version) if entry else None
        if entry is None or held is None:
            continue
        fragments = held.get_fragments()
        left = 0
        if entry.rows > UNINDEXED:
            left = unindexed_rows(Table(entry.location, held), [one.metadata for one in fragments])
        found += of_table(uri, key, len(fragments), left)
    return found


def log_length(state: State) -> int:
    """How many commits the log of a state holds."""
    return len(state.tail) + sum(one.count for one in state.chunks)


def unindexed_rows(table: Table, fragments: Sequence[Any]) -> int:
    """Rows outside of the index that covers least; every table is to have one of its ids."""
    known = {"id": frozenset[int](), **covered(table)}
    return max(
        sum(int(one.num_rows) for one in fragments if one.id not in held) for held in known.values()
    )
