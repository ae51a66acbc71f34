"""Streams, plans and limits through the public entry of the engine."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine import query_limits
from omnigraph.engine import result_stream as streaming
from omnigraph.engine.explain import explain
from omnigraph.engine.operators.project import project
from omnigraph.engine.query_limits import QueryLimits
from omnigraph.engine.run_query import stream_read
from omnigraph.errors import QueryTimeout, ResourceLimitExceeded, UsageError
from omnigraph.lang.query import compile_query
from tests.engine.stored_graph import Small

SCHEMA = """
interface Named { label: String }
node Left implements Named { n: I64 }
node Right implements Named { m: I64 }
edge Next: Left -> Left
"""
MANY = 500


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Small:
    root: Path = tmp_path_factory.mktemp("streams") / "graph"
    left = [{"id": f"l{at:03}", "label": f"left {at}", "n": at} for at in range(MANY)]
    right = [{"id": f"r{at}", "label": f"right {at}", "m": at} for at in range(3)]
    edges = [{"id": f"e{at}", "src": f"l{at:03}", "dst": f"l{at + 1:03}"} for at in range(MANY - 1)]
    return Small(root, SCHEMA, {"node:Left": left, "node:Right": right, "edge:Next": edges})


def streamed(graph: Small, text: str, **params: Any) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    shown = graph.snapshot
    query = compile_query(f"query q() {{ {text} }}", shown.schema.ir.catalog)
    schema, batches = stream_read(shown, query, params)
    return schema, list(batches)


@pytest.mark.parametrize(
    "text",
    [
        "match { $l: Left } return { $l.n, $l.label }",
        "match { $l: Left $l.n > 100 } return { $l }",
        "match { $l: Left $l next $m $m.n < 400 } return { $l.n, $m.n }",
        "match { $x: Named } return { $x.label, $x.id }",
        "match { $l: Left not { $l next $_ } } return { $l.n }",
        "match { $l: Left $r: Right } return { $l.n, $r.m }",
        "match { $l: Left $l.n < 0 } return { $l.n }",
        "match { $l: Left } return { count($l) as n }",
    ],
)
def test_a_stream_has_the_rows_of_the_answer(chain: Small, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BATCH_ROWS", 64)
    schema, batches = streamed(chain, text)
    table = pa.Table.from_batches(batches, schema)
    answer = chain.run(text).table
    assert table.schema == answer.schema
    assert sorted(map(str, table.to_pylist())) == sorted(map(str, answer.to_pylist()))
    assert all(batch.num_rows <= 64 for batch in batches)


def test_a_stream_stops_at_its_limit(chain: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BATCH_ROWS", 7)
    for limit, offset, expected in ((10, 0, 10), (10, 495, 5), (0, 0, 0), (3, 600, 0)):
        text = f"match {{ $l: Left }} return {{ $l.n }} limit {limit} offset {offset}"
        _, batches = streamed(chain, text)
        assert sum(batch.num_rows for batch in batches) == expected


def test_an_ordered_stream_is_in_order(chain: Small) -> None:
    _, batches = streamed(chain, "match { $l: Left } return { $l.n } order { $l.n desc }")
    found = [n for batch in batches for n in batch["l.n"].to_pylist()]
    assert found == sorted(found, reverse=True)


def test_oversized_product_is_rejected_and_the_graph_stays_usable(chain: Small) -> None:
    text = "match { $a: Left $b: Left $c: Left } return { count($a) as n }"
    with pytest.raises(ResourceLimitExceeded) as caught:
        chain.run(text, QueryLimits(memory=1 << 20))
    assert caught.value.limit == 1 << 20
    assert caught.value.actual is not None
    assert chain.rows("match { $a: Left } return { count($a) as n }") == [(MANY,)]


def test_query_over_its_time_limit_ends(chain: Small) -> None:
    with pytest.raises(QueryTimeout) as caught:
        chain.run("match { $a: Left } return { $a.n }", QueryLimits(timeout=1e-9))
    assert caught.value.resource == "query_wall_ms"


class SteppedClock:
    """A clock that runs normally and can be moved forward."""

    def __init__(self) -> None:
        self.added_seconds = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.added_seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteppedClock:
    clock = SteppedClock()
    monkeypatch.setattr(query_limits, "monotonic", clock.monotonic)
    monkeypatch.setattr(streaming, "BATCH_ROWS", 64)
    return clock


def start_stream(graph: Small, text: str) -> Iterator[pa.RecordBatch]:
    query = compile_query(f"query q() {{ {text} }}", graph.snapshot.schema.ir.catalog)
    return stream_read(graph.snapshot, query, {}, limits=QueryLimits(timeout=600))[1]


@pytest.mark.parametrize("order", ["", "order { $l.n }"])
def test_time_in_which_a_stream_is_suspended_does_not_count(chain: Small, clock: SteppedClock, order: str) -> None:
    row_count = 0
    batches = start_stream(chain, f"match {{ $l: Left $l next $m }} return {{ $l.n }} {order}")
    clock.added_seconds += 3600
    for batch in batches:
        row_count += batch.num_rows
        clock.added_seconds += 3600
    assert row_count == MANY - 1


def test_time_in_which_a_stream_works_counts(
    chain: Small, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def project_slowly(*arguments: Any) -> pa.Table:
        clock.added_seconds += 250
        return project(*arguments)

    monkeypatch.setattr(streaming, "project", project_slowly)
    batches = start_stream(chain, "match { $l: Left } return { $l.n }")
    assert [next(batches).num_rows for _ in range(2)] == [64, 64]
    with pytest.raises(QueryTimeout) as caught:
        next(batches)
    assert caught.value.limit == 600_000
    assert caught.value.actual is not None
    assert caught.value.actual >= 750_000


def test_limits_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_TIMEOUT", "2.5")
    monkeypatch.setenv("OMNIGRAPH_QUERY_MEMORY", "1000")
    assert QueryLimits.default() == QueryLimits(2.5, 1000)


def test_explain_shows_estimated_and_actual_rows(chain: Small) -> None:
    shown = chain.snapshot
    text = "query q($n: I64) { match { $l: Left { n: $n } $l next $m } return { $m.n } limit 3 }"
    query = compile_query(text, shown.schema.ir.catalog)
    assert "limit 3" in str(explain(shown, query, {}))
    found = explain(shown, query, {"n": 5}, analyze=True).to_json()
    assert [line.get("rows") for line in found["plan"]][:2] == [1, 1]
    assert found["row_count"] == 1


def test_mutation_is_rejected_as_a_read(chain: Small) -> None:
    text = 'query q() { insert Left { label: "x", n: 1 } }'
    with pytest.raises(UsageError):
        chain.run(text)
