"""Tasks of the racing merge processes; imported by each of them."""

from typing import Any

import omnigraph
from omnigraph.errors import ConcurrentCommit, ReadSetConflict


def merge_until_done(uri: str, name: str, told: Any) -> None:
    """Merge a branch into main, again after each lost race."""
    graph = omnigraph.open(uri)
    while True:
        try:
            told.put((name, graph.merge(name).outcome))
            break
        except (ReadSetConflict, ConcurrentCommit):
            continue


def write(uri: str, count: int, told: Any) -> None:
    """Add people to main, one commit each."""
    graph = omnigraph.open(uri)
    for at in range(count):
        graph.insert("Person", {"name": f"w{at}"})
    told.put(("writer", "done"))
