"""Revisions: every valid form resolves to its commit, everything else is rejected."""

import pickle
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import (
    AlreadyExists,
    AmbiguousRevision,
    BranchNotFound,
    InputError,
    NotFound,
    OmnigraphError,
    ReadOnlyError,
    SnapshotNotFound,
)
from tests.api.revisions.conftest import START
from tests.rig.graph_hosts import open_again


def ages(graph: Graph) -> dict[str, int]:
    """The people that a handle shows."""
    return {one["name"]: one["age"] for one in graph.nodes("Person").result().to_dicts()}


FIRST, OLDER, NOW = {"ada": 1, "bob": 2}, {"ada": 1, "bob": 3}, {"ada": 9, "bob": 3}


POINTS: list[tuple[Any, dict[str, int]]] = [
    ("HEAD", NOW),
    ("main", NOW),
    ("HEAD~", OLDER),
    ("HEAD~1", OLDER),
    ("main~2", OLDER),
    ("HEAD~3", FIRST),
    ("HEAD~4", {}),
    ("HEAD^", OLDER),
    ("HEAD~1^", OLDER),
    ("HEAD~1^2", {**FIRST}),
    ("HEAD~1~1", OLDER),
    ("HEAD~2^", FIRST),
    ("HEAD^^^", FIRST),
    ("HEAD^0", NOW),
    ("v1^", {}),
    ("v1", FIRST),
    (" v1 ", FIRST),
    ("v1~1", {}),
    ("review", FIRST),
    ("review~1", FIRST),
    ("review~2", {}),
    (2, FIRST),
    ("2", FIRST),
    ("manifest:main:v2", FIRST),
    ("2030-01-02T00:00:00Z", FIRST),
    ("2030-01-01T23:59:59.999999Z", {}),
    ("2030-01-02", FIRST),
    ("2030-01-05", OLDER),
    ("yesterday", OLDER),
    ("1 day ago", OLDER),
    ("2 days ago", OLDER),
    ("96 hours ago", FIRST),
    ("4.days.ago", FIRST),
    ("-4d", FIRST),
    ("-3d24h", FIRST),
    ("P4D", FIRST),
    ("-PT96H", FIRST),
    (START + timedelta(days=3), OLDER),
    (timedelta(days=1), OLDER),
    (timedelta(0), NOW),
]
WRONG: list[tuple[Any, type[OmnigraphError]]] = [
    ("HEAD~9", SnapshotNotFound),
    ("v1~5", SnapshotNotFound),
    ("HEAD~x", InputError),
    ("HEAD^x", InputError),
    ("HEAD~1x", InputError),
    ("HEAD^2", SnapshotNotFound),
    ("HEAD^^^^^", SnapshotNotFound),
    ("5 fortnights ago", InputError),
    ("-2", InputError),
    ("P", InputError),
    ("9999999 weeks ago", InputError),
    ("2030-13-01", InputError),
    ("1 month ago", SnapshotNotFound),
    ("HEAD~-1", InputError),
    ("", InputError),
    ("~2", InputError),
    ("nothing", InputError),
    ("no such name", InputError),
    ("77", SnapshotNotFound),
    (77, SnapshotNotFound),
    ("2029-12-31T00:00:00Z", SnapshotNotFound),
    ("2030-01-02T00:00:00", InputError),
    ("01ARZ3NDEKTSV4RRFFQ69G5FAV", SnapshotNotFound),
]


def test_revision_shows_the_state_of_its_commit(graph: Graph) -> None:
    for point, people in POINTS:
        assert ages(graph.at(point)) == people, point


def test_unknown_revision_is_rejected(graph: Graph) -> None:
    for point, error in WRONG:
        with pytest.raises(error):
            graph.at(point)


def test_relative_revisions_start_at_the_handle(graph: Graph) -> None:
    past = graph.at("HEAD~1")
    assert past.at("HEAD").head == past.head
    assert past.at("HEAD~1").head == graph.at("HEAD~2").head
    assert graph.revisions.commit("HEAD~1") == past.head
    assert graph.revisions.commit("v1") == graph.at("v1").head
    assert graph.revisions.commit(past.head.id) == past.head


def test_tag_survives_the_deletion_of_its_branch(graph: Graph) -> None:
    review = graph.checkout("review")
    review.insert("Person", {"name": "cy", "age": 5}, message="only here")
    made, head = review.tag("kept", message="for later"), review.head.id
    graph.branches.delete("review", force=True)
    assert (made.commit_id, made.branch, made.actor) == (head, "review", "ann")
    assert [(one.name, one.message) for one in graph.tags.values()] == [("kept", "for later"), ("v1", None)]
    assert ages(graph.at("kept")) == FIRST | {"cy": 5}
    # The commit is found by its id, too, and a handle on it goes to other processes.
    assert ages(graph.at(made.commit_id)) == FIRST | {"cy": 5}
    assert graph.revisions.commit(made.commit_id).message == "only here"
    assert ages(pickle.loads(pickle.dumps(graph.at("kept")))) == FIRST | {"cy": 5}
    assert len(graph.diff("kept", "v1")) == 2


def test_commit_id_may_be_abbreviated_in_any_case(graph: Graph) -> None:
    head = graph.head.id
    for length in (10, 25, 26):
        for prefix in (head[:length], head[:length].lower()):
            assert graph.at(prefix).head.id == head
            assert graph.revisions.commit(prefix).id == head
    assert graph.at(f"{head[:12].lower()}~1").head.id == graph.at("HEAD~1").head.id
    with pytest.raises(InputError, match=f"'{head[:4].lower()}' is ambiguous") as ambiguous:
        graph.at(head[:4].lower())
    assert head in str(ambiguous.value)
    assert "and 1 more" in str(ambiguous.value)
    for wrong in (head[:3], "01ZZ", "0000", f"{head[:12]}U"):
        with pytest.raises(OmnigraphError):
            graph.at(wrong)


def test_abbreviated_id_is_found_on_any_branch_and_tag(empty: Graph) -> None:
    side = empty.branches.create("side")
    side.insert("Person", {"name": "eve"})
    head = side.head.id
    assert empty.at(head[:-1]).head.id == head
    side.tag("kept")
    empty.branches.delete("side", force=True)
    assert empty.at(head[:-1]).head.id == head


def test_tag_takes_precedence_over_a_branch_of_the_same_name(graph: Graph) -> None:
    with pytest.warns(AmbiguousRevision, match="branch name 'v1' is also a tag"):
        branch = graph.branches.create("v1")
    branch.insert("Person", {"name": "cy", "age": 5})
    with pytest.warns(AmbiguousRevision, match="revision 'v1' is both a tag and a branch; using the tag"):
        assert ages(graph.at("v1")) == FIRST
    assert ages(graph.checkout("v1")) == NOW | {"cy": 5}
    with pytest.warns(AmbiguousRevision):
        assert not graph.diff("v1", graph.at("v1"))


def test_name_hides_a_date_a_version_and_a_commit_id_with_a_warning(graph: Graph) -> None:
    with pytest.warns(AmbiguousRevision, match="tag name '2026-12-01' is also a time; as a revision, it means the tag"):
        graph.tag("2026-12-01")
    with pytest.warns(AmbiguousRevision, match="branch name '2026-12-03' is also a time"):
        graph.branches.create("2026-12-03")
    with pytest.warns(AmbiguousRevision, match="branch name '2026-12-02' is also a time"):
        graph.branches.rename("2026-12-03", "2026-12-02")
    prefix = graph.head.id[:12]
    with pytest.warns(AmbiguousRevision, match="tag name '2' is also a version number"):
        graph.tag("2", "HEAD~1")
    graph.tag(prefix, "HEAD~1")
    for name, readings in (
        ("2026-12-01", "a tag and a time; using the tag"),
        ("2026-12-02", "a branch and a time; using the branch"),
        ("2", "a tag and a version number; using the tag"),
        (prefix, "a tag and a commit id; using the tag"),
    ):
        with pytest.warns(AmbiguousRevision, match=f"revision '{name}' is both {readings}"):
            shown = graph.at(name).head.id
        assert shown == (graph.head.id if name.startswith("2026") else graph.head.parent)


def test_a_new_name_that_the_other_kind_of_name_already_has_is_reported(graph: Graph) -> None:
    graph.branches.create("n1")
    with pytest.warns(AmbiguousRevision, match="tag name 'n1' is also a branch; as a revision, it means the tag"):
        graph.tag("n1")
    graph.tag("n2")
    with pytest.warns(AmbiguousRevision, match="branch name 'n2' is also a tag; as a revision, it means the tag"):
        graph.branches.create("n2")
    graph.tag("n3")
    graph.tags.delete("n3")
    graph.branches.create("n3")  # does not warn, because the tag has been deleted


def test_a_warning_about_a_name_shows_the_line_of_the_caller(graph: Graph) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph.branches.create("2026-12-01")
        graph.tag("2026-12-02")
        with graph.branch("2026-12-03"):
            pass
        graph.at("2026-12-01")
        graph.diff("2026-12-02", graph)
    assert len(caught) >= 5
    assert {Path(warning.filename).name for warning in caught} == {Path(__file__).name}


@pytest.mark.parametrize("point", [1.5, True, None, b"HEAD"])
def test_malformed_revision_is_rejected(graph: Graph, point: Any) -> None:
    with pytest.raises(InputError, match="is not a revision"):
        graph.at(point)


def test_tags_are_unique_and_can_be_deleted(graph: Graph) -> None:
    with pytest.raises(AlreadyExists):
        graph.tag("v1")
    with pytest.raises(InputError):
        graph.tag("no blanks")
    graph.tag("v2", "HEAD~1")
    assert ages(graph.at("v2")) == OLDER
    graph.at("HEAD~3").tag("v3")
    assert ages(graph.at("v3")) == FIRST
    graph.tags.delete("v1")
    with pytest.raises(InputError):
        graph.at("v1")
    with pytest.raises(NotFound):
        graph.tags.delete("v1")
    assert [one.name for one in graph.tags.values()] == ["v2", "v3"]
    graph.tag("v1")
    assert ages(graph.at("v1")) == NOW


def test_tags_are_listed_and_read_by_name(graph: Graph) -> None:
    graph.tag("v2", "HEAD~1", message="second")
    assert (graph.tags.names(), list(graph.tags), len(graph.tags)) == (["v1", "v2"], ["v1", "v2"], 2)
    assert ("v1" in graph.tags, "v9" in graph.tags, graph.tags.get("v9")) == (True, False, None)
    tag = graph.tags.get("v2")
    assert tag is not None
    assert (tag.commit_id, tag.branch, tag.message) == (graph.at("HEAD~1").head.id, "main", "second")
    assert tag.commit_id == graph.tags["v2"].commit_id
    with pytest.raises(KeyError):
        graph.tags["v9"]


def test_handle_on_a_revision_is_read_only(graph: Graph) -> None:
    past = graph.at("v1")
    for write in (
        lambda: past.insert("Person", {"name": "x"}),
        lambda: past.merge("review"),
        lambda: past.revisions.revert("HEAD"),
        lambda: past.revisions.cherry_pick("review"),
        lambda: past.tags.delete("v1"),
        lambda: past.branches.rename("review", "x"),
    ):
        with pytest.raises(ReadOnlyError):
            write()
    with graph.revisions.pin() as pinned:
        graph.insert("Person", {"name": "new", "age": 1})
        assert ages(pinned) == NOW


def test_read_only_handle_cannot_create_tags(graph: Graph) -> None:
    reader = open_again(graph, read_only=True)
    for there in (reader, reader.at("HEAD~1"), reader.revisions.pin()):
        with pytest.raises(ReadOnlyError):
            there.tag("new")
        with pytest.raises(ReadOnlyError):
            there.tags.delete("v1")
    assert [one.name for one in graph.tags.values()] == ["v1"]


def test_commit_retained_only_by_a_tag_can_be_branched_and_tagged(graph: Graph) -> None:
    side = graph.branches.create("side")
    side.insert("Person", {"name": "eve"}, message="eve")
    before, kept = side.log()[1].id, side.head.id
    graph.tag("old", "side")
    graph.branches.delete("side", force=True)
    for at, point in enumerate(("old", kept, "old~0")):
        made = graph.branches.create(f"again{at}", from_=point)
        assert made.head.id == kept
        made.insert("Person", {"name": "fay"})
        assert made.nodes("Person").count() == 4
    assert graph.branches.create("earlier", from_="old~1").head.id == before
    assert graph.branches.create("seen", from_="again0", commit="HEAD~1").head.id == kept
    for at in range(3):
        graph.branches.delete(f"again{at}", force=True)
    graph.branches.delete("seen", force=True)
    assert graph.tag("older", kept).commit_id == kept
    graph.tags.delete("old")
    assert graph.at("older").nodes("Person").count() == 3
    assert graph.merge("earlier").outcome == "already_up_to_date"


def test_branch_starts_at_any_revision(graph: Graph) -> None:
    head = graph.head
    for at, point in enumerate(("HEAD~1", "main~1", head.parent, START + timedelta(days=4))):
        assert graph.branches.create(f"b{at}", from_=point).head.id == head.parent
    assert graph.branches.create("v", from_="v1").head.id == graph.at("v1").head.id
    for wrong in ("nobody", "no body", "HEADS~2"):
        with pytest.raises(BranchNotFound):
            graph.branches.create("x", from_=wrong)
    with pytest.raises(NotFound):
        graph.branches.create("x", from_="HEAD~99")


@pytest.mark.parametrize("name", ["HEAD", "head", "Head", "HEAD~1"])
def test_reserved_head_words_are_rejected_as_names(graph: Graph, name: str) -> None:
    calls: list[Any] = [
        lambda: graph.tag(name),
        lambda: graph.branches.create(name),
        lambda: graph.branches.rename("review", name),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"cannot be used as a (branch|tag) name: "):
            call()


def test_the_changes_of_a_write_are_read_by_its_commit(graph: Graph) -> None:
    receipt = graph.insert("Person", {"name": "gus"})
    assert receipt.commit is not None
    assert [one.id for one in graph.changes.of_commit(receipt.commit)] == ["gus"]
    with graph.transaction() as tx:
        tx.insert("Person", {"name": "hal"})
    assert tx.receipt is not None
    assert tx.receipt.commit is not None
    assert [one.op for one in graph.changes.of_commit(tx.receipt.commit)] == ["insert"]


def test_a_receipt_can_be_pickled(graph: Graph) -> None:
    receipt = graph.insert("Person", {"name": "gus"})
    assert pickle.loads(pickle.dumps(receipt)).commit == receipt.commit
