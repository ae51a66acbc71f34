"""Commands that merge, diff, tag, revert, cherry-pick and draw branches."""

import json
import re
from pathlib import Path

import pytest

import omnigraph as library
from omnigraph.history.recovery_records import RecoveryRecord, record_operation_dropped
from omnigraph.storage.store import open_store
from tests.cli.conftest import Program
from tests.rig.invariants import files

ULID = "[0-9A-Z]{26}"
SCHEMA = "node Person { name: String @key  age: I64?  city: String? }"


@pytest.fixture
def graph(omnigraph: Program) -> str:
    """Ada and Bob in `g`; both branches changed her, and only `r` changed him."""
    made = library.init("g", SCHEMA, durability="os", actor="ann")
    made.insert("Person", {"name": "ada", "age": 1}, {"name": "bob", "age": 2}, message="both")
    review = made.branches.create("r")
    review.update("Person", where="name = 'ada'", set={"age": 5}, message="five")
    review.update("Person", where="name = 'bob'", set={"city": "Bonn"}, message="moved")
    made.update("Person", where="name = 'ada'", set={"age": 7}, message="seven")
    return "g"


CONFLICT = """\
  node Person 'ada': divergent_update
         base  main  r
    age  1     7     5
next commands:
  omnigraph branch merge r --store g --strategy ours   # keep the values from main
  omnigraph branch merge r --store g --strategy theirs   # take the values from r
  omnigraph branch merge r --store g --dry-run --json   # list all conflicts
"""


def test_conflict_shows_both_sides_and_the_next_command(
    omnigraph: Program, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = omnigraph("branch", "merge", "r", "--uri", graph)
    head = f"branch merge {Path(graph).absolute()} (direct, local)\n"
    said = "error: 1 conflict: 'r' cannot be merged into 'main'\n"
    assert ended.err == f"{head}{said}{CONFLICT}nothing was written\n"
    assert (ended.code, ended.out) == (1, "")
    seen = omnigraph("branch", "merge", "r", "--uri", graph, "--dry-run")
    assert seen.out == f"1 conflict: 'r' cannot be merged into 'main' as is\n{CONFLICT}"
    assert (seen.code, seen.err) == (0, "")
    monkeypatch.setenv("OMNIGRAPH_EXIT_CODES", "extended")
    told = omnigraph("branch", "merge", "r", "--uri", graph, "--json-errors")
    (one,) = json.loads(told.out)["merge_conflicts"]
    assert (told.code, one["ours"]["age"], one["theirs"]["age"]) == (3, 7, 5)


def test_changes_to_different_properties_are_merged(omnigraph: Program, graph: str) -> None:
    made = library.open(graph, durability="os")
    made.update("Person", where="name = 'ada'", set={"age": 1, "city": "Ulm"})
    ended = omnigraph("branch", "merge", "r", "--uri", graph, "--granularity", "entity", "-m", "why")
    suggested = f"  omnigraph branch merge r --store {graph} --message why   # merge changes to different properties\n"
    assert suggested in ended.err
    assert f"--store {graph} --granularity entity --message why --strategy ours   #" in ended.err
    assert "discarded" not in omnigraph("branch", "merge", "r", "--uri", graph, "--dry-run").out
    done = omnigraph("branch", "merge", "r", "--uri", graph)
    assert done.code == 0
    assert made["Person", "ada"].properties == {"name": "ada", "age": 5, "city": "Ulm"}


def test_resolved_merge_lands_and_deletes_the_branch(omnigraph: Program, graph: str) -> None:
    preview = ("branch", "merge", "r", "--uri", graph, "--dry-run", "--strategy", "Person=theirs")
    seen = omnigraph(*preview)
    assert seen.out == (
        "would merge r into main: 0 added, 2 changed, 0 removed, 1 conflict resolved\n"
        "1 change would be discarded:\n"
        "  node Person 'ada': age 7 from main\n"
    )
    ended = omnigraph(*preview[:5], "--strategy", "theirs", "--delete-branch", "-m", "why", "--json")
    told = json.loads(ended.out)
    assert (told["outcome"], told["branch_deleted"], told["source"]) == ("merged", True, "r")
    assert told["commit"]["message"] == "why"
    assert told["stats"]["resolved"] == told["stats"]["discarded"] == 1
    assert told["discarded"] == [
        {
            **{"entity_kind": "node", "type_name": "Person", "entity_id": "ada"},
            **{"side": "ours", "changed_on": "main", "part": "property", "property": "age", "value": 7},
        }
    ]
    assert omnigraph("branch", "list", graph).out == "main\n"
    assert omnigraph("branch", "merge", "r", "--uri", graph).code == 1
    omnigraph("branch", "create", "s", "--uri", graph)
    again = omnigraph("branch", "merge", "s", "--uri", graph)
    assert again.out == "main already has all changes from s\n"
    wrong = omnigraph("branch", "merge", "s", "--uri", graph, "--strategy", "ours", "--strategy", "theirs")
    assert wrong.code == 2
    assert omnigraph("branch", "merge", "s", "--uri", graph, "--strategy", "mine").code == 1


def test_a_default_strategy_may_have_exceptions(omnigraph: Program, graph: str) -> None:
    library.open(graph, durability="os").delete("Person", where="name = 'bob'")
    merge = ("branch", "merge", "r", "--uri", graph, "--strategy", "delete_vs_update=ours", "--strategy", "theirs")
    seen = omnigraph(*merge, "--dry-run")
    assert seen.out.splitlines()[0] == "would merge r into main: 0 added, 1 changed, 0 removed, 2 conflicts resolved"
    assert omnigraph(*merge).code == 0
    merged = library.open(graph, read_only=True)
    assert [(one["name"], one["age"]) for one in merged.nodes("Person")] == [("ada", 5)]
    twice = omnigraph(*merge, "--strategy", "ours")
    assert (twice.code, "pass ours or theirs at most once" in twice.err) == (2, True)


def test_a_branch_is_renamed(omnigraph: Program, graph: str) -> None:
    done = omnigraph("branch", "rename", "r", "review/old", "--uri", graph)
    assert done.out == "renamed branch r to review/old\n"
    assert omnigraph("branch", "list", graph).out == "main\nreview/old\n"
    gone = omnigraph("branch", "rename", "r", "x", "--uri", graph)
    assert (gone.code, "no branch 'r'" in gone.err) == (1, True)
    assert omnigraph("branch", "rename", "main", "x", "--uri", graph).code == 1


def test_diff_is_printed_counted_and_used_as_exit_code(omnigraph: Program, graph: str) -> None:
    assert omnigraph("diff", "main", "r", "--uri", graph).out == (
        "~ node Person 'ada': age 7 -> 5\n~ node Person 'bob': city null -> Bonn\n0 added, 2 changed, 0 removed\n"
    )
    since = omnigraph("diff", "main...r", "--uri", graph, "--stat")
    assert since.out == "Person: 0 added, 2 changed, 0 removed\n0 added, 2 changed, 0 removed\n"
    assert omnigraph("diff", "HEAD", "main", "--uri", graph, "--check").out == "no differences\n"
    assert omnigraph("diff", "main", "r", "--uri", graph, "--check").code == 5
    first = omnigraph("diff", "main~2", "--uri", graph)
    assert first.out.splitlines()[0] == "+ node Person 'ada'"
    told = json.loads(omnigraph("diff", "main", "r", "--uri", graph, "--json").out)
    assert [one["changed"] for one in told["changes"]] == [["age"], ["city"]]
    assert told["changes"][0]["before"]["properties"]["age"] == 7
    assert omnigraph("diff", "nowhere", "--uri", graph).code == 1


def test_tags_are_created_listed_used_and_deleted(omnigraph: Program, graph: str) -> None:
    made = omnigraph("tag", "create", "v1", "HEAD~1", "--uri", graph, "-m", "before", "--as", "bob")
    assert re.fullmatch(f"tagged {ULID} as v1\n", made.out)
    assert re.fullmatch(f"v1  {ULID}  [-0-9]+ [:0-9]+  bob  before\n", omnigraph("tag", "list", graph).out)
    (one,) = json.loads(omnigraph("tag", "list", graph, "--json").out)["tags"]
    assert (one["name"], one["graph_branch"], one["actor_id"]) == ("v1", "main", "bob")
    ask = ("query", "-e", "match { $p: Person } return { max($p.age) as age }", "--store", graph)
    for flag in ("--snapshot", "--at"):
        assert "\n2" in omnigraph(*ask, flag, "v1", "--format", "csv").out
    assert one["graph_commit_id"] in omnigraph("snapshot", graph, "--at", "v1").out
    assert omnigraph("schema", "show", graph, "--at", "v1").out == f"{SCHEMA}\n"
    assert omnigraph("export", graph, "--at", "v1~1").out == ""
    assert omnigraph("explain", *ask[1:], "--at", "v1").code == 0
    assert omnigraph(*ask, "--at", "v1", "--branch", "main").code == 2
    assert omnigraph("tag", "create", "v1", "--uri", graph).code == 1
    assert omnigraph("tag", "delete", "v1", "--uri", graph).out == "deleted tag v1\n"
    assert omnigraph("tag", "delete", "v1", "--uri", graph).code == 1


def test_commit_is_reverted_and_cherry_picked(omnigraph: Program, graph: str) -> None:
    done = omnigraph("revert", "HEAD", "--uri", graph, "--as", "bob")
    assert re.fullmatch(f"reverted HEAD on main: 0 added, 1 changed, 0 removed; commit {ULID}\n", done.out)
    assert 'bob  revert  Revert "seven"  (main)' in omnigraph("log", graph).out
    undone = omnigraph("revert", "HEAD~1", "--uri", graph)
    assert undone.out == "nothing to do: main no longer has the changes from HEAD~1\n"
    picked = omnigraph("cherry-pick", "r", "--uri", graph, "--dry-run")
    assert picked.out == "would pick r on main: 0 added, 1 changed, 0 removed\n"
    told = json.loads(omnigraph("cherry-pick", "r~1", "--uri", graph, "--json").out)
    assert (told["outcome"], told["commit"]["operation"]) == ("merged", "cherry_pick")
    again = omnigraph("cherry-pick", "r~1", "--uri", graph)
    assert again.out == "nothing to do: main already has the changes from r~1\n"
    retained = omnigraph("revert", "HEAD~2", "--uri", graph, "--strategy", "ours")
    assert retained.out.startswith("nothing to do: the strategy keeps the values from main\n1 change discarded:\n")
    clash = omnigraph("revert", "HEAD~2", "--uri", graph)
    assert clash.code == 1
    assert "'HEAD~2' cannot be reverted on 'main'" in clash.err
    assert "    age  7     5     1" in clash.err
    wrong = omnigraph("revert", "nothing", "--uri", graph)
    assert (wrong.code, "main~3" in wrong.err) == (1, True)


def test_range_of_commits_is_reverted(omnigraph: Program, graph: str) -> None:
    previewed = omnigraph("revert", "main..r", "--branch", "r", "--uri", graph)
    assert "error: 'main' is not an ancestor of 'r'" in previewed.err
    previewed = omnigraph("revert", "main~1..r", "--branch", "r", "--uri", graph, "--dry-run")
    assert previewed.out == "would revert main~1..r on r: 0 added, 2 changed, 0 removed\n"
    clash = omnigraph("revert", "main~1..r", "--uri", graph)
    assert clash.code == 1
    assert "'main~1..r' cannot be reverted on 'main'" in clash.err
    assert re.search(r"base +main +main~1\n", clash.err)
    done = json.loads(omnigraph("revert", "main~1..", "--branch", "r", "--uri", graph, "--json").out)
    assert (done["outcome"], done["stats"]["updates"], done["commit"]["operation"]) == ("merged", 2, "revert")
    assert omnigraph("diff", "main~1", "r", "--uri", graph).out == "no differences\n"


def test_branch_is_reset_to_a_tag(omnigraph: Program, graph: str) -> None:
    omnigraph("tag", "create", "v1", "main~1", "--uri", graph)
    head = library.open(graph).head.id
    previewed = omnigraph("branch", "reset", "main", "v1", "--uri", graph, "--dry-run")
    assert previewed.out == "would reset main to v1: 0 added, 1 changed, 0 removed\n"
    assert omnigraph("branch", "reset", "main", "v1", "--uri", graph, "--if-commit", "x").code == 4
    done = omnigraph("branch", "reset", "main", "v1", "--uri", graph, "--as", "bob")
    assert re.fullmatch(f"reset main to v1: 0 added, 1 changed, 0 removed; commit {ULID}\n", done.out)
    assert 'bob  reset  Reset to "both"  (main)' in omnigraph("log", graph).out
    assert omnigraph("diff", "v1", "--uri", graph).out == "no differences\n"
    again = omnigraph("branch", "reset", "main", "v1", "--uri", graph)
    assert again.out == "nothing to do: main already matches v1\n"
    told = json.loads(omnigraph("branch", "reset", "r", "HEAD~1", "--uri", graph, "--json", "-m", "back").out)
    assert (told["branch"], told["outcome"], told["stats"]["updates"]) == ("r", "merged", 1)
    assert (told["commit"]["operation"], told["commit"]["message"]) == ("reset", "back")
    assert omnigraph("branch", "reset", "main", "HEAD~1", "--uri", graph).code == 0
    assert omnigraph("diff", head, "--uri", graph).out == "no differences\n"
    wrong = omnigraph("branch", "reset", "main", "ghost", "--uri", graph)
    assert (wrong.code, "unknown revision 'ghost'" in wrong.err) == (1, True)


def test_log_graph_is_drawn_on_a_terminal(omnigraph: Program, graph: str) -> None:
    omnigraph("branch", "merge", "r", "--uri", graph, "--strategy", "ours", "-m", "done")
    drawn = re.sub(f"{ULID}  [-0-9]+ [:0-9]+", "ID", omnigraph("log", graph, "--ascii").out)
    assert drawn == (
        "*    ID  -  merge  done  (main)\n"
        "|-.\n"
        "* |  ID  ann  mutate  seven\n"
        "| *  ID  ann  mutate  moved  (r)\n"
        "| *  ID  ann  mutate  five\n"
        "|-'\n"
        "*    ID  ann  load  both\n"
        "*    ID  ann  init  created\n"
    )
    assert omnigraph("log", graph, "--limit", "2").out.endswith("4 older commits not shown\n")
    told = json.loads(omnigraph("log", graph, "--json", "--limit", "1").out)
    assert [one["message"] for one in told["commits"]] == ["done"]
    assert "\x1b[" in omnigraph("log", graph, "--color", "always").out


def test_suggested_command_repeats_the_given_options(omnigraph: Program, graph: str) -> None:
    how = ("--granularity", "entity", "-m", "two words", "--delete-branch")
    ended = omnigraph("branch", "merge", "r", "--uri", graph, *how)
    kept = "--granularity entity --message 'two words' --delete-branch --strategy ours"
    assert f"  omnigraph branch merge r --store {graph} {kept}   #" in ended.err
    assert "# merge changes" not in ended.err
    sides = ("--strategy", "orphan_edge=ours")
    named = omnigraph("branch", "merge", "r", "--uri", graph, *sides, "--dry-run")
    assert f"--store {graph} --strategy orphan_edge=ours --dry-run --json   #" in named.out
    decided = f"--store {graph} --strategy orphan_edge=ours --strategy Person=theirs"
    assert f"{decided}   #" in named.out, "what was decided stays decided"
    done = omnigraph("branch", "merge", "r", *decided.split())
    assert done.code == 0, done.err


def test_violated_rule_is_shown_with_the_values(omnigraph: Program) -> None:
    made = library.init("g", "node N { k: String @key  u: String @unique }", durability="os")
    other = made.branches.create("r")
    other.insert("N", {"k": "p", "u": "same"})
    made.insert("N", {"k": "q", "u": "same"})
    ended = omnigraph("branch", "merge", "r", "--uri", "g")
    assert "unique_violation" in ended.err
    assert "'q'" in ended.err


def test_entity_history_and_blame_are_printed(omnigraph: Program, graph: str) -> None:
    seen = omnigraph("history", "Person", "ada", "--uri", graph)
    lines = [re.sub(f"^{ULID}  [0-9-]+ [0-9:]+", "ID WHEN", one) for one in seen.out.splitlines()]
    assert lines == [
        "ID WHEN  ann  update  seven",
        "    age 1 -> 7",
        "ID WHEN  ann  insert  both",
        "    age 1, city null, name ada",
    ]
    there = omnigraph("history", "Person", "ada", "--uri", graph, "--branch", "r", "--json")
    told = json.loads(there.out)
    assert [one["message"] for one in told["versions"]] == ["five", "both"]
    assert (told["complete"], told["gap_commit_id"]) == (True, None)
    assert told["versions"][0]["before"]["age"] == 1
    before = omnigraph("history", "Person", "ada", "--uri", graph, "--at", "main~1", "--limit", "1")
    assert before.out.splitlines()[0].endswith("insert  both")
    seen = omnigraph("blame", "Person", "ada", "--uri", graph)
    lines = [re.sub(f"{ULID}  [0-9-]+ [0-9:]+", "ID WHEN", one) for one in seen.out.splitlines()]
    assert lines == [
        "age   7     ID WHEN  ann  seven",
        "city  null  ID WHEN  ann  both",
        "name  ada   ID WHEN  ann  both",
    ]
    told = json.loads(omnigraph("blame", "Person", "ada", "--uri", graph, "--json").out)
    assert (told["properties"][0]["property"], told["properties"][0]["value"]) == ("age", 7)
    for verb, said in (("history", "no Person 'eve' in this history"), ("blame", "no Person 'eve'")):
        ended = omnigraph(verb, "Person", "eve", "--uri", graph)
        assert (ended.code, said in ended.err) == (1, True)
    assert omnigraph("blame", "Ghost", "eve", "--uri", graph).code == 1


def test_reclaimed_history_is_reported(omnigraph: Program, graph: str) -> None:
    made = library.open(graph, durability="os")
    made.branches.delete("r", force=True)  # else what both stand on would be kept
    made.maintenance.cleanup(keep=1, older_than=0, grace=0, confirm=True)
    seen = omnigraph("history", "Person", "ada", "--uri", graph)
    assert re.fullmatch(f"a cleanup removed the history before commit {ULID}\n", seen.out)
    told = json.loads(omnigraph("history", "Person", "ada", "--uri", graph, "--json").out)
    assert (told["versions"], told["complete"]) == ([], False)
    assert "name  ada   before the oldest retained commit\n" in omnigraph("blame", "Person", "ada", "--uri", graph).out


def test_discarded_changes_are_listed_up_to_a_limit(omnigraph: Program) -> None:
    made = library.init("h", SCHEMA, durability="os")
    made.insert("Person", *({"name": f"p{at:02}", "age": 0, "city": "Bonn"} for at in range(14)))
    side = made.branches.create("r")
    side.update("Person", where="name != 'p13'", set={"age": 5})
    side.delete("Person", where="name = 'p13'")
    made.update("Person", where="age = 0", set={"age": 7})
    merge = ("branch", "merge", "r", "--uri", "h", "--strategy", "theirs")
    said = omnigraph(*merge, "--dry-run").out.splitlines()
    assert said[1:3] == ["14 changes would be discarded:", "  node Person 'p00': age 7 from main"]
    assert (len(said), said[-1]) == (13, "  and 4 more (use --json to list all of them)")
    told = json.loads(omnigraph(*merge, "--json").out)["discarded"]
    assert len(told) == 14
    assert (told[-1]["part"], told[-1]["value"]) == ("entity", {"age": 7, "city": "Bonn", "name": "p13"})
    assert omnigraph("log", "h", "--limit", "1").out.count("  merge  Merge branch 'r' into main") == 1


@pytest.mark.parametrize(("side", "loser", "age"), [("theirs", "main", 9), ("ours", "before HEAD~1", 1)])
def test_revert_names_what_it_discards(omnigraph: Program, graph: str, side: str, loser: str, age: int) -> None:
    made = library.open(graph, durability="os")
    made.update("Person", where="name = 'ada'", set={"age": 9, "city": "Ulm"})
    ended = omnigraph("revert", "HEAD~1", "--uri", graph, "--strategy", side, "--dry-run")
    verb = "would be discarded" if side == "theirs" else "discarded"  # ours leaves nothing to do
    assert ended.out.endswith(f"1 change {verb}:\n  node Person 'ada': age {age} from {loser}\n")


def test_lost_edges_of_a_kept_node_are_reported(omnigraph: Program) -> None:
    made = library.init("h", f"{SCHEMA}\nedge Knows: Person -> Person", durability="os")
    made.insert("Person", {"name": "ada"}, {"name": "bob"})
    edge = made.connect_nodes("Knows", [("ada", "bob", {})]).ids["Knows"][0]
    made.branches.create("r").update("Person", where="name = 'ada'", set={"age": 5})
    made.delete("Person", where="name = 'ada'")
    merge = ("branch", "merge", "r", "--uri", "h", "--strategy", "theirs")
    warned = (
        "warning: 1 edge deleted along with a node will not be restored, although the merge keeps the node:\n"
        f"  Knows '{edge}' (ada -> bob) was deleted along with 'ada' on main\n"
    )
    assert warned in omnigraph(*merge, "--dry-run").err
    told = json.loads(omnigraph(*merge, "--json").out)
    assert told["lost_edges"] == [
        {"type_name": "Knows", "entity_id": edge, "from": "ada", "to": "bob", "node": "ada", "deleted_on": "main"}
    ]


def test_branch_starts_at_any_revision(omnigraph: Program, graph: str) -> None:
    omnigraph("tag", "create", "v1", "r~1", "--uri", graph)
    for at, point in enumerate(("v1", "r~1", "main~1", "main")):
        done = omnigraph("branch", "create", f"b{at}", "--from", point, "--uri", graph)
        assert done.out.startswith(f"created branch b{at} from {point} at ")
    assert omnigraph("branch", "create", "x", "--from", "ghost", "--uri", graph).code == 1
    ended = omnigraph("revert", "HEAD~x", "--uri", graph)
    assert "error: 'HEAD~x' is not a revision (expected steps such as HEAD~2 or HEAD^)\n" in ended.err
    refused = omnigraph("tag", "create", "HEAD", "--uri", graph)
    assert "'HEAD' cannot be used as a tag name: 'HEAD' is reserved" in refused.err


def test_invalid_name_is_rejected_before_any_write(omnigraph: Program, graph: str) -> None:
    calls = (
        ("branch", "create", "x" * 300),
        ("branch", "rename", "r", "."),
        ("branch", "rename", "r", "a\udcffb"),  # bytes of an argument that are not UTF-8
        ("tag", "create", "y" * 1100),
    )
    before = files(open_store(graph))
    for call in calls:
        refused = omnigraph(*call, "--uri", graph)
        assert (refused.code, refused.out) == (1, "")
        assert " cannot be used as a " in refused.err
        assert len(refused.err) < 400
    assert files(open_store(graph)) == before


def test_branch_that_cannot_be_deleted_is_a_warning(omnigraph: Program, graph: str) -> None:
    merge = ("branch", "merge", "main", "--into", "r", "--uri", graph, "--strategy", "ours")
    done = omnigraph(*merge, "--delete-branch")
    assert "warning: 'main' was merged, but not deleted: 'main' cannot be deleted" in done.err
    assert (done.code, done.out[:24]) == (0, "merged main into r: 0 ad")
    told = json.loads(omnigraph(*merge, "--delete-branch", "--json").out)
    assert (told["outcome"], told["branch_deleted"]) == ("already_up_to_date", False)
    assert "'main' cannot be deleted" in told["branch_delete_error"]


def test_merge_shows_the_schema_changes_that_it_brings(omnigraph: Program) -> None:
    Path("s.pg").write_text("node Person { name: String @key }")
    assert omnigraph("init", "--schema", "s.pg", "g").code == 0
    for branch, properties in (("first", "age: I32?"), ("second", "city: String?")):
        assert omnigraph("branch", "create", branch, "--store", "g").code == 0
        Path("s.pg").write_text(f"node Person {{ name: String @key  {properties} }}")
        assert omnigraph("schema", "apply", "g", "--schema", "s.pg", "--branch", branch).code == 0
    lines = {
        "first": "* schema: add property node:Person.age: I32?",
        "second": "* schema: add property node:Person.city",
    }
    for branch, line in lines.items():  # a fast-forward, and a merge of two schemas
        for arguments in (["--dry-run"], []):
            assert line in omnigraph("branch", "merge", branch, "--store", "g", *arguments).out
    again = omnigraph("branch", "merge", "second", "--store", "g", "--json")
    assert "schema_change" not in json.loads(again.out)


def test_booleans_are_printed_as_in_queries(omnigraph: Program) -> None:
    made = library.init("flags", "node Flag { name: String @key  on: Bool }", durability="os")
    made.insert("Flag", {"name": "a", "on": True})
    made.update("Flag", where="name = 'a'", set={"on": False})
    assert "on true -> false" in omnigraph("diff", "HEAD~1", "--uri", "flags").out
    assert "on    false  " in omnigraph("blame", "Flag", "a", "--uri", "flags").out


def test_recovery_actor_selects_commits_that_recovery_finished(omnigraph: Program, graph: str) -> None:
    store, head = open_store(graph), library.open(graph).head
    finished = RecoveryRecord(head.id, "finished", "load", "main", "ann", head.id, 1)
    record_operation_dropped(store, finished)
    ended = omnigraph("commit", "list", graph, "--filter", "actor=omnigraph:recovery", "--json")
    assert [one["graph_commit_id"] for one in json.loads(ended.out)["commits"]] == [head.id]
