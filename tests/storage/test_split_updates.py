"""Large updates are committed in two steps, which must leave the same rows, row ids and search results as one step."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph import testing
from omnigraph.storage import split_updates

SCHEMA = """
node Person {
    name: String @key
    age: I32? @index
    bio: String?
    @index(bio, kind=fulltext)
}
"""
People = list[dict[str, Any]]


def people(start: int, stop: int, age: int) -> People:
    return [{"name": f"p{number:04}", "age": age, "bio": f"person {number} aged{age}"} for number in range(start, stop)]


def ages(graph: Any) -> dict[str, int]:
    return {row["name"]: row["age"] for row in graph.nodes("Person").to_dicts()}


def row_ids(graph: Any) -> dict[str, int]:
    dataset = graph.refresh().snapshot.table("node:Person").dataset
    rows = dataset.to_table(columns=["name"], with_row_id=True).to_pylist()
    return {row["name"]: row["_rowid"] for row in rows}


def names(graph: Any, condition: str) -> list[str]:
    result = graph.query(f"query q() {{ match {{ $p: Person  {condition} }} return {{ $p.name }} }}")
    return sorted(next(iter(row.values())) for row in result.to_dicts())


def fill(graph: Any) -> None:
    for start in range(0, 60, 20):
        graph.load({"Person": people(start, start + 20, 1)}, mode="append")
    graph.maintenance.ensure_indices()


def count_commits(graph: Any, write: Callable[[], object]) -> int:
    with graph._handle.store.effects.recording() as effects:
        write()
    return Counter(effect.kind for effect in effects)["detach"]


ADJACENT, SCATTERED = people(5, 8, 2), [*people(5, 6, 2), *people(25, 26, 2), *people(45, 46, 2)]


@pytest.mark.parametrize("least_rows", [1, 1 << 40])
@pytest.mark.parametrize("changed", [ADJACENT, SCATTERED], ids=["adjacent", "scattered"])
@pytest.mark.parametrize("added", [[], people(60, 64, 3)], ids=["changes", "changes and additions"])
def test_changed_rows_keep_their_row_ids_and_added_rows_get_new_ones(
    monkeypatch: pytest.MonkeyPatch, least_rows: int, changed: People, added: People
) -> None:
    monkeypatch.setattr(split_updates, "MIN_SAVED_ROWS_LOCAL", least_rows)
    with testing.graph(SCHEMA) as graph:
        fill(graph)
        before = row_ids(graph)
        commit_count = count_commits(graph, lambda: graph.load({"Person": changed + added}, mode="merge"))
        assert commit_count == (2 if least_rows == 1 else 1)
        expected = {person["name"]: person["age"] for person in people(0, 60, 1) + changed + added}
        assert ages(graph) == expected
        after = row_ids(graph)
        assert {name: after[name] for name in before} == before
        assert len(set(after.values())) == len(after) == len(expected)
        for age in (1, 2, 3):
            holders = sorted(name for name, value in expected.items() if value == age)
            assert names(graph, f"$p.age = {age}") == holders
            assert names(graph, f'search($p.bio, "aged{age}")') == holders
        assert graph.maintenance.check()


def test_later_writes_apply_after_an_update_in_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_updates, "MIN_SAVED_ROWS_LOCAL", 1)
    with testing.graph(SCHEMA) as graph:
        fill(graph)
        before = row_ids(graph)
        for age in (2, 3):
            graph.load({"Person": [*people(5, 6, age), *people(45, 46, age)]}, mode="merge")
        graph.load({"Person": people(60, 62, 4)}, mode="append")
        graph.maintenance.optimize()
        after = row_ids(graph)
        assert {name: after[name] for name in before} == before
        assert len(set(after.values())) == len(after) == 62
        assert names(graph, "$p.age = 3") == ["p0005", "p0045"]
        assert names(graph, "$p.age = 2") == []
        assert graph.maintenance.check()


def test_updates_that_read_few_row_ids_are_one_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_updates, "MIN_SAVED_ROWS_LOCAL", 21)
    with testing.graph(SCHEMA) as graph:
        fill(graph)
        at_end = people(45, 48, 2) + people(60, 64, 3)
        assert count_commits(graph, lambda: graph.load({"Person": at_end}, mode="merge")) == 1
        assert count_commits(graph, lambda: graph.load({"Person": people(5, 8, 2)}, mode="merge")) == 1
