"""A small graph with a history, and helpers that damage it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage.layout import STAMP_KEY
from tests.rig.writes import SCHEMA, append, delete, update, write

Tree = dict[str, tuple[int, int]]
Rewrite = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Three people on main, one of them gone on `review/a`, in five commits."""
    made = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    write(made._handle.branch_state, append({"ada": 1, "bob": 2}), signature=CommitMetadata("ada", "the first"))
    review = made.branches.create("review/a")
    write(review._handle.branch_state, delete(["bob"]), signature=CommitMetadata("bob"))
    write(review._handle.branch_state, update({"ada": 10}), signature=CommitMetadata("bob"))
    write(made._handle.branch_state, append({"cy": 3}), signature=CommitMetadata("cy"))
    return made.refresh()


def people(graph: Graph) -> dict[str, int]:
    """The people that a handle shows."""
    rows = graph.table("Person").to_table(columns=["id", "n"]).to_pylist()
    return {one["id"]: one["n"] for one in rows}


def tree(root: Path | str) -> Tree:
    """Every file with its size and time: what a writer would have changed."""
    files = (one for one in Path(root).rglob("*") if one.is_file())
    return {str(one): (one.stat().st_size, one.stat().st_mtime_ns) for one in files}


def rewrite_manifest(root: Path | str, change: Rewrite = lambda rows: rows, stamp: str | None = "100") -> None:
    """Publish a manifest by hand, as a release without checksums: other rows or another stamp."""
    place = f"{root}/__manifest"
    table = lance.dataset(place).to_table()
    rows = [row for row in table.to_pylist() if row["object_type"] != "checksum"]
    changed = table.from_pylist(change(rows), schema=table.schema)
    stamped = changed.replace_schema_metadata({} if stamp is None else {STAMP_KEY: stamp})
    lance.write_dataset(stamped, place, mode="overwrite", data_storage_version="2.2")
