"""Merges through the public API: outcomes, lineage, previews, strategies, sessions, edges."""

import pickle
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import (
    BranchNotFound,
    InputError,
    MergeConflict,
    PreconditionFailed,
    ReadOnlyError,
    ReadSetConflict,
    ResourceLimitExceeded,
)
from omnigraph.merging import merge as merging
from omnigraph.merging.merge_limits import MergeLimits
from omnigraph.merging.publish_merge import publish_merge
from omnigraph.publish import branch_lifecycle
from omnigraph.publish.intent import list_intents
from tests.merging.conftest import Both, edge, person, stored
from tests.merging.test_diff import _compacted


def _people(both: Both, branch: str, **values: int) -> None:
    both.put(branch, {"node:Person": {n: person(n, p) for n, p in values.items()}})


@pytest.fixture
def forked(both: Both) -> Both:
    """Three people, and a branch."""
    _people(both, "main", a=0, b=0, c=0)
    both.fork("dev")
    return both


def test_merge_has_two_parents_and_is_not_repeated(forked: Both) -> None:
    _people(forked, "dev", a=1)
    before, source = forked.on("main").head.id, forked.on("dev").head.id
    done = forked.graph.merge("dev", message="weekly", actor="ann")
    assert done.outcome == "fast_forward"
    assert done.commit.parents == (before, source)
    assert (done.commit.message, done.commit.actor, done.commit.operation) == ("weekly", "ann", "merge")
    assert stored(forked.on("main")) == stored(forked.on("dev"))
    again = forked.graph.merge("dev")
    assert (again.outcome, again.commit, list(again.delta)) == ("already_up_to_date", None, [])
    assert forked.on("main").head.id == done.commit.id


def test_source_without_new_commits_is_up_to_date(forked: Both) -> None:
    _people(forked, "main", a=1)
    before = forked.on("main").head.id
    assert forked.merge("dev") == "already_up_to_date"
    assert forked.on("main").head.id == before


def test_fast_forward_reads_no_rows_and_adopts_the_source_tables(forked: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    _people(forked, "dev", a=1)
    monkeypatch.setattr("omnigraph.merging.planner.diff_table", None)
    done = forked.graph.merge("dev")
    theirs = forked.on("dev").snapshot.tables["node:Person"]
    ours = forked.on("main").snapshot.tables["node:Person"]
    assert (ours.lance_version, ours.content_id) == (theirs.lance_version, theirs.content_id)
    assert (ours.branch, ours.version) == ("main", 3)
    assert list(done.commit.tables) == ["node:Person"]


def test_table_changed_only_by_the_source_is_adopted(forked: Both) -> None:
    _people(forked, "dev", a=1)
    forked.put("main", {"node:Note": {"n": {"p": 1, "q": None}}})
    assert forked.merge("dev") == "merged"
    tables = [forked.on(one).snapshot.tables["node:Person"].lance_version for one in ("dev", "main")]
    assert tables[0] == tables[1]


def test_rows_that_are_replaced_keep_the_row_ids_of_the_target(forked: Both) -> None:
    _people(forked, "dev", a=1, x=1)
    _people(forked, "main", b=1, y=1)
    before = _row_ids(forked)
    assert forked.merge("dev") == "merged"
    after = _row_ids(forked)
    assert {n: after[n] for n in "abcy"} == {n: before[n] for n in "abcy"}
    assert len(set(after.values())) == 5


def _row_ids(both: Both) -> dict[str, int]:
    found = both.on("main").table("Person").to_table(columns=["id"], with_row_id=True)
    return dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))


def test_reverted_changes_still_record_lineage(forked: Both) -> None:
    forked.put("dev", {"edge:Knows": {"k": edge("a", "b")}})
    forked.drop("dev", "edge:Knows", "k")
    tables = forked.on("main").snapshot.tables
    done = forked.graph.merge("dev")
    assert (done.outcome, done.stats["inserts"]) == ("fast_forward", 0)
    assert len(done.commit.parents) == 2
    assert forked.on("main").snapshot.tables == tables, "no version of a table moved"
    assert forked.graph.merge("dev").outcome == "already_up_to_date"


def test_identical_changes_on_both_sides_write_no_rows(forked: Both) -> None:
    for branch in ("main", "dev"):
        _people(forked, branch, a=1, z=3)
        forked.drop(branch, "node:Person", "b")
    before = forked.on("main").snapshot.tables
    done = forked.graph.merge("dev")
    assert (done.outcome, list(done.delta), done.commit.tables) == ("merged", [], {})
    assert forked.on("main").snapshot.tables == before


def test_merge_ignores_compaction_on_either_side(forked: Both) -> None:
    for n in range(3):
        _people(forked, "main", **{f"m{n}": n})
        _people(forked, "dev", **{f"d{n}": n})
    _compacted(forked.on("main"), "node:Person")
    _compacted(forked.on("dev"), "node:Person")
    assert forked.merge("dev") == "merged"


def test_a_conflict_changes_nothing_and_writes_no_intent(forked: Both) -> None:
    _people(forked, "main", a=1)
    _people(forked, "dev", a=2, b=2)
    graph = forked.on("main")
    with graph._handle.store.effects.recording() as did, pytest.raises(MergeConflict) as caught:
        graph.merge("dev")
    assert did == []
    assert list_intents(graph._handle.store).pending == ()
    found: list[Any] = list(caught.value.conflicts)
    (one,) = found
    assert (one.kind, one.entity_id, one.base["p"], one.ours["p"], one.theirs["p"]) == (
        "divergent_update",
        "a",
        0,
        1,
        2,
    )
    assert "strategy='ours'" in caught.value.hint
    said = "\n  Person 'a': changed on both branches: p is 1 on 'main', 2 on 'dev', was 0\nhint: "
    assert said in str(caught.value)
    assert caught.value.effect == "none"
    assert pickle.loads(pickle.dumps(caught.value)).conflicts == caught.value.conflicts
    assert caught.value.to_arrow()["theirs"].to_pylist() == ['{"mail": null, "name": "a", "p": 2, "q": null}']


def test_preview_reports_the_outcome(forked: Both) -> None:
    _people(forked, "main", a=1)
    _people(forked, "dev", b=2, d=4)
    forked.drop("dev", "node:Person", "c")
    head = forked.on("main").head.id
    tried = forked.graph.merge("dev", dry_run=True)
    assert (tried.outcome, tried.commit) == ("merged", None)
    assert [(c.id, c.op) for c in tried.delta] == [("b", "update"), ("c", "delete"), ("d", "insert")]
    assert forked.on("main").head.id == head
    done = forked.graph.merge("dev")
    assert list(done.delta) == list(tried.delta)
    assert list(forked.graph.diff(head, done.commit.id)) == list(tried.delta)
    reader = omnigraph.open(forked.graph.uri, read_only=True)
    assert reader.merge("dev", dry_run=True).outcome == "already_up_to_date"
    with pytest.raises(ReadOnlyError):
        reader.merge("dev")


def test_a_strategy_may_differ_by_kind_and_by_type(forked: Both) -> None:
    forked.put("main", {"edge:Knows": {"k": edge("a", "b", 0)}})
    forked.merge("main", "dev")
    for branch, at in (("main", 1), ("dev", 2)):
        _people(forked, branch, a=at)
        forked.put(branch, {"edge:Knows": {"k": edge("a", "b", at)}})
    forked.drop("dev", "node:Person", "c")
    _people(forked, "main", c=5)
    left = forked.graph.merge("dev", dry_run=True, strategy={"Person": "theirs"})
    assert [c.type_name for c in left.conflicts] == ["Knows"]
    chosen = {"Person": "theirs", "delete_vs_update": "ours", "Knows": "ours"}
    done = forked.graph.merge("dev", strategy=chosen)
    rows = stored(forked.on("main"))
    assert {n: row["p"] for n, row in rows["node:Person"].items()} == {"a": 2, "b": 0, "c": 5}
    assert rows["edge:Knows"]["k"]["p"] == 1
    assert done.stats["resolved"] == 3
    counts = {"resolved": 3, "discarded": 3}
    assert done.commit.details == {"granularity": "property", "strategy": chosen, **counts}
    assert forked.graph.revisions.commit(done.commit.id).details == done.commit.details


def test_a_strategy_may_have_a_default_beside_its_exceptions(forked: Both) -> None:
    for branch, at in (("main", 1), ("dev", 2)):
        _people(forked, branch, a=at, b=at)
    forked.drop("dev", "node:Person", "c")
    _people(forked, "main", c=5)
    chosen = {"delete_vs_update": "ours", "*": "theirs"}
    done = forked.graph.merge("dev", strategy=chosen)
    rows = stored(forked.on("main"))["node:Person"]
    assert {name: row["p"] for name, row in rows.items()} == {"a": 2, "b": 2, "c": 5}
    assert done.commit.details["strategy"] == chosen


def test_a_function_decides_with_the_values_of_all_sides(forked: Both) -> None:
    _people(forked, "main", a=10, b=1)
    _people(forked, "dev", a=20, b=2)

    def decide(conflict: Any) -> Any:
        if conflict.entity_id == "b":
            return "theirs"
        return {"p": conflict.ours["p"] + conflict.theirs["p"], "q": "both"}

    done = forked.graph.merge("dev", strategy=decide)
    rows = stored(forked.on("main"))["node:Person"]
    assert (rows["a"]["p"], rows["a"]["q"], rows["b"]["p"]) == (30, "both", 2)
    assert done.commit.details["strategy"] == "function"


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        ("mine", "unknown conflict resolution 'mine'"),
        ({"Nobody": "ours"}, "unknown conflict kind or type 'Nobody'"),
        ({"Person": "mine"}, "unknown conflict resolution 'mine'"),
        ({"*": "mine"}, "unknown conflict resolution 'mine'"),
        (lambda _: {"nothing": 1}, "Person has no property 'nothing'"),
        (lambda _: {"name": "z"}, "Person.name is part of the key"),
        (lambda _: {"p": "x"}, "Person.p"),
    ],
)
def test_invalid_strategy_is_rejected(forked: Both, strategy: Any, text: str) -> None:
    _people(forked, "main", a=1)
    _people(forked, "dev", a=2)
    with pytest.raises(InputError) as caught:
        forked.graph.merge("dev", strategy=strategy)
    assert text in str(caught.value)


def test_resolution_that_breaks_a_rule_stays_a_conflict(forked: Both) -> None:
    _people(forked, "main", a=1)
    _people(forked, "dev", a=2)
    forked.put("main", {"node:Person": {"m": person("m", mail="x")}})
    tried = forked.graph.merge("dev", dry_run=True, strategy=lambda _: {"mail": "x"})
    assert [c.kind for c in tried.conflicts] == ["unique_violation"]


def test_session_resolves_conflicts_one_by_one(forked: Both) -> None:
    _people(forked, "main", a=1, b=1, c=1)
    _people(forked, "dev", a=2, b=2, c=2)
    session = forked.graph.branches.merge_session("dev")
    assert [c.entity_id for c in session.conflicts] == ["a", "b", "c"]
    for at, choice in enumerate(["ours", "theirs", {"p": 7}]):
        session.resolve(at, choice)
    session.resolve(1, "ours").resolve(1, "theirs")
    assert (len(session), len(session.conflicts)) == (0, 3)
    assert session.preview().stats["updates"] == 2
    done = session.commit(message="by hand")
    assert (done.outcome, done.stats["resolved"], done.commit.message) == ("merged", 3, "by hand")
    rows = stored(forked.on("main"))["node:Person"]
    assert [rows[n]["p"] for n in "abc"] == [1, 2, 7]


@pytest.mark.parametrize("diverged", [False, True], ids=["fast_forward", "merged"])
def test_session_continues_after_maintenance_of_its_target(forked: Both, diverged: bool) -> None:
    _people(forked, "main", x=1)
    forked.merge("main", "dev")
    _people(forked, "dev", a=2, b=2)
    if diverged:
        _people(forked, "main", a=1)
    session = forked.graph.branches.merge_session("dev").resolve_all("theirs")
    _compacted(forked.on("main"), "node:Person")
    _people(forked, "dev", c=9)  # comes too late: what was captured is merged
    done = session.commit()
    assert done.outcome == "merged"
    rows = stored(forked.on("main"))["node:Person"]
    assert {n: row["p"] for n, row in rows.items()} == {"a": 2, "b": 2, "c": 0, "x": 1}


def test_session_rejects_unresolved_and_unknown_conflicts(forked: Both) -> None:
    _people(forked, "main", a=1, b=1)
    _people(forked, "dev", a=2, b=2)
    session = forked.graph.branches.merge_session("dev")
    session.resolve_all("theirs", type="Knows").resolve(session.conflicts[0], "theirs")
    with pytest.raises(MergeConflict) as caught:
        session.commit()
    assert [c.entity_id for c in caught.value.conflicts] == ["b"]
    with pytest.raises(InputError):
        session.resolve(9, "ours")
    assert session.to_arrow().num_rows == 2
    _people(forked, "main", c=9)
    session.resolve_all("ours")
    with pytest.raises(ReadSetConflict):
        session.commit()


def test_parallel_edges_of_both_sides_are_reported_and_can_be_unified(forked: Both) -> None:
    forked.put("main", {"edge:Knows": {"m": edge("a", "b", 1), "o": edge("a", "b", 2)}})
    forked.put("dev", {"edge:Knows": {"n": edge("a", "b", 1), "x": edge("a", "b", 1)}})
    tried = forked.graph.merge("dev", dry_run=True)
    assert [tuple(one) for one in tried.parallel_edges] == [("edge:Knows", "m", "n")]
    assert tried.stats["inserts"] == 2
    done = forked.graph.merge("dev", collapse_edges=True)
    assert sorted(stored(forked.on("main"))["edge:Knows"]) == ["m", "o", "x"]
    assert done.commit.details == {"granularity": "property", "collapse_edges": True}


def test_merge_can_delete_its_source_branch(forked: Both) -> None:
    _people(forked, "dev", a=1)
    done = forked.graph.merge("dev", delete_branch=True)
    assert (done.branch_deleted, done.branch_delete_error) == (True, None)
    assert "dev" not in forked.graph.branches
    made = forked.graph.branches.create("dev")
    done = made.merge("dev", "main", delete_branch=True)
    assert (done.outcome, done.branch_deleted) == ("already_up_to_date", False)
    assert "branch 'dev' cannot be deleted: this handle is open on it" in str(done.branch_delete_error)


def test_source_branch_that_moved_on_is_not_deleted(forked: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    _people(forked, "dev", a=1)
    real = publish_merge

    def late(*given: Any) -> Any:
        _people(forked, "dev", a=2)
        return real(*given)

    monkeypatch.setattr(merging, "publish_merge", late)
    done = forked.graph.merge("dev", delete_branch=True)
    assert done.branch_deleted is False
    assert "its head is no longer commit" in str(done.branch_delete_error)
    assert stored(forked.on("main"))["node:Person"]["a"]["p"] == 1, "the captured commit is merged"
    assert forked.graph.merge("dev").outcome == "merged"
    assert stored(forked.on("main"))["node:Person"]["a"]["p"] == 2


@pytest.mark.parametrize("diverged", [False, True], ids=["fast_forward", "merged"])
def test_concurrent_write_to_the_target_is_kept(forked: Both, monkeypatch: pytest.MonkeyPatch, diverged: bool) -> None:
    _people(forked, "dev", a=1)
    if diverged:
        _people(forked, "main", b=1)
    real = publish_merge

    def late(*given: Any) -> Any:
        monkeypatch.setattr(merging, "publish_merge", real)
        _people(forked, "main", c=1)
        return real(*given)

    monkeypatch.setattr(merging, "publish_merge", late)
    with pytest.raises(ReadSetConflict) as caught:
        forked.graph.merge("dev")
    assert (caught.value.member, caught.value.retryable) == ("graph_head", "fresh")
    assert list_intents(forked.graph._handle.store).pending == ()
    assert [c.operation for c in forked.on("main").log(limit=2)] == ["load", "load"]
    assert forked.merge("dev") == "merged"


def test_merge_survives_maintenance_of_its_target(forked: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    _people(forked, "main", x=1)
    _people(forked, "dev", a=1)
    real = publish_merge

    def late(*given: Any) -> Any:
        monkeypatch.setattr(merging, "publish_merge", real)
        _compacted(forked.on("main"), "node:Person")
        return real(*given)

    monkeypatch.setattr(merging, "publish_merge", late)
    assert forked.graph.merge("dev").outcome == "merged"
    assert stored(forked.on("main"))["node:Person"]["a"]["p"] == 1


def test_racing_identical_merges_land_once(forked: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    forked.put("dev", {"edge:Knows": {"k": edge("a", "b")}})
    forked.drop("dev", "edge:Knows", "k")
    real = publish_merge

    def late(*given: Any) -> Any:
        monkeypatch.setattr(merging, "publish_merge", real)
        forked.graph.merge("dev")
        return real(*given)

    monkeypatch.setattr(merging, "publish_merge", late)
    assert forked.graph.merge("dev").outcome == "already_up_to_date"
    assert [c.operation for c in forked.on("main").log()].count("merge") == 1


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "recreated"])
def test_deleted_source_is_rejected(forked: Both, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    _people(forked, "dev", a=1)
    real = publish_merge

    def late(*given: Any) -> Any:
        branch_lifecycle.delete_branch(forked.graph._handle.store, "dev")
        if again:
            forked.graph.branches.create("dev")
        return real(*given)

    monkeypatch.setattr(merging, "publish_merge", late)
    with pytest.raises(ReadSetConflict) as caught:
        forked.graph.merge("dev")
    assert caught.value.member == "source_branch"
    assert stored(forked.on("main"))["node:Person"]["a"]["p"] == 0


def test_invalid_merges_are_rejected(forked: Both) -> None:
    head = forked.on("main").head.id
    with pytest.raises(InputError):
        forked.graph.merge("main", "main")
    with pytest.raises(BranchNotFound):
        forked.graph.merge("nobody")
    with pytest.raises(InputError):
        forked.graph.merge("dev", granularity="row")
    _people(forked, "dev", a=1)
    with pytest.raises(PreconditionFailed):
        forked.graph.merge("dev", if_commit=forked.on("dev").head.id)
    assert forked.on("main").head.id == head


def test_merge_over_its_row_limit_is_rejected(forked: Both) -> None:
    _people(forked, "main", x=1)
    _people(forked, "dev", a=1, b=1)
    with pytest.raises(ResourceLimitExceeded):
        forked.graph.merge("dev", limits=MergeLimits(rows=1))
    assert forked.graph.merge("dev", limits=MergeLimits(rows=2)).outcome == "merged"


GROWN = "node Thing { k: String @key  n: String?  c: I64 @default(3) }"


def test_schema_defaults_on_both_branches_are_not_changes(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Thing { k: String @key  n: String? }")
    graph.insert("Thing", {"k": "x"}, {"k": "y"}, {"k": "z"})
    dev = graph.branches.create("dev")
    for one in (graph, dev):
        one.schema.apply(GROWN)
    dev.delete("Thing", where="k = 'x'")
    dev.update("Thing", where="k = 'y'", set={"n": "new"})
    graph.update("Thing", where="k = 'z'", set={"n": "ours"})
    assert graph.merge("dev").stats["updates"] == 1
    rows = graph.query("match { $t: Thing } return { $t.k as k, $t.n as n, $t.c as c }").to_records()
    assert sorted(map(tuple, rows)) == [("y", "new", 3), ("z", "ours", 3)]


def test_widened_numbers_on_both_branches_are_not_changes(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Thing { k: String @key  n: I32 }")
    graph.insert("Thing", {"k": "x", "n": 1}, {"k": "y", "n": 2})
    dev = graph.branches.create("dev")
    for one in (graph, dev):
        one.schema.apply("node Thing { k: String @key  n: I64 }")
    dev.delete("Thing", where="k = 'x'")
    assert graph.merge("dev").outcome == "merged"
    assert graph.nodes("Thing").count() == 1
