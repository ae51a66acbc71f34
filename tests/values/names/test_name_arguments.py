"""Every public method that takes a name rejects other types and invalid names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import ClientError, InputError
from tests.values.names import name_lifecycle

NOT_TEXT: tuple[Any, ...] = (5.5, True, b"x", ["x"], ("x",), {"x": 1}, object())
NO_NAMES = ("", " ", ".", "..", "x" * 300, "y" * 1100, "z" * 5000, "\ud800", "a\x00b", "9" * 5000,
            "HEAD~" + "9" * 5000, "\u00e9", "a/../b", "%2e", "*", "'; drop")  # fmt: skip
READ = "match { $p: Person } return { $p.name }"
WRITE = 'insert Person { name: "eve" }'

Door = Callable[[Graph, Any], object]


def _insert(graph: Graph, type_name: Any) -> None:
    with graph.transaction() as work:
        work.insert(type_name, {"name": "eve"})


# Doors to a branch, tag or commit that exists; `None` means the default in some of them.
REVISIONS: dict[str, Door] = {
    "branches.create from_": lambda g, v: g.branches.create("q", from_=v),
    "branches.create commit": lambda g, v: g.branches.create("q", commit=v),
    "branches.delete": lambda g, v: g.branches.delete(v, force=True),
    "branches.reset": lambda g, v: g.branches.reset(v, to="HEAD"),
    "branches.reset to": lambda g, v: g.branches.reset("base-branch", to=v),
    "branches.rename": lambda g, v: g.branches.rename(v, "q"),
    "branches[]": lambda g, v: g.branches[v],
    "tag point": lambda g, v: g.tag("q", v),
    "untag": lambda g, v: g.tags.delete(v),
    "checkout": lambda g, v: g.checkout(v),
    "open": lambda g, v: omnigraph.open(g.uri, branch=v),
    "at": lambda g, v: g.at(v),
    "commit": lambda g, v: g.revisions.commit(v),
    "log": lambda g, v: g.log(v),
    "diff a": lambda g, v: g.diff(v, "main"),
    "diff b": lambda g, v: g.diff("main", v),
    "merge": lambda g, v: g.merge(v),
    "merge into": lambda g, v: g.merge("base-branch", v),
    "merge_session": lambda g, v: g.branches.merge_session(v),
    "revert": lambda g, v: g.revisions.revert(v),
    "revert branch": lambda g, v: g.revisions.revert("HEAD", branch=v),
    "cherry_pick": lambda g, v: g.revisions.cherry_pick(v),
    "cherry_pick into": lambda g, v: g.revisions.cherry_pick("HEAD", v),
    "insert branch": lambda g, v: g.insert("Person", {"name": "eve"}, branch=v),
    "load branch": lambda g, v: g.load({"Person": []}, mode="append", branch=v),
    "load from_": lambda g, v: g.load({"Person": []}, mode="append", branch="q", from_=v),
    "mutate branch": lambda g, v: g.mutate(WRITE, branch=v),
    "query branch": lambda g, v: g.query(READ, branch=v),
    "query at": lambda g, v: g.query(READ, at=v),
    "export branch": lambda g, v: g.export(branch=v),
    "optimize branch": lambda g, v: g.maintenance.optimize(branch=v),
    "apply_schema branch": lambda g, v: g.schema.apply(name_lifecycle.SCHEMA, branch=v),
    "transaction branch": lambda g, v: g.transaction(branch=v),
    "commit_changes": lambda g, v: g.changes.commit_page(v),
    "stream_load branch": lambda g, v: g.spark.stream_load(None, "Person", name="s", checkpoint="c", branch=v),
}
NEW: dict[str, Door] = {
    "branches.create": lambda g, v: g.branches.create(v),
    "branches.rename new": lambda g, v: g.branches.rename("base-branch", v),
    "tag": lambda g, v: g.tag(v),
    "stream_load name": lambda g, v: g.spark.stream_load(None, "Person", name=v, checkpoint="c"),
}
TYPES: dict[str, Door] = {
    "nodes": lambda g, v: g.nodes(v),
    "edges": lambda g, v: g.edges(v),
    "node": lambda g, v: g.node(v, "ada"),
    "insert": lambda g, v: g.insert(v, {"name": "eve"}),
    "upsert": lambda g, v: g.upsert(v, {"name": "eve"}),
    "patch": lambda g, v: g.patch(v, {"name": "eve"}),
    "update": lambda g, v: g.update(v, where="name = 'ada'", set={"name": "eve"}),
    "delete": lambda g, v: g.delete(v, where="name = 'ada'"),
    "connect_nodes": lambda g, v: g.connect_nodes(v, [("ada", "ada")]),
    "history": lambda g, v: g.revisions.history(v, "ada"),
    "blame": lambda g, v: g.revisions.blame(v, "ada"),
    "table": lambda g, v: g.table(v),
    "check_absent": lambda g, v: g.maintenance.check_absent(v, "ada"),
    "export": lambda g, v: list(g.export(types=[v])),
    "optimize": lambda g, v: g.maintenance.optimize(types=[v]),
    "changes": lambda g, v: list(g.changes.feed(types=[v])),
    "diff": lambda g, v: g.diff("base-branch", "main", types=[v]),
    "transaction.insert": _insert,
    "query": lambda g, v: g.query(READ, name=v),
}


def doors(*groups: dict[str, Door]) -> pytest.MarkDecorator:
    """Run a test for every door of some groups."""
    named = [pytest.param(door, id=name) for group in groups for name, door in group.items()]
    return pytest.mark.parametrize("door", named)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return name_lifecycle.make_graph(str(tmp_path_factory.mktemp("doors") / "g"))


@doors(REVISIONS, NEW, TYPES)
def test_name_that_is_not_a_string_is_rejected_without_effects(graph: Graph, door: Door) -> None:
    for value in NOT_TEXT:
        with pytest.raises(InputError), graph._handle.store.effects.recording() as effects:
            door(graph, value)
        assert effects == []


@doors(REVISIONS, TYPES)
def test_unknown_name_is_not_found(graph: Graph, door: Door) -> None:
    for name in NO_NAMES:
        with pytest.raises(ClientError) as refused:
            door(graph, name)
        assert len(str(refused.value)) < 400
        str(refused.value).encode()
    name_lifecycle.check_at_rest(graph)


@pytest.mark.parametrize("value", [None, 5, *NOT_TEXT])
def test_new_names_must_be_strings(graph: Graph, value: Any) -> None:
    for door in NEW.values():
        with pytest.raises(InputError, match="name must be a string, got "):
            door(graph, value)


@pytest.mark.parametrize("types", [5, b"Person", object()])
def test_type_lists_must_contain_strings(graph: Graph, types: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: list(graph.export(types=types)),
        lambda: graph.maintenance.optimize(types=types),
        lambda: list(graph.changes.feed(types=types)),
        lambda: graph.diff("base-branch", "main", types=types),
    ]
    for call in calls:
        with pytest.raises(InputError, match="expected type names, got "):
            call()


def test_tag_names_must_differ_in_more_than_case(tmp_path: Path) -> None:
    graph = name_lifecycle.make_graph(str(tmp_path / "g"))
    graph.tag("V1")
    with pytest.raises(omnigraph.errors.AlreadyExists, match="only in case from tag 'V1'"):
        graph.tag("v1")
    graph.tags.delete("V1")
    graph.tag("v1")
    with pytest.raises(omnigraph.errors.AlreadyExists, match="only in case from branch"):
        graph.branches.create("Base-Branch")
    assert graph.branches.rename("base-branch", "Base-Branch").branch_name == "Base-Branch"
    assert graph.branches.names() == ["Base-Branch", "main"]
