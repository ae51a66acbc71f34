"""A small graph with a history, and external writers that know nothing of graphs."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.stage_rows import stage_append
from omnigraph.storage.store import open_store
from omnigraph.values.table_key import TableKey
from tests.cli import conftest as cli

SCHEMA = """
node Person { name: String @key  age: I32?  badge: String? @unique  @range(age, 0..150) }
node City { name: String @key }
edge Knows: Person -> Person @card(0..2)
edge LivesIn: Person -> City
"""
Row = Mapping[str, Any]
shell = cli.omnigraph  # the program, in this process


def fill(graph: Graph) -> None:
    """A few commits on main, a branch and a tag."""
    graph.load({"City": [{"name": "oslo"}], "Person": [{"name": "ada", "age": 36}]}, mode="append")
    graph.load({"Person": [{"name": n, "age": a} for n, a in (("bob", 2), ("cid", 3))]}, mode="append")
    graph.mutate('insert Knows { from: "ada", to: "bob" }')
    graph.maintenance.ensure_indices()
    graph.tag("v1")
    graph.branches.create("side").load({"Person": [{"name": "dan", "age": 4}]}, mode="append")
    graph.mutate('update Person set { age: 37 } where name = "bob"')


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph that every test gets a copy of."""
    place = tmp_path_factory.mktemp("health") / "g"
    fill(omnigraph.init(place, SCHEMA, durability="os"))
    return place


@pytest.fixture
def graph(made: Path, tmp_path: Path) -> Graph:
    shutil.copytree(made, tmp_path / "g")
    return omnigraph.open(tmp_path / "g", durability="os")


def again(graph: Graph) -> Graph:
    """The graph as another process opens it."""
    return omnigraph.open(graph.uri, durability="os")


def path_of(graph: Graph, type_name: str) -> str:
    return str(graph.table(type_name).uri)


def foreign_append(graph: Graph, type_name: str, *rows: Row) -> None:
    """Rows appended by a tool that opens the table by its path."""
    path = path_of(graph, type_name)
    schema = lance.dataset(path).schema
    lance.write_dataset(pa.Table.from_pylist(list(rows), schema=schema), path, mode="append")


def head(graph: Graph, type_name: str) -> lance.LanceDataset:
    """A table as plain tools see it."""
    return lance.dataset(path_of(graph, type_name))


def smuggle(graph: Graph, key: str, rows: Sequence[Row]) -> None:
    """Publish rows that no rule has seen, as a defect of ours would."""

    def prepare(txn: WriteTxn) -> PublishPlan:
        table = txn.table(TableKey(key))
        given = pa.Table.from_pylist([dict(one) for one in rows], schema=table.schema)
        return PublishPlan("smuggled", {TableKey(key): stage_append(txn.store, table, given)})

    publish(graph._handle.branch_state, prepare)


def names(graph: Graph) -> list[str]:
    """Who is there, as a query tells."""
    return sorted(row["p.name"] for row in again(graph).query("match { $p: Person } return { $p.name }"))


def kinds(graph: Graph, **how: Any) -> list[tuple[str, str | None]]:
    return [(one.kind, one.type_key) for one in again(graph).maintenance.check(**how).findings]


def files(graph: Graph) -> dict[str, int]:
    return {one.name: one.size for one in open_store(graph.uri).objects.list("")}


Foreign = Callable[[Graph], object]
