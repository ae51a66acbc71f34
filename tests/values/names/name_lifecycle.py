"""What an accepted name must support, and what a rejected name must leave unchanged.

Uses the public handle, and looks at the root from outside: no file appeared, no intent is left.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import AlreadyExists, InputError
from omnigraph.storage.layout import INTENTS
from omnigraph.values.name_rules import check_new_ref_name, check_new_stream_name
from tests.rig.invariants import files

SCHEMA = "node Person { name: String @key }"


def make_graph(root: str) -> Graph:
    """A small graph with a branch and a tag that names can be tried on."""
    graph = omnigraph.init(root, SCHEMA, durability="os")
    graph.insert("Person", {"name": "ada"})
    graph.branches.create("base-branch")
    graph.tag("base-tag")
    return graph


def is_accepted(name: str) -> bool:
    """Whether the judge lets a branch or a tag have a name."""
    return _passes(check_new_ref_name, name)


def is_accepted_stream(name: str) -> bool:
    """Whether the judge lets a stream have a name."""
    return _passes(check_new_stream_name, name)


def _passes(check: Callable[[object], str], name: str) -> bool:
    with suppress(InputError):
        return bool(check(name))
    return False


def check_at_rest(graph: Graph) -> None:
    """No operation is left for recovery: neither an intent nor a part of it."""
    assert graph._handle.store.objects.list(INTENTS) == []


def check_refused(graph: Graph, name: str) -> None:
    """Every door refuses a name before any effect; the root is as it was."""
    before = files(graph._handle.store)
    doors: list[Callable[[], object]] = [
        lambda: graph.branches.create(name),
        lambda: graph.branches.rename("base-branch", name),
        lambda: graph.tag(name),
    ]
    if name != "main":  # a load makes the branch only if it is missing
        doors.append(lambda: graph.load([], mode="append", branch=name, from_="main"))
    with graph._handle.store.effects.recording() as effects:
        for door in doors:
            _expect_refusal(door)
    assert effects == []
    assert files(graph._handle.store) == before


def check_refused_stream(graph: Graph, name: str) -> None:
    """The same for the name of a stream, before Spark is asked for anything."""
    before = files(graph._handle.store)
    _expect_refusal(lambda: graph.spark.stream_load(None, "Person", name=name, checkpoint="unused"))
    assert files(graph._handle.store) == before


def _expect_refusal(door: Callable[[], object]) -> None:
    with pytest.raises(InputError) as refused:
        door()
    text = str(refused.value)
    assert "not a stream" not in text  # the refusal of the frame, which comes later
    assert len(text) < 400
    text.encode()  # can be printed and logged whatever the name was


def check_branch_life(graph: Graph, name: str) -> None:
    """Create, read, rename away and back, delete, create again, delete."""
    text = name.strip()
    there = graph.branches.create(name)
    assert there.branch_name == text
    assert text in graph.branches.names()
    assert graph.checkout(name).at(text).node("Person", "ada") is not None
    check_at_rest(graph)
    graph.branches.rename(name, "zz-elsewhere")
    assert text not in graph.branches.names()
    assert graph.branches.rename("zz-elsewhere", name).branch_name == text
    check_at_rest(graph)
    graph.branches.delete(name, force=True)
    assert text not in graph.branches.names()
    graph.branches.create(name, from_="base-branch")
    assert graph.branches[name].parent == "base-branch"
    graph.branches.delete(name, force=True)
    check_at_rest(graph)


def check_tag_life(graph: Graph, name: str) -> None:
    """Create, read, delete, create again, delete."""
    text = name.strip()
    for _ in range(2):
        assert graph.tag(name).name == text
        assert text in [tag.name for tag in graph.tags.values()]
        assert graph.at(name).head.id == graph.head.id
        graph.tags.delete(name)
    assert [tag.name for tag in graph.tags.values()] == ["base-tag"]
    check_at_rest(graph)


def create_all(graph: Graph, names: list[str]) -> list[str]:
    """Branches and tags of all names that can stand beside one another; returns those names."""
    created: list[str] = []
    for name in names:
        try:
            graph.branches.create(name)
        except AlreadyExists:
            continue
        with suppress(AlreadyExists):
            graph.tag(name)
        created.append(name.strip())
    return created


def check_copy(graph: Graph, target: str) -> Graph:
    """A copy has every name, and each can be read and deleted there."""
    graph.maintenance.copy_to(target)
    copy = omnigraph.open(target, durability="os")
    assert copy.branches.names() == graph.branches.names()
    assert copy.tags.values() == graph.tags.values()
    for name in copy.branches.names():
        assert copy.checkout(name).node("Person", "ada") is not None
    for tag in copy.tags.values():
        copy.tags.delete(tag.name)
    for name in set(copy.branches.names()) - {"main"}:
        copy.branches.delete(name, force=True)
    assert copy.branches.names() == ["main"]
    assert copy.tags.values() == []
    check_at_rest(copy)
    return copy
