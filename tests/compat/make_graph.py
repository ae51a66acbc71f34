"""Builds the graph in `graph-100/` and its expected contents.

Run once per storage format: `python -m tests.compat.make_graph`. A graph that is checked in is
never made again, because it stands for those that users have.
"""

import json
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.history import commit_log
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.values.clock_and_ids import deterministic_ids
from tests.rig.writes import (
    CITY,
    LIVES_IN,
    PERSON,
    append,
    delete,
    overwrite,
    rewrite,
    update,
    upsert,
    write,
    write_long,
)

HERE = Path(__file__).parent / "graph-100"
SCHEMA = """\
node Person { n: I64? }
node City { n: I64? }
edge LivesIn: Person -> City { n: I64? }
"""


def make(root: Path) -> None:
    """Branches, sealed and merged chunks, every kind of write, and a name that is used twice."""
    commit_log.CHUNK_COMMITS, commit_log.MAX_CHUNK_COMMITS = 2, 2 * 8 * 8
    with deterministic_ids(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), seed=100) as clock:
        graph = omnigraph.init(root, SCHEMA)
        line = graph._handle.branch_state
        for n in range(22):
            clock.advance(minutes=1)
            write(line, append({f"p{n:02}": n}), signature=CommitMetadata("ada", f"person {n}"))
        write(line, append({"rome": 1, "oslo": 2}), (CITY,), CommitMetadata("bob"))
        write_long(line, append({"e1": 1, "e2": 2}), (LIVES_IN,), CommitMetadata("bob", "edges"))
        review = graph.branches.create("review/a")
        clock.advance(hours=1)
        write(review._handle.branch_state, delete(["p01", "p02"]), signature=CommitMetadata("cy", "too many"))
        write(review._handle.branch_state, update({"p03": 33}), signature=CommitMetadata("cy"))
        write(review._handle.branch_state, rewrite(), signature=CommitMetadata("cy"))
        write(
            line, upsert({"p04": 44, "q": 1}), (PERSON, CITY), CommitMetadata(idempotency_key="k1", request_hash="r1")
        )
        graph.branches.create("old", commit=graph.refresh().log()[-4].id)
        again = graph.branches.create("again")
        write(again._handle.branch_state, overwrite({"only": 1}))
        graph.branches.delete("again", force=True)
        write(graph.branches.create("again")._handle.branch_state, append({"new": 1}))


def read(root: Path | str) -> dict[str, Any]:
    """Everything that a graph shows, as plain data."""
    graph = omnigraph.open(root, read_only=True)
    return {name: _branch(graph.checkout(name)) for name in graph.branches.names()}


def _branch(graph: Graph) -> dict[str, Any]:
    return {
        "head": graph.head.id,
        "schema": graph.schema.source,
        "log": [_commit(graph, one.id) for one in graph.log()],
    }


def _commit(graph: Graph, commit_id: str) -> dict[str, Any]:
    past = graph.at(commit_id)
    one = past.head
    return {
        "id": one.id,
        "parents": list(one.parents),
        "operation": one.operation,
        "branch": one.branch,
        "actor": one.actor,
        "message": one.message,
        "created_at": one.created_at,
        "published_at": one.published_at,
        "manifest_version": one.manifest_version,
        "key": one.key,
        "changed": sorted(one.tables),
        "rows": {key: _rows(past, key) for key in sorted(past.snapshot.tables)},
    }


def _rows(graph: Graph, key: str) -> str:
    kind, _, name = key.partition(":")
    rows = graph.table(name, kind=kind).to_table(columns=["id", "n"]).to_pylist()
    return " ".join(sorted(f"{row['id']}={row['n']}" for row in rows))


def main() -> int:
    """Write the graph and the expectation, unless they are there."""
    if HERE.exists():
        print(f"{HERE.name} is there already: it is never made again", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "graph")
        make(root)
        HERE.mkdir()
        with tarfile.open(HERE / "graph.tar.gz", "w:gz") as archive:
            archive.add(root, "graph")
        (HERE / "expected.json").write_text(json.dumps(read(root), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
