"""Warnings about the tables that a commit has just written, computed without any storage requests.

This module is kept small because the first write in every process imports it. A graph handle does not repeat a warning
about the same table.
"""

from collections.abc import Sequence
from typing import Any

from omnigraph.history.commit import Commit
from omnigraph.history.schemas import read_schema
from omnigraph.history.state import GraphState
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.rules.declared_indexes import fulltext_indexes, scalar_indexes
from omnigraph.storage.column_index import index_coverage
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table
from omnigraph.values.table_key import TableKey

from .health_thresholds import UNINDEXED, LimitWarning, log_warnings, table_warnings


def commit_warnings(store: Store, state: GraphState, commit: Commit) -> list[LimitWarning]:
    """Return warnings about the log, and about fragments and unindexed rows in the written tables."""
    uri = store.root.uri
    warnings = list(log_warnings(uri, count_log_commits(state)))
    for type_key in sorted(commit.tables):
        entry = state.tables.get(type_key)
        dataset = store.dataset_cache.get(entry.location, entry.lance_version) if entry else None
        if entry is None or dataset is None:
            continue
        fragments = dataset.get_fragments()
        unindexed_count = 0
        if entry.row_count > UNINDEXED:
            table = Table(entry.location, dataset)
            unindexed_count = count_unindexed_rows(
                store, state, type_key, table, [fragment.metadata for fragment in fragments]
            )
        warnings += table_warnings(uri, type_key, entry.row_count, len(fragments), unindexed_count)
    return warnings


def count_log_commits(state: GraphState) -> int:
    """Return the number of commits in a state's log."""
    return len(state.tail) + sum(chunk.commit_count for chunk in state.chunks)


def count_unindexed_rows(
    store: Store, state: GraphState, type_key: TableKey, table: Table, fragments: Sequence[Any]
) -> int:
    """Return the number of rows that the least complete of the declared indexes does not cover."""
    catalog = read_schema(store, state.schema).ir.catalog
    coverage = index_coverage(table)
    schema_type = type_for_key(catalog, type_key)
    covered_fragments = [
        coverage.get(column, frozenset()) for column in scalar_indexes(schema_type) | fulltext_indexes(schema_type)
    ]
    return max(
        sum(int(fragment.num_rows) for fragment in fragments if fragment.id not in fragment_ids)
        for fragment_ids in covered_fragments
    )
