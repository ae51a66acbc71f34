"""Random queries return the same rows before and after every kind of maintenance.

Every answer is compared with that of the oracle, in its order. Defects planted once, each found by
the quick run: a fold that leaves a row out, an index segment over fragments that it did not read,
a cleanup that takes a deletion file.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import lance
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.engine.operators import scan
from omnigraph.errors import TypeCheckError
from omnigraph.storage import tail_compaction
from omnigraph.storage.column_index import index_coverage
from omnigraph.values.table_key import TableKey
from tests.model.expected_values import listed, rows_shown
from tests.model.oracle import Oracle
from tests.model.product_view import answer_of
from tests.model.random_graphs import SCHEMA as PLAIN
from tests.model.random_graphs import ndjson, records
from tests.model.random_queries import Writer, Written
from tests.model.test_random_queries import MODES, traversal
from tests.rig.depth import repeats

_MORE = "@index(big) @index(single) @index(born) @index(at) @index(mood) @index(n)"
_LABEL = "@index(label, kind=ngram) @index(label, kind=fulltext)"
SCHEMA = PLAIN.replace("@index(age)", f"@index(age) {_MORE} {_LABEL}")
SCHEMA = SCHEMA.replace("size: U32?", "size: U32? @index") + "node Spare { name: String @key }\n"
COVERED = (0, 50, 100)
GRAPH = 25  # a number that gives six people, two firms and edges of every type
SPARE = {"type": "Spare", "data": {"name": "s"}}
Asked = list[tuple[Written, Any]]


def asked(oracle: Oracle, count: int) -> Iterator[tuple[Written, Any]]:
    """Queries that the checker accepts, and what they give."""
    seed = 0
    while count:
        seed += 1
        query = Writer(Random(seed)).query()
        try:
            found = oracle.query(query.text, query.given)
        except TypeCheckError:
            continue
        count -= 1
        yield query, listed(rows_shown(found.rows))


def made(place: Path, share: int) -> Graph:
    """The graph by a few writes, of which indexes cover a share."""
    graph = omnigraph.init(place, SCHEMA, durability="os")
    lines = [*records(Random(GRAPH)), SPARE]
    nodes, edges = ([one for one in lines if word in one] for word in ("type", "edge"))
    parts = [nodes[::2], [*nodes[1::2], *edges[::2]], edges[1::2]]
    for part in parts:
        graph.load(ndjson(part).encode(), mode="append")
        if share == 50:
            graph.maintenance.ensure_indices()
    graph.mutate('update Person set { n: 5 } where id = "a"')
    again = [one for one in nodes if one["data"]["name"] in ("a", "b")]
    graph.load(ndjson(again).encode(), mode="merge")
    if share == 100:
        graph.maintenance.ensure_indices()
    return graph


def coverage(graph: Graph, key: TableKey = TableKey("node:Person")) -> float:
    """The share of rows that the index of ids covers."""
    table = graph.snapshot.table(key)
    held = index_coverage(table).get("id", frozenset())
    rows = {one.fragment_id: one.count_rows() for one in table.dataset.get_fragments()}
    return float(sum(n for number, n in rows.items() if number in held) / sum(rows.values()))


def folded(graph: Graph) -> None:
    """Small writes that fold, and leave what was there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail_compaction, "MIN_FRAGMENTS", 2)
        patch.setattr(tail_compaction, "MIN_INDEXED_ROWS", 2)
        for _ in range(3):
            graph.mutate('insert Person { name: "new" } insert Firm { name: "new" }')
            graph.mutate('insert In { from: "new", to: "new" }')
            graph.mutate('delete Person where name = "new" delete Firm where name = "new"')
    assert len(graph.snapshot.table(TableKey("node:Person")).dataset.get_fragments()) < 4


def reshaped(graph: Graph) -> None:
    """A column that no query names."""
    text = graph.schema.source.replace("mood: enum", "extra: I64?  filled: I32 @default(3)\nmood: enum")
    assert graph.schema.apply(text)


def repaired(graph: Graph) -> None:
    """Another program indexes one table and appends to another: rows of that one are taken over."""
    lance.dataset(str(graph.table("Person").uri)).create_scalar_index("n", "BTREE")
    place = str(graph.table("Spare").uri)
    rows = pa.Table.from_pylist([{"id": "t", "name": "t"}], schema=lance.dataset(place).schema)
    lance.write_dataset(rows, place, mode="append")
    assert graph.maintenance.repair(confirm=True, force=True).commit_id is not None


def _cleaned(graph: Graph, *, erase: bool) -> None:
    done = graph.maintenance.cleanup(keep=1, grace=0, confirm=True, erase=erase)
    assert done.bytes_removed


UPKEEP: dict[str, Callable[[Graph], object]] = {
    "nothing": lambda graph: graph,
    "ensure_indices": lambda graph: graph.maintenance.ensure_indices(),
    "fold": folded,
    "schema apply": reshaped,
    "cleanup": lambda graph: _cleaned(graph, erase=False),
    "optimize": lambda graph: graph.maintenance.optimize(),
    "repair": repaired,
    "erase": lambda graph: _cleaned(graph, erase=True),
}


def without_new(value: Any) -> Any:
    """Whole entities without the columns that the test adds."""
    if isinstance(value, dict):
        return {name: without_new(one) for name, one in value.items() if name not in ADDED}
    return [without_new(one) for one in value] if isinstance(value, list) else value


ADDED = ("extra", "filled")


def compare(graph: Graph, queries: Asked, after: str) -> None:
    for number, (query, wanted) in enumerate(queries):
        with traversal(MODES[number % 2]):
            _, rows = answer_of(graph, query.text, query.given)
        found = listed(without_new(rows))
        assert found == wanted, f"after {after}:\n{query.text}\n{json.dumps(query.given)}"


def run(place: Path, share: int, count: int) -> None:
    graph = made(place, share)
    assert {0: coverage(graph) == 0, 50: 0 < coverage(graph) < 1, 100: coverage(graph) == 1}[share]
    lines = ndjson([*records(Random(GRAPH)), SPARE])
    queries = list(asked(Oracle.of(SCHEMA, lines), count))
    for name, tend in UPKEEP.items():
        tend(graph)
        graph.refresh()
        compare(graph, queries, name)
        compare(omnigraph.open(graph.uri), queries[:3], f"{name}, opened anew")


@pytest.fixture(autouse=True)
def _from_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "hot_rows", lambda *_: None)  # what is in memory needs no index


@pytest.mark.parametrize("share", COVERED)
def test_queries_return_the_same_rows_after_maintenance(tmp_path: Path, share: int) -> None:
    run(tmp_path / "g", share, 6)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("share", COVERED)
def test_many_queries_return_the_same_rows_after_maintenance(tmp_path: Path, share: int) -> None:
    run(tmp_path / "g", share, repeats(50))
