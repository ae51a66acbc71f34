"""A graph beside its model: the same commits on both, compared row by row."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.storage.find_rows import read_rows
from omnigraph.values.table_key import TableKey
from tests.model.merge_model import Graph as Rows
from tests.model.merge_model import History, Rules

SCHEMA = """
node Person { name: String @key  p: I32?  q: String?  mail: String? @unique }
node Note { p: I32?  q: String? }
edge Knows: Person -> Person { p: I32?  q: String? }
edge About: Note -> Person { p: I32?  q: String? }
edge Boss: Person -> Person @card(0..1)
"""
KEYS = (
    TableKey("node:Person"),
    TableKey("node:Note"),
    TableKey("edge:Knows"),
    TableKey("edge:About"),
    TableKey("edge:Boss"),
)
RULES = Rules(
    ends={
        "edge:Knows": ("node:Person", "node:Person"),
        "edge:About": ("node:Note", "node:Person"),
        "edge:Boss": ("node:Person", "node:Person"),
    },
    unique={"node:Person": ("mail",)},
    at_most={"edge:Boss": 1},
)


def stored(graph: Graph) -> Rows:
    """All rows of a graph as the model has them."""
    shown = graph.refresh().snapshot
    found: Rows = {}
    for key in KEYS:
        table = shown.table(key)
        rows = read_rows(table, table.schema.names).to_pylist()
        found[key] = {row.pop("id"): row for row in rows}
    return found


class Both:
    """A graph and its model, changed together."""

    def __init__(self, root: Path) -> None:
        self.graph: Any = omnigraph.init(root, SCHEMA, durability="os")
        self.model = History({key: {} for key in KEYS}, RULES)

    def on(self, branch: str) -> Any:
        """A handle on a branch."""
        return self.graph.checkout(branch)

    def fork(self, name: str, source: str = "main") -> None:
        """A new branch on both."""
        self.graph.branches.create(name, from_=source)
        self.model.fork(name, source)

    def put(self, branch: str, rows: Rows) -> None:
        """Write rows on both: one commit."""
        lines = [_line(key, one, row) for key in KEYS for one, row in rows.get(key, {}).items()]
        self.on(branch).load("\n".join(lines).encode(), mode="merge")
        graph = self.model.graph(branch)
        for key, some in rows.items():
            graph[key] |= some
        self.model.commit(branch, graph)

    def drop(self, branch: str, key: str, *ids: str) -> None:
        """Delete entities on both, nodes with their edges."""
        name = key.partition(":")[2]
        with self.on(branch).transaction() as tx:
            for one in ids:
                tx.delete(name, where="id = $one", one=one)
        graph = self.model.graph(branch)
        for one in ids:
            del graph[key][one]
            for edge, nodes in RULES.ends.items():
                for column, node in zip(("src", "dst"), nodes, strict=True):
                    if node == key:
                        graph[edge] = {e: r for e, r in graph[edge].items() if r[column] != one}
        self.model.commit(branch, graph)

    def merge(self, source: str, target: str = "main", side: str | None = None) -> str:
        """Merge on both; outcome, conflicts and content must be the same."""
        expected = self.model.merge(source, target, side)
        found = self.graph.merge(source, target, strategy=side, dry_run=True)
        assert conflicts(found.conflicts) == told(expected.conflicts)
        assert found.outcome == expected.outcome
        if found:
            self.graph.merge(source, target, strategy=side)
            assert stored(self.on(target)) == self.model.graph(target)
            assert self.graph.merge(source, target).outcome == "already_up_to_date"
        return str(found.outcome)

    def check(self, *branches: str) -> None:
        """Branches hold what the model says."""
        for one in branches:
            assert stored(self.on(one)) == self.model.graph(one)


def conflicts(found: Any) -> set[tuple[str, ...]]:
    """Conflicts as the model tells them; which holder of a value is named does not matter."""
    return {(one.kind, f"{one.entity_kind}:{one.type_name}", _named(one.kind, one.entity_id)) for one in found}


def told(found: Any) -> set[tuple[str, ...]]:
    """Conflicts of the model in the same form."""
    return {(kind, key, _named(kind, one)) for kind, key, one in found}


def _named(kind: str, entity: str) -> str:
    return "" if kind == "unique_violation" else entity


def person(name: str, p: int | None = None, q: str | None = None, mail: str | None = None) -> Any:
    """The row of a person."""
    return {"name": name, "p": p, "q": q, "mail": mail}


def edge(src: str, dst: str, p: int | None = None, q: str | None = None) -> Any:
    """The row of an edge that has properties."""
    return {"src": src, "dst": dst, "p": p, "q": q}


def _line(key: str, one: str, row: Any) -> str:
    kind, _, name = key.partition(":")
    values = {n: v for n, v in row.items() if n not in ("src", "dst") and v is not None}
    if kind == "edge":
        ends = {"from": row["src"], "to": row["dst"]}
        return json.dumps({"edge": name, **ends, "data": {"id": one, **values}})
    given = values if name == "Person" else {"id": one, **values}
    return json.dumps({"type": name, "data": given})


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    """A graph beside its model, both empty."""
    made = Both(tmp_path / "graph")
    yield made
    made.graph.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[str], Both]:
    """Makes such pairs."""
    return lambda name: Both(tmp_path / name)
