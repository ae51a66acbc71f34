"""An idempotency key names one request: another one under it is refused, never silently dropped."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InputError
from omnigraph.receipt import Receipt

SCHEMA = "node Person { name: String @key  born: Date?  tags: [String]? }"
ANN: dict[str, Any] = {"name": "ann", "born": date(1990, 1, 1), "tags": ["x"]}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", SCHEMA)


def test_other_records_under_a_key_are_refused(graph: Graph) -> None:
    first = graph.insert("Person", ANN, idempotency_key="k")
    again = graph.insert("Person", dict(reversed(ANN.items())), idempotency_key="k")
    assert again.replayed
    assert again.commit == first.commit
    with pytest.raises(InputError, match="another request"):
        graph.insert("Person", {**ANN, "name": "bob"}, idempotency_key="k")
    with pytest.raises(InputError, match="another request"):
        graph.load({"Person": [{"name": "bob"}]}, mode="append", idempotency_key="k")
    assert len(graph.nodes("Person").result()) == 1


def test_other_steps_of_a_transaction_under_a_key_are_refused(graph: Graph) -> None:
    def run(name: str, text: str) -> bool:
        with graph.transaction(idempotency_key="k") as tx:
            tx.upsert("Person", {"name": name})
            tx.mutate(text, n="cyd")
        assert tx.receipt is not None
        return tx.receipt.replayed

    insert = "insert Person { name: $n }"
    assert not run("ann", insert)
    assert run("ann", insert)
    with pytest.raises(InputError, match="another request"):
        run("bob", insert)
    with pytest.raises(InputError, match="another request"):
        run("ann", "delete Person where name = $n")
    assert len(graph.nodes("Person").result()) == 2


def test_a_file_and_a_frame_are_known_by_their_key_alone(graph: Graph, tmp_path: Path) -> None:
    line = '{"type": "Person", "data": {"name": "ann"}}\n'
    (tmp_path / "a.ndjson").write_text(line)
    (tmp_path / "b.ndjson").write_text(line)
    graph.load(tmp_path / "a.ndjson", mode="append", idempotency_key="k")
    again = graph.load(tmp_path / "b.ndjson", mode="append", idempotency_key="k")
    assert isinstance(again, Receipt)
    assert again.replayed
    assert len(graph.nodes("Person").result()) == 1
