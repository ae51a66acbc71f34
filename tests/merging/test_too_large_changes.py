"""A merge whose changes do not fit into an array or into memory fails with a typed error and changes nothing."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import ResourceLimitExceeded
from omnigraph.merging import planner
from omnigraph.testing import graph as new_graph

OVERFLOW = "offset overflow while concatenating arrays, consider casting input from `string` to `large_string` first."
FAILURES = {
    "concatenation": (pa.ArrowInvalid(OVERFLOW), "branch-merge column bytes"),
    "capacity": (pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes"), "branch-merge column bytes"),
    "memory": (pa.ArrowMemoryError("malloc of size 2300000064 failed"), "branch-merge memory"),
}
STEPS = ["diff_table", "make_table_delta", "check_delta"]


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph with a branch `side`, both of which changed the same type."""
    with new_graph("node P { k: String @key  text: String? }") as created:
        created.insert("P", {"k": "a", "text": "old"})
        side = created.branches.create("side")
        side.update("P", where='k = "a"', set={"text": "new"})
        created.insert("P", {"k": "b", "text": "ours"})
        yield created


def fail_in(monkeypatch: pytest.MonkeyPatch, step: str, error: Exception) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(planner, step, fail)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("dry_run", [True, False])
def test_changes_that_are_too_large_are_a_typed_error(
    graph: Graph, name: str, step: str, dry_run: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, resource = FAILURES[name]
    head = graph.head
    with monkeypatch.context() as patched:
        fail_in(patched, step, error)
        with pytest.raises(ResourceLimitExceeded) as caught:
            graph.merge("side", dry_run=dry_run)
    assert (caught.value.resource, caught.value.effect) == (resource, "none")
    assert "nothing was merged" in str(caught.value.hint)
    assert graph.head == head
    assert graph.merge("side").outcome == "merged"


def test_other_arrow_errors_are_not_converted(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_in(monkeypatch, "diff_table", pa.ArrowInvalid("column 1 has the wrong length"))
    with pytest.raises(pa.ArrowInvalid, match="wrong length"):
        graph.merge("side")
