"""Concurrent writers and schema applications: one of two gets a conflict, nothing is lost."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.api.handle import Handle
from omnigraph.errors import ClientError, Conflict, OmnigraphError, ReadSetConflict, SchemaViolation, VersionConflict
from omnigraph.testing import graph as new_graph
from tests.evolve.cases import rows_of
from tests.rig.independent_writers import apart, once

BEFORE = "node A { k: String @key  n: I32? }\nnode B { k: String @key }\nedge E: A -> A"
DATA = {"A": [{"k": "a", "n": 1}, {"k": "b", "n": 2}], "B": [{"k": "x"}]}
QUICK = BEFORE.replace("n: I32?", "n: I32?  note: String?")
FILLED = BEFORE.replace("n: I32?", 'n: I64?  lang: String @default("it")')
RANGED = BEFORE.replace("n: I32?", "n: I32?  @range(n, 0..9)")
RENAMED = BEFORE.replace("node A {", 'node C @rename_from("A") {').replace("A -> A", "C -> C")


def elsewhere(graph: Graph) -> Graph:
    """A handle as another process has it: it shares nothing and waits for nobody."""
    line = apart(graph.uri)
    return Graph(Handle(line.store, line))


@contextmanager
def before_effect(graph: Graph, number: int, meanwhile: Callable[[], object]) -> Iterator[None]:
    """Something else happens before the n-th effect of what this handle does."""
    effects, happen = graph._handle.store.effects, once(meanwhile)
    real, count = effects.run, [0]

    def run(kind: Any, target: str, action: Callable[[], Any]) -> Any:
        count[0] += 1
        if count[0] == number:
            happen()
        return real(kind, target, action)

    effects.run = run  # type: ignore[method-assign]
    try:
        yield
    finally:
        del effects.run


def effects_of(source: str) -> int:
    """How many effects an application has."""
    with new_graph(BEFORE, DATA) as graph, graph._handle.store.effects.recording() as seen:
        graph.schema.apply(source)
        return len(seen)


def outcome(act: Callable[[], object]) -> OmnigraphError | None:
    try:
        act()
    except OmnigraphError as error:
        return error
    return None


@pytest.mark.parametrize("source", [QUICK, RANGED, RENAMED], ids=["quick", "ranged", "renamed"])
def test_apply_without_data_rewrite_lands_beside_writers(source: str) -> None:
    for number in range(1, effects_of(source) + 1):
        with new_graph(BEFORE, DATA) as graph:
            other = partial(elsewhere(graph).insert, "A", {"k": "new", "n": 5})
            with before_effect(graph, number, other):
                graph.schema.apply(source)
            assert graph.schema.source == source
            key = "node:C" if source is RENAMED else "node:A"
            assert {k: row["n"] for k, row in rows_of(graph)[key].items()} == {"a": 1, "b": 2, "new": 5}


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.full)])
def test_apply_with_data_rewrite_yields_to_writers(every: int) -> None:
    effects = effects_of(FILLED)
    published = effects - 4  # then the intent goes
    for number in range(1, effects + 1, every):
        with new_graph(BEFORE, DATA) as graph:
            other, late = elsewhere(graph), number > published
            insert = partial(outcome, partial(other.insert, "A", {"k": "new", "n": 5}))
            with before_effect(graph, number, insert):
                error = outcome(partial(graph.schema.apply, FILLED))
            assert isinstance(error, type(None) if late else VersionConflict | ReadSetConflict)
            assert graph.refresh().schema.source == (FILLED if late else BEFORE)
            # Whoever comes late knows the old schema only, is told once, and sees the new one then.
            assert sorted(rows_of(graph)["node:A"]) == ["a", "b"] + ["new"] * (not late)
            other.retry(lambda g: g.upsert("A", {"k": "new", "n": 5}))
            graph.retry(lambda g: g.schema.apply(FILLED))
            assert {row["lang"] for row in rows_of(graph)["node:A"].values()} == {"it"}


def test_apply_keeps_concurrent_maintenance() -> None:
    for number in range(1, effects_of(QUICK) + 1):
        with new_graph(BEFORE, DATA) as graph:
            with before_effect(graph, number, elsewhere(graph).maintenance.ensure_indices):
                graph.schema.apply(QUICK)
            assert graph.table("A").describe_indices()


def test_one_of_two_concurrent_applies_gets_a_conflict() -> None:
    for number in range(1, effects_of(QUICK) + 1):
        with new_graph(BEFORE, DATA) as graph:
            with before_effect(graph, number, partial(elsewhere(graph).schema.apply, RANGED)):
                error = outcome(partial(graph.schema.apply, QUICK))
            assert isinstance(error, ReadSetConflict)
            assert error.member == "schema"
            assert graph.refresh().schema.source == RANGED
            assert len(graph.log()) == 3


def test_concurrently_written_rows_are_validated() -> None:
    for number in range(1, effects_of(RANGED) + 1):
        with new_graph(BEFORE, DATA) as graph:
            other = partial(elsewhere(graph).insert, "A", {"k": "bad", "n": 99})
            with before_effect(graph, number, other):
                error = outcome(partial(graph.schema.apply, RANGED))
            assert isinstance(error, SchemaViolation)
            assert [one["id"] for one in error.violations] == ["bad"]
            assert graph.refresh().schema.source == BEFORE


WRITES: dict[str, Callable[[Graph], object]] = {
    "insert": lambda g: g.insert("A", {"k": "late", "n": 50}),
    "upsert": lambda g: g.upsert("A", {"k": "a", "n": 50}),
    "mutate": lambda g: g.mutate('insert A { k: "late", n: 50 }'),
    "update": lambda g: g.update("A", where='k = "a"', set={"n": 50}),
    "overwrite": lambda g: g.load({"A": [{"k": "late", "n": 50}]}, mode="overwrite"),
}


@pytest.mark.parametrize("number", [2, *(pytest.param(n, marks=pytest.mark.full) for n in (1, 3))])
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(
    "source", [RANGED, pytest.param(RENAMED, marks=pytest.mark.full), FILLED], ids=["ranged", "renamed", "filled"]
)
def test_overtaken_writer_is_checked_against_the_new_schema(name: str, source: str, number: int) -> None:
    with new_graph(BEFORE, DATA) as graph:
        with before_effect(graph, number, partial(elsewhere(graph).schema.apply, source)):
            error = outcome(partial(WRITES[name], graph))
        assert error is None or isinstance(error, ClientError)
        assert graph.refresh().schema.source == source
        rows = rows_of(graph)["node:C" if source is RENAMED else "node:A"]
        landed = any(row["n"] == 50 for row in rows.values())
        assert landed == (error is None)
        assert not (landed and source is not FILLED)
        if source is FILLED:
            assert {row["lang"] for row in rows.values()} == {"it"}


def _apply(graph: Graph, source: str) -> object:
    return graph.schema.apply(source)


@pytest.mark.parametrize("rounds", [2, pytest.param(25, marks=pytest.mark.full)])
def test_many_writers_and_applies_lose_no_row(rounds: int) -> None:
    with new_graph(BEFORE, DATA) as graph:
        kept: list[str] = []
        ended = threading.Event()

        def write(name: int) -> None:
            here, number = omnigraph.open(graph.uri), 0
            while not ended.is_set():
                key, number = f"{name}-{number}", number + 1
                error = outcome(partial(here.insert, "A", {"k": key, "n": 7}))
                if error is None:
                    kept.append(key)
                assert error is None or isinstance(error, Conflict), error

        threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        for one in threads:
            one.start()
        for _ in range(rounds):
            for source in (QUICK, RANGED, BEFORE):
                graph.retry(partial(_apply, source=source))
        ended.set()
        for one in threads:
            one.join()
        rows = rows_of(graph)["node:A"]
        assert set(rows) == {"a", "b", *kept}
        assert all(row["n"] in (1, 2, 7) for row in rows.values())
        assert len([c for c in graph.log() if c.operation == "schema_apply"]) == 3 * rounds
