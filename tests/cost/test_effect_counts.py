"""Durable effects of every verb on a disk, independent of the length of the history."""

from collections import Counter
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.history import commit_log
from omnigraph.values.clock_and_ids import deterministic_ids
from tests.cost.measurements import add, cost_of_effects, golden, spoken, window
from tests.rig.writes import (
    CITY,
    PERSON,
    SCHEMA,
    TABLES,
    append,
    delete,
    overwrite,
    rewrite,
    update,
    upsert,
    write,
    write_long,
)

KINDS = ("create", "stage", "mark", "index", "detach", "state", "publish", "object", "renew")


def verbs_of(graph: Graph) -> dict[str, object]:
    """Verbs on one graph, in an order in which each has something to do."""
    line, two = graph._handle.branch_state, (PERSON, CITY)
    return {
        "append a row to a table": lambda: write(line, append({"a": 1, "b": 2, "c": 3})),
        "append to two tables": lambda: write(line, append({"d": 1}), two),
        "append to three tables": lambda: write(line, append({"e": 1}), TABLES),
        "upsert two rows, one of them new": lambda: write(line, upsert({"a": 2, "f": 1})),
        "update a row": lambda: write(line, update({"b": 3})),
        "delete a row": lambda: write(line, delete(["c"])),
        "find nothing to delete": lambda: write(line, delete(["nobody"])),
        "rewrite the fragments of a table": lambda: write(line, rewrite()),
        "overwrite a table": lambda: write(line, overwrite({"a": 1})),
        "append under an intent": lambda: write_long(line, append({"g": 1})),
        "create a branch": lambda: graph.branches.create("b"),
        "delete a branch": lambda: graph.branches.delete("b", force=True),
        "open read-only": lambda: omnigraph.open(graph.uri, read_only=True),
    }


def test_effects_of_every_verb_match_the_golden_file(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    effects = graph._handle.store.effects
    lines = [f"make a graph of three tables: {spoken(effects.counts_by_kind(), (*KINDS, 'remove'))}"]
    for title, verb in verbs_of(graph).items():
        with effects.recording() as seen:
            verb()  # type: ignore[operator]
        counts = Counter(one.kind for one in seen)
        lines.append(f"{title}: {spoken(Counter(counts), (*KINDS, 'remove'))}")
    assert lines == golden("effects.txt", lines)


def costs_of(graph: Graph, count: int) -> list[str]:
    """The windows of a long series of publishes."""
    costs = []
    for n in range(count):
        with graph._handle.store.effects.recording() as seen:
            add(graph._handle.branch_state, f"r{n}")
        costs.append(cost_of_effects(seen))
    length = 512 if count > 1000 else 64
    starts = (10, 100, 1000) if count > 1000 else (10, 50)
    return [
        line
        for start in starts
        for line in window(f"{length} publishes from commit {start}", costs[start : start + length])
    ]


def test_write_effects_do_not_grow_with_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 4)
    monkeypatch.setattr(commit_log, "MAX_CHUNK_COMMITS", 4 * 8 * 8)
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    with deterministic_ids():
        lines = costs_of(graph, 114)
    assert lines == golden("effects-small-chunks.txt", lines)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_write_effects_do_not_grow_over_a_thousand_commits(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    with deterministic_ids():
        lines = costs_of(graph, 1512)
    assert lines == golden("effects-windows.txt", lines)
