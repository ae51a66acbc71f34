"""Builds the graph in `graph-keys/`: writes with idempotency keys of an earlier release.

Run once: `python -m tests.compat.make_keyed_graph`. The archive is never rebuilt; it stands for
the graphs that users have while they upgrade.
"""

import tarfile
import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.values.clock_and_ids import deterministic_ids

HERE = Path(__file__).parent / "graph-keys"
WRITTEN_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SCHEMA = """\
node Person {
  name: String @key
  age: I32?
  score: F64?
  born: Date?
  seen: DateTime?
  tags: [String]?
  level: enum(low, high)?
  place: Vector(2)?
  about: String? @index
}
node City { name: String @key }
edge LivesIn: Person -> City { since: I32? }
"""
RECORDS = {
    "Person": [
        {"name": "ann", "age": 30, "score": 1.5, "born": date(1990, 1, 1), "tags": ["a", "b"]},
        {"name": "bob", "level": "low", "place": [0.5, 1.5], "about": "a long story"},
    ],
    "City": [{"name": "rome"}],
}
STATEMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "insert": ('insert Person { name: $n, age: 3, level: "high", place: [1.0, 2.0] }', {"n": "cyd"}),
    "edge": ('insert LivesIn { from: $a, to: "rome", since: 2020 }', {"a": "ann"}),
    "compare": ("update Person set { age: 31 } where age = 30", {}),
    "and": ("update Person set { score: 2.5 } where name = $n and age > 1", {"n": "ann"}),
    "or-not": ('update Person set { tags: ["x"] } where not (age >= 5 or level = "low")', {}),
    "null": ("update Person set { born: $d } where born is null", {"d": date(2000, 2, 3)}),
    "in": ('update Person set { level: "low" } where name in ["ann", "bob"]', {}),
    "text": ('update Person set { age: null } where about != "b" or about is not null', {}),
    "time": ('update Person set { seen: now() } where name = "ann"', {}),
    "delete": ('delete Person where name = "cyd"', {}),
    "delete-edge": ("delete LivesIn where since = 2020", {}),
}


def repeat_writes(graph: omnigraph.Graph) -> dict[str, bool]:
    """Run every write under its key; return whether each was recognized as a repetition."""
    replayed: dict[str, bool] = {}
    for key, write in _writes(graph).items():
        receipt = write(key)
        replayed[key] = receipt.replayed
    return replayed


def _writes(graph: omnigraph.Graph) -> dict[str, Callable[[str], Any]]:
    def mutate(key: str) -> Any:
        text, params = STATEMENTS[key]
        return graph.mutate(text, params=params, idempotency_key=key)

    return {
        "load": lambda key: graph.load(RECORDS, mode="append", idempotency_key=key),
        **dict.fromkeys(STATEMENTS, mutate),
        "upsert": lambda key: graph.upsert("City", {"name": "oslo"}, idempotency_key=key),
        "transaction": lambda key: _run_transaction(graph, key),
    }


def _run_transaction(graph: omnigraph.Graph, key: str) -> Any:
    with graph.transaction(idempotency_key=key) as transaction:
        transaction.insert("City", {"name": "bern"})
        transaction.mutate('update Person set { age: $a } where name = "ann"', a=40)
    return transaction.receipt


def main() -> None:
    """Write the graph and pack it."""
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, deterministic_ids(WRITTEN_AT, seed=101) as clock:
        graph = omnigraph.init(Path(folder) / "graph", SCHEMA)
        clock.advance(minutes=1)
        assert not any(repeat_writes(graph).values())
        graph.close()
        with tarfile.open(HERE / "graph.tar.gz", "w:gz") as archive:
            archive.add(Path(folder) / "graph", "graph")


if __name__ == "__main__":
    main()
