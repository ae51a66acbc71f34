"""Histories with several merge bases, merges in all directions, branches of branches."""

import pytest

from tests.merging.conftest import Both, person


def _people(both: Both, branch: str, **values: int) -> None:
    both.put(branch, {"node:Person": {n: person(n, p) for n, p in values.items()}})


def _criss_cross(both: Both) -> None:
    """Two branches that each took what the other had, at the same time."""
    _people(both, "main", a=0, b=0, c=0)
    both.fork("dev")
    both.fork("left")
    both.fork("right")
    _people(both, "main", a=1)
    _people(both, "dev", b=1)
    both.merge("main", "left")
    both.merge("dev", "right")
    # left stands on main, right on dev; now each takes the other's source
    both.merge("dev", "left")
    both.merge("main", "right")
    assert len(both.model.bases([both.model.heads["left"]], [both.model.heads["right"]])) == 2


def test_criss_cross_merge_without_contradiction_has_no_conflict(both: Both) -> None:
    _criss_cross(both)
    _people(both, "left", c=7)
    _people(both, "right", a=5)
    assert both.merge("right", "left") == "merged"
    assert both.merge("left", "right") == "fast_forward"
    both.check("left", "right")


def test_change_reverted_after_a_criss_cross_stays_reverted(both: Both) -> None:
    """With the wrong one of two bases the old value would come back, or be a false conflict."""
    _criss_cross(both)
    _people(both, "right", a=0, b=0)
    assert both.merge("right", "left") == "merged"
    rows = both.model.graph("left")["node:Person"]
    assert (rows["a"]["p"], rows["b"]["p"]) == (0, 0)


def test_contradicting_merge_bases_lose_no_change(both: Both) -> None:
    _people(both, "main", a=0, b=0)
    both.fork("dev")
    both.fork("left")
    both.fork("right")
    _people(both, "main", a=1)
    _people(both, "dev", a=2)
    both.merge("main", "left")
    both.merge("dev", "right")
    assert both.merge("dev", "left", "ours") == "merged"
    assert both.merge("main", "right", "ours") == "merged"
    assert both.merge("right", "left") == "conflict"
    assert both.merge("right", "left", "theirs") == "merged"


def test_a_base_on_a_third_branch_is_found(both: Both) -> None:
    """The best common ancestor may be a commit that neither branch made."""
    _people(both, "main", a=0)
    both.fork("one")
    both.fork("two")
    both.fork("three")
    _people(both, "three", a=1)
    both.merge("three", "one")
    both.merge("three", "two")
    _people(both, "one", a=2)
    assert both.merge("one", "two") == "merged"
    both.graph.branches.delete("three", force=True)
    _people(both, "two", a=3)
    assert both.merge("two", "one") == "fast_forward"
    assert both.merge("one", "main") == "fast_forward"


def test_a_branch_of_a_deleted_branch_still_merges(both: Both) -> None:
    _people(both, "main", a=0)
    both.fork("one")
    _people(both, "one", b=1)
    both.fork("two", "one")
    both.graph.branches.delete("one", force=True)
    _people(both, "main", c=1)
    _people(both, "two", b=2)
    assert both.merge("two") == "merged"
    both.graph.branches.delete("two", force=True)
    both.check("main")


@pytest.mark.full
def test_three_bases_are_merged_one_after_the_other(both: Both) -> None:
    _people(both, "main", a=0, b=0, c=0)
    for name in ("x", "y", "z", "left", "right"):
        both.fork(name)
    for name, change in (("x", {"a": 1}), ("y", {"b": 1}), ("z", {"c": 1})):
        _people(both, name, **change)
    for name in ("x", "y", "z"):
        both.merge(name, "left")
    for name in ("z", "y", "x"):
        both.merge(name, "right")
    assert len(both.model.bases([both.model.heads["left"]], [both.model.heads["right"]])) == 3
    _people(both, "right", a=0)
    _people(both, "left", b=5)
    assert both.merge("right", "left") == "merged"
