"""Branches, tags, merges, diffs, logs and schemas of a graph on a server."""

from datetime import date

import pytest

from omnigraph import Graph
from omnigraph.errors import BranchNotFound, MergeConflict, ReadOnlyError, SchemaViolation


def test_branches(graph: Graph) -> None:
    name = graph.branch_name
    child = graph.branches.create(f"{name}-child", from_=name)
    child.insert("Person", {"name": "cyd"})
    info = graph.branches[f"{name}-child"]
    assert (info.parent, info.ahead, info.behind, info.head.id) == (name, 1, 0, child.head.id)
    assert name in graph.branches
    assert graph.branches.get("nowhere") is None
    with pytest.raises(BranchNotFound):
        graph.branches["nowhere"]
    assert graph.branches.create(f"{name}-child", exist_ok=True).head.id == child.head.id
    renamed = graph.branches.rename(f"{name}-child", f"{name}-renamed")
    assert renamed.branch_name == f"{name}-renamed"
    graph.branches.delete(f"{name}-renamed", force=True)
    assert f"{name}-renamed" not in list(graph.branches)


def test_a_branch_block_deletes_the_branch_after_a_merge(graph: Graph) -> None:
    with graph.branch(f"{graph.branch_name}-work", delete=True) as work:
        work.insert("Person", {"name": "cyd"})
        merged = work.merge(into=graph.branch_name)
    assert merged.outcome == "fast_forward"
    assert graph.nodes("Person").ids() == ["ada", "bob", "cyd"]
    assert work.branch_name not in graph.branches


def test_merges_and_their_conflicts(graph: Graph) -> None:
    other = graph.branches.create(f"{graph.branch_name}-other")
    other.update("Person", where="name = 'ada'", set={"age": 50, "born": date(1980, 1, 1)})
    graph.update("Person", where="name = 'ada'", set={"age": 60})
    preview = graph.merge(other.branch_name, dry_run=True)
    assert (preview.outcome, bool(preview)) == ("conflict", False)
    with pytest.raises(MergeConflict) as raised:
        graph.merge(other.branch_name)
    (conflict,) = raised.value.conflicts
    assert (conflict.type_name, conflict.entity_id, conflict.changed) == ("Person", "ada", ("age",))
    assert (conflict.ours, conflict.theirs) == (preview.conflicts[0].ours, preview.conflicts[0].theirs)
    merged = graph.merge(other.branch_name, strategy="theirs", message="take theirs")
    assert merged.commit is not None
    assert (merged.outcome, merged.commit.merged_parent) == ("merged", other.head.id)
    assert merged.stats["resolved"] == 1
    assert [str(change) for change in merged.discarded] == ["Person 'ada': age 60"]
    assert graph["Person", "ada"].age == 50
    assert [change.after and change.after["born"] for change in merged.delta] == [date(1980, 1, 1)]
    other.update("Person", where="name = 'ada'", set={"age": 70})
    graph.update("Person", where="name = 'ada'", set={"age": 71})
    graph.merge(other.branch_name, strategy=lambda conflict: {"age": (conflict.theirs or {})["age"] + 2})
    assert graph["Person", "ada"].age == 72


def test_diffs_have_typed_values(graph: Graph) -> None:
    before = graph.head.id
    graph.insert("Person", {"name": "cyd", "born": date(1990, 1, 2)})
    graph.connect_nodes("Knows", [("cyd", "ada", {"since": 3})])
    graph.update("Person", where="name = 'ada'", set={"score": 2.5})
    graph.delete("Person", where="name = 'bob'")
    diff = graph.diff(before)
    assert {key: diff.summary()[key] for key in ("inserts", "updates", "deletes")} == {
        "inserts": 2,
        "updates": 1,
        "deletes": 2,
    }
    changes = {(change.type, change.id, change.op): change for change in diff if change.kind == "node"}
    assert changes["Person", "cyd", "insert"].after["born"] == date(1990, 1, 2)  # type: ignore[index]
    assert changes["Person", "ada", "update"].changed == ("score",)
    (added, removed) = sorted((change for change in diff if change.kind == "edge"), key=lambda change: change.op)[::-1]
    assert (added.op, added.endpoints) == ("insert", {"src": "cyd", "dst": "ada"})
    assert (removed.op, removed.endpoints) == ("delete", {"src": "ada", "dst": "bob"})
    assert len(graph.diff(before, types="Person", ops=["insert"])) == 1
    assert not graph.diff("HEAD")


def test_logs(graph: Graph) -> None:
    start = graph.head
    receipts = [graph.insert("Person", {"name": name}, message=name) for name in ("cyd", "dee")]
    log = graph.log()
    assert [commit.id for commit in log[:2]] == [receipt.commit_id for receipt in receipts[::-1]]
    assert [commit.message for commit in graph.log(limit=1)] == ["dee"]
    assert {str(key) for key in log[0].tables} == {"node:Person"}
    assert [commit.id for commit in graph.at(start.id).log(limit=1)] == [start.id]
    assert len(graph.log(since=receipts[1].commit.published)) == 1  # type: ignore[union-attr]
    assert graph.branch_name in log.ref_names()[log[0].id]
    assert str(log.draw())


def test_tags(graph: Graph) -> None:
    name = f"{graph.branch_name}-v1".replace("/", "-")
    tag = graph.tag(name, message="first")
    assert (tag.commit_id, tag.message) == (graph.head.id, "first")
    graph.insert("Person", {"name": "cyd"})
    assert graph.at(name).nodes("Person").count() == 2
    assert name in graph.tags
    assert graph.tags[name].commit_id == tag.commit_id
    graph.tags.delete(name)
    assert graph.tags.get(name) is None


def test_the_history_of_an_entity_reverts_and_resets(graph: Graph) -> None:
    start = graph.head.id
    receipt = graph.update("Person", where="name = 'ada'", set={"born": date(1980, 1, 1)})
    versions = graph.revisions.history("Person", "ada")
    assert [version.op for version in versions] == ["update", "insert"]
    assert versions[0].values is not None
    assert versions[0].values["born"] == date(1980, 1, 1)
    assert graph.revisions.blame("Person", "ada")["born"].commit.id == receipt.commit_id  # type: ignore[union-attr]
    reverted = graph.revisions.revert("HEAD")
    assert reverted.commit is not None
    assert graph["Person", "ada"].born is None
    graph.revisions.cherry_pick(str(receipt.commit_id))
    assert graph["Person", "ada"].born == date(1980, 1, 1)
    graph.branches.reset(graph.branch_name, to=start)
    assert graph["Person", "ada"].born is None
    assert graph.revisions.pin().read_only


def test_schema_changes(graph: Graph) -> None:
    new_text = graph.schema.source.replace("score: F64?", "score: F64?  height: I32?")
    plan = graph.schema.plan(new_text)
    assert (plan.supported, len(plan.steps)) == (True, 1)
    assert not graph.schema.apply(new_text, dry_run=True)
    applied = graph.schema.apply(plan, message="add height")
    assert applied.commit is not None
    assert applied.commit.message == "add height"
    assert "height" in graph.schema.source
    assert graph.schema.current == graph.schema
    with pytest.raises(SchemaViolation):
        graph.schema.apply(new_text.replace("age: I32?", "age: I32? @unique").replace("height: I32?", "height: I32"))
    with pytest.raises(ReadOnlyError):
        graph.at("HEAD").schema.apply(new_text)
    assert graph.diff("HEAD~1").schema_change is not None
