"""Every pair of actions of two branches on one entity, merged in both directions."""

from itertools import product
from typing import Any

import pytest

from omnigraph.values.table_key import TableKey
from tests.merging.conftest import Both, conflicts, edge, person, stored, told

NEW = ("none", "insert y", "insert z")
OLD = ("none", "update p", "update q", "other p", "delete", "delete, same", "delete, other")
CASES = [(False, *pair) for pair in product(NEW, NEW)] + [(True, *pair) for pair in product(OLD, OLD)]
VALUES = {
    "insert y": (1, "y"),
    "insert z": (1, "z"),
    "update p": (7, "x"),
    "other p": (8, "x"),
    "update q": (0, "w"),
    "delete, same": (0, "x"),
    "delete, other": (5, "v"),
}


def _row(key: str, one: str, p: int, q: str) -> Any:
    if key == "node:Person":
        return person(one, p, q)
    if key == "node:Note":
        return {"p": p, "q": q}
    return edge("a", "b", p, q) if key == "edge:Knows" else edge("n", "a", p, q)


KEYS = (TableKey("node:Person"), TableKey("node:Note"), TableKey("edge:Knows"), TableKey("edge:About"))


def _prepared(both: Both) -> None:
    """A base with an entity of every kind for every case, then what each branch does to it."""
    rows: Any = {key: {} for key in KEYS}
    rows["node:Person"] |= {"a": person("a"), "b": person("b")}
    rows["node:Note"]["n"] = {"p": None, "q": None}
    for at, (there, _, _) in enumerate(CASES):
        for key in KEYS if there else ():
            rows[key][f"e{at:02}"] = _row(key, f"e{at:02}", 0, "x")
    both.put("main", rows)
    both.fork("dev")
    for branch, place in (("main", 1), ("dev", 2)):
        _act(both, branch, [str(case[place]) for case in CASES])


def _act(both: Both, branch: str, actions: list[str]) -> None:
    gone = [f"e{at:02}" for at, action in enumerate(actions) if action.startswith("delete")]
    for key in KEYS:
        both.drop(branch, key, *gone)
    rows: Any = {key: {} for key in KEYS}
    for at, action in enumerate(actions):
        if action in VALUES:
            for key in KEYS:
                rows[key][f"e{at:02}"] = _row(key, f"e{at:02}", *VALUES[action])
    both.put(branch, rows)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Two branches that did everything, before any merge."""
    both = Both(tmp_path_factory.mktemp("merge") / "graph")
    _prepared(both)
    return both


def test_every_pair_of_actions_gives_what_the_model_gives(pair: Both) -> None:
    directions = (("dev", "main"), ("main", "dev"))
    for (source, target), granularity in product(directions, ("property", "entity")):
        expected = pair.model.merge(source, target, by_property=granularity == "property", try_only=True)
        found = pair.graph.merge(source, target, dry_run=True, granularity=granularity)
        assert conflicts(found.conflicts) == told(expected.conflicts)
        kinds = {one.kind for one in found.conflicts}
        assert kinds == {"divergent_insert", "divergent_update", "delete_vs_update"}


def test_conflicts_report_base_and_both_sides(pair: Both) -> None:
    found = pair.graph.merge("dev", dry_run=True).conflicts
    at = CASES.index((True, "update p", "other p"))
    one = next(c for c in found if c.type_name == "Person" and c.entity_id == f"e{at:02}")
    assert (one.base["p"], one.ours["p"], one.theirs["p"], one.changed) == (0, 7, 8, ("p",))
    assert one.message == "changed on both branches: p is 7 on 'main', 8 on 'dev', was 0"
    at = CASES.index((True, "delete", "update q"))
    one = next(c for c in found if c.type_name == "Knows" and c.entity_id == f"e{at:02}")
    assert one.ours is None
    assert one.message == "deleted on 'main', changed on 'dev': q 'x' -> 'w'"


def test_conflicts_are_in_a_stable_order(pair: Both) -> None:
    found = pair.graph.merge("dev", dry_run=True).conflicts
    order = [(c.entity_kind != "node", c.type_name, c.entity_id, c.kind) for c in found]
    assert order == sorted(order)
    assert found == pair.graph.merge("dev", dry_run=True).conflicts


@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize("granularity", ["entity", "property"])
def test_choosing_a_side_resolves_every_conflict(pair: Both, side: str, granularity: str) -> None:
    name = f"{side}-{granularity}"
    pair.fork(name)
    found = pair.graph.merge("dev", name, strategy=side, granularity=granularity)
    expected = pair.model.merge("dev", name, side, by_property=granularity == "property")
    assert (found.outcome, expected.outcome) == ("merged", "merged")
    assert stored(pair.on(name)) == pair.model.graph(name)
    assert found.stats["merged_properties"] == (0 if granularity == "entity" else 16)
    changes = list(found.delta)
    assert len(changes) == found.stats["inserts"] + found.stats["updates"] + found.stats["deletes"]
    again = pair.graph.diff(found.target, found.commit.id)
    assert list(again) == changes


def test_properties_of_one_entity_are_merged_one_by_one(pair: Both) -> None:
    entity = pair.graph.merge("dev", dry_run=True, granularity="entity").conflicts
    by_property = pair.graph.merge("dev", dry_run=True).conflicts
    expected = pair.model.merge("dev", "main", by_property=True, try_only=True)
    assert conflicts(by_property) == told(expected.conflicts)
    assert conflicts(by_property) < conflicts(entity)
