"""Warnings about the tables that a commit just wrote, computed without any request.

Kept light, because the first write of every process imports it. A handle does not repeat a warning
about the same table.
"""

from collections.abc import Sequence
from typing import Any

from omnigraph.history.commit import Commit
from omnigraph.history.schemas import read_schema
from omnigraph.history.state import State
from omnigraph.rules.check import type_named
from omnigraph.rules.indexed import indexed_columns, text_columns
from omnigraph.storage.index import covered
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table

from .limits import UNINDEXED, Warned, of_log, of_table


def written_warnings(store: Store, state: State, commit: Commit) -> list[Warned]:
    """Return warnings about fragments and unindexed rows of the written tables, and the log."""
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
            table = Table(entry.location, held)
            left = unindexed_rows(store, state, key, table, [one.metadata for one in fragments])
        found += of_table(uri, key, entry.rows, len(fragments), left)
    return found


def log_length(state: State) -> int:
    """Return the number of commits in the log of a state."""
    return len(state.tail) + sum(one.count for one in state.chunks)


def unindexed_rows(
    store: Store, state: State, key: str, table: Table, fragments: Sequence[Any]
) -> int:
    """Return the rows outside the least complete index of those that the schema requires."""
    catalog = read_schema(store, state.schema).ir.catalog
    known = covered(table)
    one = type_named(catalog, key)
    held = [known.get(name, frozenset()) for name in indexed_columns(one) | text_columns(one)]
    return max(sum(int(f.num_rows) for f in fragments if f.id not in some) for some in held)
