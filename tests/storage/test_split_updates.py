"""Updates that change old rows and add new ones: the added rows of a large table get a commit of their own."""

from collections import Counter
from typing import Any

import pytest

from omnigraph import testing
from omnigraph.storage import split_updates

SCHEMA = "node Person { name: String @key  age: I32? }"


def people(start: int, stop: int, age: int) -> list[dict[str, Any]]:
    return [{"name": f"p{number:04}", "age": age} for number in range(start, stop)]


def ages(graph: Any) -> dict[str, int]:
    return {row["name"]: row["age"] for row in graph.nodes("Person").to_dicts()}


def row_facts(graph: Any) -> dict[str, tuple[int, int]]:
    """The row id of each person, and the version in which it was created."""
    dataset = graph.refresh().snapshot.table("node:Person").dataset
    rows = dataset.to_table(columns=["name", "_row_created_at_version"], with_row_id=True).to_pylist()
    return {row["name"]: (row["_rowid"], row["_row_created_at_version"]) for row in rows}


@pytest.mark.parametrize("least_rows", [1, 1 << 40])
def test_changed_rows_keep_their_row_ids_and_added_rows_get_new_ones(
    monkeypatch: pytest.MonkeyPatch, least_rows: int
) -> None:
    monkeypatch.setattr(split_updates, "MIN_SAVED_ROWS_LOCAL", least_rows)
    with testing.graph(SCHEMA) as graph:
        for start in range(0, 60, 20):
            graph.load({"Person": people(start, start + 20, 1)}, mode="append")
        graph.maintenance.ensure_indices()
        before = row_facts(graph)
        with graph._handle.store.effects.recording() as effects:
            graph.load({"Person": people(5, 8, 2) + people(60, 64, 3)}, mode="merge")
        assert Counter(effect.kind for effect in effects)["detach"] == (2 if least_rows == 1 else 1)
        after = row_facts(graph)
        assert ages(graph) == {
            **{person["name"]: person["age"] for person in people(0, 60, 1)},
            **{person["name"]: person["age"] for person in people(5, 8, 2) + people(60, 64, 3)},
        }
        assert {name: after[name] for name in before} == before
        assert len({row_id for row_id, _ in after.values()}) == len(after) == 64
        assert graph.maintenance.check()


def test_changes_at_the_end_of_a_table_are_one_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_updates, "MIN_SAVED_ROWS_LOCAL", 20)
    with testing.graph(SCHEMA) as graph:
        for start in range(0, 60, 20):
            graph.load({"Person": people(start, start + 20, 1)}, mode="append")
        with graph._handle.store.effects.recording() as effects:
            graph.load({"Person": people(45, 48, 2) + people(60, 64, 3)}, mode="merge")
        assert Counter(effect.kind for effect in effects)["detach"] == 1
