"""Compare single-row mutations on a large type with the work that each of them requires in plain Lance.

For each kind of write, prints three times: the lookup, staging and detached commit in plain Lance on the same table;
the same work, followed by the publish that makes it visible; and the complete mutation. The argument is the number of
rows (a million by default).
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import omnigraph
from omnigraph.engine.writes.mutate import run_mutation
from omnigraph.history.branch_state import BranchState
from omnigraph.ingest.load import load
from omnigraph.lang.query import compile_query
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.maintenance.index_maintenance import ensure_indices
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.find_rows import find
from omnigraph.storage.stage_rows import stage_append, stage_change
from omnigraph.storage.table import StagedChange, commit
from omnigraph.values.clock_and_ids import new_ulid
from omnigraph.values.table_key import TableKey

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
node Event { title: String  n: I32? }
"""
ROUNDS = 30
Stage = Callable[[WriteTxn, int], tuple[TableKey, StagedChange]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of write: the statement, and the equivalent work in plain Lance."""

    title: str
    query: str
    stage: Stage


def person(n: int) -> pa.Table:
    """Return a row in the format of the Person table."""
    return pa.table({"id": [f"p{n}"], "age": pa.array([n], pa.int32()), "city": ["x"], "name": [f"p{n}"]})


def append(txn: WriteTxn, n: int) -> tuple[TableKey, StagedChange]:
    """Stage a new row without a lookup."""
    rows = pa.table({"id": [new_ulid()], "n": pa.array([n], pa.int32()), "title": ["t"]})
    return TableKey("node:Event"), stage_append(txn.store, txn.table(TableKey("node:Event")), rows)


def upsert(txn: WriteTxn, n: int) -> tuple[TableKey, StagedChange]:
    """Look up a row by its id, and stage its replacement."""
    table = txn.table(TableKey("node:Person"))
    found = find(table, {"id": pa.array([f"p{n}"])}, ["id"], with_row_ids=True)
    return TableKey("node:Person"), stage_change(
        txn.store,
        table,
        removed_addresses=found["_rowaddr"].to_pylist(),
        replacements=(found["_rowid"].to_pylist(), person(n)),
    )


def update(txn: WriteTxn, n: int) -> tuple[TableKey, StagedChange]:
    """Look up a row with all of its columns, and stage its replacement."""
    table = txn.table(TableKey("node:Person"))
    found = find(table, {"name": pa.array([f"p{n}"])}, table.schema.names, with_row_ids=True)
    return TableKey("node:Person"), stage_change(
        txn.store,
        table,
        removed_addresses=found["_rowaddr"].to_pylist(),
        replacements=(found["_rowid"].to_pylist(), found.select(table.schema.names)),
    )


def delete(txn: WriteTxn, n: int) -> tuple[TableKey, StagedChange]:
    """Look up a row, and stage its deletion."""
    table = txn.table(TableKey("node:Person"))
    found = find(table, {"name": pa.array([f"p{n}"])}, ["id"], with_row_ids=True)
    return TableKey("node:Person"), stage_change(txn.store, table, removed_addresses=found["_rowaddr"].to_pylist())


KINDS = (
    Kind("insert without a key", "insert Event { title: $k, n: 1 }", append),
    Kind("upsert with a key", 'upsert Person { name: $k, age: 1, city: "x" }', upsert),
    Kind("update by key", "update Person set { age: 2 } where name = $k", update),
    Kind("delete by key", "delete Person where name = $k", delete),
)


@dataclass(frozen=True, slots=True)
class WriteTimes:
    """The median milliseconds of a kind of write: staged with Lance, staged and published, and as a mutation."""

    staged: float
    published: float
    mutated: float


def medians(actions: list[Callable[[int], object]], first: int, rounds: int) -> list[float]:
    """Return the median milliseconds of each action. The actions alternate, so noise affects all of them equally."""
    times: list[list[float]] = [[] for _ in actions]
    for n in range(rounds):
        for at, action in enumerate(actions):
            start = time.perf_counter()
            action(first + n * len(actions) + at)
            times[at].append((time.perf_counter() - start) * 1000)
    return [statistics.median(one) for one in times]


def measure(line: BranchState, kind: Kind, query: CompiledQuery, first: int, rounds: int) -> WriteTimes:
    """Measure one kind of write."""

    def bare(n: int) -> None:
        txn = WriteTxn(line.store, line.name, line.last_known(), new_ulid(), 0)
        key, staged = kind.stage(txn, n)
        commit(txn.store, txn.table(key), staged)

    def published(n: int) -> None:
        def prepare(txn: WriteTxn) -> PublishPlan:
            key, staged = kind.stage(txn, n)
            return PublishPlan("bench", {key: staged})

        publish(line, prepare)

    def mutated(n: int) -> None:
        run_mutation(line, query, {"k": f"p{n}"})

    return WriteTimes(*medians([bare, published, mutated], first, rounds))


def measure_all(rows: int, durability: str, rounds: int = ROUNDS) -> Iterator[tuple[str, WriteTimes]]:
    """Create a large graph, then measure every kind of write on it."""
    with tempfile.TemporaryDirectory() as scratch:
        graph = omnigraph.init(Path(scratch) / "g", SCHEMA, durability=durability)  # type: ignore[arg-type]
        line = graph._handle.branch_state
        names = [f"p{n}" for n in range(rows)]
        ages = pa.array([n % 100 for n in range(rows)], pa.int32())
        load(line, {"Person": pa.table({"name": names, "age": ages, "city": ["x"] * rows})}, "append")
        ensure_indices(line)
        for at, kind in enumerate(KINDS):
            text = f"query q($k: String) {{ {kind.query} }}"
            yield kind.title, measure(line, kind, compile_query(text, graph.schema.ir.catalog), at * 1000, rounds)


def main(rows: int, durability: str) -> None:
    """Print the times of every kind of write."""
    print(f"{'durability ' + durability:<24}{'staged':>12}{'published':>15}{'mutate':>13}")
    for title, times in measure_all(rows, durability):
        print(
            f"{title:<24}{times.staged:9.1f} ms{times.published:12.1f} ms{times.mutated:10.1f} ms"
            f"{times.mutated / times.published:10.2f}x published{times.mutated / times.staged:8.2f}x staged"
        )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for mode in ("os", "fsync"):
        main(count, mode)
