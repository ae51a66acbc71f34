"""An idempotency key names one request; a different request under it is rejected."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.api.results.receipt import Receipt
from omnigraph.errors import InputError
from tests.rig.graph_hosts import GraphHost

SCHEMA = "node Person { name: String @key  born: Date?  tags: [String]? }"
ANN: dict[str, Any] = {"name": "ann", "born": date(1990, 1, 1), "tags": ["x"]}


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    return graphs.init(SCHEMA)


def test_key_reused_with_other_records_is_rejected(graph: Graph) -> None:
    first = graph.insert("Person", ANN, idempotency_key="k")
    again = graph.insert("Person", dict(reversed(ANN.items())), idempotency_key="k")
    assert again.replayed
    assert again.commit == first.commit
    with pytest.raises(InputError, match="a different request"):
        graph.insert("Person", {**ANN, "name": "bob"}, idempotency_key="k")
    with pytest.raises(InputError, match="a different request"):
        graph.load({"Person": [{"name": "bob"}]}, mode="append", idempotency_key="k")
    assert len(graph.nodes("Person").result()) == 1


def test_key_reused_with_other_transaction_steps_is_rejected(graph: Graph) -> None:
    def run(name: str, text: str) -> bool:
        with graph.transaction(idempotency_key="k") as tx:
            tx.upsert("Person", {"name": name})
            tx.mutate(text, n="cyd")
        assert tx.receipt is not None
        return tx.receipt.replayed

    insert = "insert Person { name: $n }"
    assert not run("ann", insert)
    assert run("ann", insert)
    with pytest.raises(InputError, match="a different request"):
        run("bob", insert)
    with pytest.raises(InputError, match="a different request"):
        run("ann", "delete Person where name = $n")
    assert len(graph.nodes("Person").result()) == 2


def test_file_and_frame_loads_are_matched_by_key_alone(graph: Graph, tmp_path: Path) -> None:
    line = '{"type": "Person", "data": {"name": "ann"}}\n'
    (tmp_path / "a.ndjson").write_text(line)
    (tmp_path / "b.ndjson").write_text(line)
    graph.load(tmp_path / "a.ndjson", mode="append", idempotency_key="k")
    again = graph.load(tmp_path / "b.ndjson", mode="append", idempotency_key="k")
    assert isinstance(again, Receipt)
    assert again.replayed
    assert len(graph.nodes("Person").result()) == 1


def test_a_repeated_transaction_of_inserts_is_recognised(graph: Graph) -> None:
    def run(name: str) -> Receipt:
        with graph.transaction(idempotency_key="k") as tx:
            tx.insert("Person", {"name": name})
            tx.insert("Person", {"name": f"{name}-2"})
        assert tx.receipt is not None
        return tx.receipt

    first, again = run("ann"), run("ann")
    assert again.replayed
    assert again.commit == first.commit
    with pytest.raises(InputError, match="a different request"):
        run("bob")
    assert graph.nodes("Person").ids() == ["ann", "ann-2"]


def test_a_repeated_write_returns_the_counts_and_ids_of_the_first(graph: Graph) -> None:
    graph.insert("Person", {"name": "zoe", "tags": ["a"]}, {"name": "yan"})

    def transact(key: str) -> Receipt:
        with graph.transaction(idempotency_key=key) as tx:
            tx.insert("Person", {"name": "dee"})
            tx.update("Person", where="name = 'zoe'", set={"tags": ["b"]})
        assert tx.receipt is not None
        return tx.receipt

    def add(key: str) -> Receipt:
        return graph.insert("Person", {"name": "bob"}, {"name": "ann"}, idempotency_key=key)

    def change(key: str) -> Receipt:
        return graph.update("Person", where="name = 'zoe'", set={"tags": ["c"]}, idempotency_key=key)

    def replace(key: str) -> Receipt:
        return graph.upsert("Person", {"name": "zoe", "tags": ["d"]}, {"name": "new"}, idempotency_key=key)

    def remove(key: str) -> Receipt:
        return graph.delete("Person", where="name = 'yan'", idempotency_key=key)

    for number, write in enumerate((transact, add, change, replace, remove)):
        first, again = write(f"k{number}"), write(f"k{number}")
        assert (first.replayed, again.replayed) == (False, True)
        assert (again.commit_id, again.total) == (first.commit_id, first.total), write.__name__
        assert (again.nodes, again.ids) == (first.nodes, first.ids), write.__name__


def test_a_repeated_write_returns_no_counts_if_its_commit_was_removed(graph: Graph) -> None:
    text = "insert Person { name: $n }"
    first = graph.mutate(text, n="ann", idempotency_key="k")
    graph.update("Person", where="name = 'ann'", set={"tags": ["x"]})
    graph.maintenance.cleanup(keep=1, grace="0s", confirm=True)
    again = graph.mutate(text, n="ann", idempotency_key="k")
    assert (again.replayed, again.commit_id, again.nodes) == (True, first.commit_id, {})


def test_request_hash_covers_the_whole_of_long_vectors(tmp_path: Path) -> None:
    import numpy as np

    graph = omnigraph.init(tmp_path / "g", "node Doc { name: String @key  v: Vector(3000) }")
    text = "query q($v: Vector(3000)) { insert Doc { name: 'a', v: $v } }".replace("'", '"')
    one = np.zeros(3000, np.float32)
    other = one.copy()
    other[1500] = 1.0
    graph.mutate(text, v=one, idempotency_key="k")
    assert graph.mutate(text, v=one.copy(), idempotency_key="k").replayed
    with pytest.raises(InputError, match="a different request"):
        graph.mutate(text, v=other, idempotency_key="k")


def test_failed_load_keeps_a_branch_with_commits_of_others(graph: Graph) -> None:
    def records() -> Any:
        graph.checkout("side").insert("Person", {"name": "eve"})
        yield {"type": "Person", "data": {"nme": "typo"}}

    with pytest.raises(InputError):
        graph.load(records(), mode="append", branch="side", from_="main")
    assert graph.checkout("side").nodes("Person").ids() == ["eve"]
    with pytest.raises(InputError):
        graph.load(b"{oops", mode="append", branch="other", from_="main")
    assert graph.branches.names() == ["main", "side"]
