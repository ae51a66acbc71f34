"""Measure the CPU time of the first traversals after a load, with and without indexes.

For hops from one node and for lengths of shortest paths, prints the CPU milliseconds of each query on a fresh graph.
The argument is the number of edges (1,000,000 by default).
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph
from omnigraph import Graph

SCHEMA = "node Person { name: String @key }  edge Knows: Person -> Person"
QUESTIONS = {
    "hop": "match { $p: Person { name: $start }  $p knows $q } return { count($q) as n }",
    "path": (
        "match { $p: Person { name: $start }  $q: Person { name: $end }  $w = any shortest $p knows{1,6} $q }"
        " return { length($w) as n }"
    ),
}
SHOWN = 20
ASKED = 200


def load_people(root: Path, edge_count: int) -> Graph:
    """Return a new graph with ten random edges per person."""
    numbers = np.random.default_rng(7)
    people = [f"person-{number:08}" for number in range(edge_count // 10)]
    names = pa.array(people)
    ends = [names.take(pa.array(numbers.integers(0, len(people), edge_count))) for _ in range(2)]
    graph = omnigraph.init(str(root), SCHEMA)
    graph.load(
        {"Person": pa.table({"name": names}), "Knows": pa.table({"src": ends[0], "dst": ends[1]})}, mode="append"
    )
    return graph


def measure(graph: Graph, kind: str, edge_count: int) -> list[float]:
    """Run the queries one after another, and return the CPU milliseconds of each query."""
    choices = np.random.default_rng(11)
    milliseconds = []
    for _ in range(ASKED):
        params = {name: f"person-{choices.integers(edge_count // 10):08}" for name in ("start", "end")}
        if kind == "hop":
            del params["end"]
        started = time.process_time()
        graph.query(QUESTIONS[kind], params=params).to_records()
        milliseconds.append((time.process_time() - started) * 1000)
    return milliseconds


def main(edge_count: int) -> None:
    """Measure both kinds of queries, first on a graph without indexes and then on a graph with indexes."""
    for kind in QUESTIONS:
        for indexed in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["OMNIGRAPH_CACHE_DIR"] = str(Path(folder) / "cache")
                graph = load_people(Path(folder) / "graph", edge_count)
                if indexed:
                    graph.maintenance.ensure_indices()
                costs = measure(graph, kind, edge_count)
            print(f"{kind}, {'with' if indexed else 'without'} indexes: ", end="")
            print(" ".join(f"{cost:.1f}" for cost in costs[:SHOWN]))
            print(
                f"    CPU time: first {SHOWN} queries {sum(costs[:SHOWN]):.0f} ms, "
                f"first {ASKED} queries {sum(costs):.0f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
