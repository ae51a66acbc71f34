"""Limit the total cost of lookups in an edge table. Beyond this limit, neighbor lists are built instead.

Costs are estimated in scanned rows. The estimates depend only on row counts and index coverage, never on measured time,
so the choice is repeatable. Lookups stop before their total cost exceeds the cost of building the lists. Therefore, no
matter how many traversals run, their total cost is at most about twice that of the cheaper alternative: only lookups or
only lists.
"""

import os
from collections.abc import Sequence

from omnigraph.records.frozen import record
from omnigraph.storage.column_index import count_uncovered_rows
from omnigraph.storage.scan import count_rows

from .edge_probe import EdgeTableProbe
from .topology import EdgeTables

# Costs in scanned rows, based on measurements on a local disk with 100,000 to 4,000,000 edges.
_BASE_ROWS = 200_000  # fixed cost of a lookup
_INDEXED_KEY_ROWS = 30_000  # cost of finding one key in an index, unless scanning the indexed rows is cheaper
_KEY_ROWS = 1_000  # cost of resolving the neighbors of one key
_SET_BUILD_SCANS = 8  # building neighbor sets costs as much as scanning all rows this many times
_BAG_BUILD_SCANS = 24  # building neighbor bags costs as much as scanning all rows this many times


@record
class ProbeBudget:
    """Coefficients for the cost of a lookup, and the total cost above which lists are built instead."""

    limit: int
    base_cost: int
    key_cost: int
    key_cost_in_index: int = 0
    indexed_rows: int = 0

    def cost_of_keys(self, key_count: int) -> int:
        """Return the cost of looking up the given number of keys at once."""
        index_cost = min(key_count * self.key_cost_in_index, self.indexed_rows)
        return self.base_cost + index_cost + key_count * self.key_cost


def choose_budget(probes: Sequence[EdgeTableProbe], tables: EdgeTables, *, with_bags: bool) -> ProbeBudget:
    """Return the budget for lookups that run each of these probes for every key."""
    configured_limit = os.environ.get("OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "")
    if configured_limit.isdecimal():
        return ProbeBudget(int(configured_limit), 0, 1)
    table_sizes = {table.location: count_rows(table) for table in (tables.edge, tables.source, tables.target)}
    build_scans = _SET_BUILD_SCANS + (_BAG_BUILD_SCANS if with_bags else 0)
    uncovered_edges = sum(count_uncovered_rows(probe.edge_table, probe.near_column) for probe in probes)
    uncovered_nodes = sum(count_uncovered_rows(probe.far_table, "id") for probe in probes)
    return ProbeBudget(
        limit=build_scans * sum(table_sizes.values()),
        base_cost=_BASE_ROWS * len(probes) + uncovered_edges + uncovered_nodes,
        key_cost=_KEY_ROWS * len(probes),
        key_cost_in_index=_INDEXED_KEY_ROWS * len(probes),
        indexed_rows=table_sizes[tables.edge.location] * len(probes) - uncovered_edges,
    )
