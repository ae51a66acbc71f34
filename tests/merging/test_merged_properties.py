"""A merge decides as little as it must: only properties in conflict, and it names what it discards."""

from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.api.merge_sessions import MergeResult
from tests.rig.graph_hosts import GraphHost

SCHEMA = """
node Package { name: String @key  section: String?  version: String?  alias: String? @unique  size: I64? }
edge Needs: Package -> Package { since: String?  note: String? }
"""


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    """A package, whose section and version branch `dev` sets, and whose version `main` sets."""
    made = graphs.init(SCHEMA)
    made.insert("Package", {"name": "curl", "section": "web", "version": "1"}, message="load")
    dev = made.branches.create("dev")
    change = {"section": "net", "version": "2"}
    dev.update("Package", where="name = 'curl'", set=change, message="dev sets section and version")
    made.update("Package", where="name = 'curl'", set={"version": "3"}, message="main sets version")
    return made


def curl(graph: Graph) -> tuple[str, str]:
    """The section and the version of the package."""
    values = graph["Package", "curl"].properties
    return values["section"], values["version"]


def test_choosing_a_side_keeps_edits_that_do_not_conflict(graph: Graph) -> None:
    dev = graph.checkout("dev")
    graph.branches.create("copy")
    graph.merge("dev", strategy="ours")
    assert curl(graph) == ("net", "3")
    dev.merge("copy", strategy="theirs")
    assert curl(dev) == ("net", "3")


def test_merge_with_theirs_keeps_the_other_edit_of_the_target(graph: Graph) -> None:
    dev = graph.checkout("dev")
    dev.merge("main", strategy="theirs")
    assert curl(dev) == ("net", "3")


def test_entity_granularity_takes_the_whole_entity(graph: Graph) -> None:
    dev = graph.checkout("dev")
    result = dev.merge("main", strategy="theirs", granularity="entity")
    assert curl(dev) == ("web", "3")
    assert said(result) == [("curl", "ours", "section", "net"), ("curl", "ours", "version", "2")]


def said(result: MergeResult) -> list[tuple[str, str, str | None, Any]]:
    """What a merge discards."""
    return [(one.entity_id, one.side, one.property_name or one.part, one.value) for one in result.discarded]


@pytest.mark.parametrize(("side", "loser", "value"), [("ours", "theirs", "2"), ("theirs", "ours", "3")])
def test_merge_and_dry_run_name_the_discarded_value(graph: Graph, side: str, loser: str, value: str) -> None:
    tried = graph.merge("dev", strategy=side, dry_run=True)
    done = graph.merge("dev", strategy=side)
    assert said(tried) == said(done) == [("curl", loser, "version", value)]
    assert str(done.discarded[0]) == f"Package 'curl': version '{value}'"
    assert done.commit is not None
    assert done.stats["discarded"] == done.commit.details["discarded"] == 1


def test_merge_without_decisions_discards_nothing(graph: Graph) -> None:
    graph.branches.create("other")
    graph.checkout("other").update("Package", where="name = 'curl'", set={"size": 7})
    graph.update("Package", where="name = 'curl'", set={"section": "all"})
    done = graph.merge("other")
    assert (done.discarded, done.stats["merged_properties"]) == ((), 1)
    assert graph.merge("dev", dry_run=True).discarded == ()


def test_values_discard_the_values_of_both_sides(graph: Graph) -> None:
    done = graph.merge("dev", strategy=lambda _: {"version": "4"})
    assert curl(graph) == ("net", "4")
    assert said(done) == [("curl", "ours", "version", "3"), ("curl", "theirs", "version", "2")]


def test_deletions_and_whole_entities_are_discarded(graph: Graph) -> None:
    graph.branches.create("keep")
    graph.delete("Package", where="name = 'curl'")
    whole = {"name": "curl", "section": "net", "version": "2", "alias": None, "size": None}
    assert said(graph.merge("dev", strategy="ours", dry_run=True)) == [("curl", "theirs", "entity", whole)]
    assert said(graph.merge("dev", strategy="theirs", dry_run=True)) == [("curl", "ours", "deletion", None)]


def test_side_chosen_for_a_rule_keeps_other_edits(graph: Graph) -> None:
    """Both sides give one alias to different packages, and each edits other properties, too."""
    graph.insert("Package", {"name": "wget", "size": 1})
    first, second = (graph.branches.create(name) for name in ("first", "second"))
    first.update("Package", where="name = 'curl'", set={"alias": "get", "size": 5})
    second.update("Package", where="name = 'wget'", set={"alias": "get", "section": "net"})
    tried = first.merge("second", dry_run=True)
    assert [one.kind for one in tried.conflicts] == ["unique_violation"]
    done = first.merge("second", strategy="theirs")
    assert said(done) == [("curl", "ours", "alias", "get")]
    rows = {name: first["Package", name].properties for name in ("curl", "wget")}
    assert (rows["curl"]["alias"], rows["curl"]["size"]) == (None, 5)
    assert (rows["wget"]["alias"], rows["wget"]["section"]) == ("get", "net")


def test_session_decides_properties_of_one_entity_separately(graph: Graph) -> None:
    graph.insert("Package", {"name": "wget"})
    first, second = (graph.branches.create(name) for name in ("first", "second"))
    first.update("Package", where="name = 'wget'", set={"alias": "get"})
    second.update("Package", where="name = 'curl'", set={"alias": "get", "version": "9", "section": "all"})
    first.update("Package", where="name = 'curl'", set={"version": "8", "size": 3})
    session = first.branches.merge_session("second")
    session.resolve(0, "ours")
    kinds = [one.kind for one in session.conflicts]
    assert kinds == ["divergent_update", "unique_violation"]
    session.resolve(1, "theirs")
    assert len(session) == 0
    session.resolve(1, "ours")  # the decision about the version is kept
    assert len(session) == 0
    assert said(session.preview()) == [("curl", "theirs", "alias", "get"), ("curl", "theirs", "version", "9")]
    session.resolve(1, {"alias": "got"})
    result = session.commit()
    assert result.commit is not None
    assert result.commit.message == "Merge branch 'second' into first"
    values = {**first["Package", "curl"].properties}
    assert values == {"name": "curl", "section": "all", "version": "8", "alias": "got", "size": 3}


def test_edges_are_merged_property_by_property(graph: Graph) -> None:
    graph.insert("Package", {"name": "libc"})
    edge = graph.connect_nodes("Needs", [("curl", "libc", {"since": "1", "note": "x"})]).ids["Needs"][0]
    ends = {"id": edge, "from": "curl", "to": "libc"}
    side = graph.branches.create("side")
    side.upsert("Needs", {**ends, "since": "2", "note": "y"})
    graph.upsert("Needs", {**ends, "since": "3", "note": "x"})
    done = graph.merge("side", strategy="ours")
    assert said(done) == [(edge, "theirs", "since", "2")]
    changed = [(one.id, one.changed) for one in done.delta]
    assert changed == [(edge, ("note",))]


def test_strategy_that_changes_nothing_writes_no_row(graph: Graph) -> None:
    """`ours`, if the only edit of the source is the one in conflict."""
    side = graph.branches.create("side", commit=graph.log()[1].id)
    side.update("Package", where="name = 'curl'", set={"version": "5"})
    before = graph.snapshot.tables
    done = graph.merge("side", strategy="ours")
    assert (done.outcome, done.stats["updates"], len(done.discarded)) == ("merged", 0, 1)
    assert graph.refresh().snapshot.tables == before


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_blame_credits_a_decided_property_to_the_merge(graph: Graph, side: str) -> None:
    graph.merge("dev", strategy=side, message="decided")
    assert credited(graph) == {
        "version": "decided",
        "section": "dev sets section and version",
        **dict.fromkeys(("name", "alias", "size"), "load"),
    }


@pytest.mark.parametrize(("source", "target"), [("main", "dev"), ("dev", "main")])
@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_blame_credits_an_edit_that_was_put_back_to_the_merge(
    graph: Graph, source: str, target: str, side: str
) -> None:
    graph.merge(source, target, strategy=side, granularity="entity", message="decided")
    found = credited(graph.checkout(target))
    kept = (side == "ours") == (target == "dev")  # the edit of the section
    assert found["section"] == ("dev sets section and version" if kept else "decided")
    assert found["version"] == "decided"
    assert found["name"] == "load"


def test_blame_follows_later_edits_and_merges_of_a_decided_property(graph: Graph) -> None:
    old = graph.branches.create("old", commit=graph.log()[-1].id)
    graph.merge("dev", strategy="theirs", message="decided")
    old.insert("Package", {"name": "wget"})
    old.merge("main", message="carried over")
    assert credited(old)["version"] == "decided"
    graph.checkout("dev").merge("main", message="had it all along")
    assert credited(graph.checkout("dev"))["version"] == "dev sets section and version"
    graph.update("Package", where="name = 'curl'", set={"version": "6"}, message="later")
    assert credited(graph)["version"] == "later"


def credited(graph: Graph) -> dict[str, str | None]:
    """The message of the commit to which each property is credited."""
    found = graph.refresh().revisions.blame("Package", "curl")
    return {name: one.commit.message if one.commit else None for name, one in found.items()}


def test_merges_have_a_default_message(graph: Graph) -> None:
    graph.merge("dev", strategy="ours")
    assert graph.head.message == "Merge branch 'dev' into main"
    side = graph.branches.create("side/one")
    side.insert("Package", {"name": "new"})
    graph.merge("side/one", message="mine")
    assert graph.head.message == "mine"
    assert side.merge("main").commit is not None  # the second parent of a merge is new to its source
    assert side.head.message == "Merge branch 'main' into side/one"


def test_criss_cross_of_combined_properties_is_no_conflict(graph: Graph) -> None:
    """Two branches took each other's edits; the base is their merge, property by property."""
    one, two = (graph.branches.create(name) for name in ("one", "two"))
    one.update("Package", where="name = 'curl'", set={"size": 1})
    two.update("Package", where="name = 'curl'", set={"alias": "get"})
    old = graph.branches.create("old", from_="one")
    one.merge("two")
    two.merge("old")
    two.update("Package", where="name = 'curl'", set={"size": 2})
    assert old.head.id in {each.id for each in two.log()}
    one.merge("two")
    values = one["Package", "curl"].properties
    assert (values["size"], values["alias"]) == (2, "get")
