"""The change feed of a branch: complete commits in order, from any cursor."""

import json
import os
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    ChangeCursorRejected,
    CommitHasNoParent,
    InputError,
    UsageError,
)
from omnigraph.values.clock_and_ids import deterministic_ids
from omnigraph.values.table_key import TableKey
from tests.api.change_feed.conftest import FIVE, SCHEMA, build, told
from tests.rig.writes import rewrite, write

CASES = Path(__file__).parents[2] / "cases" / "changes"


def test_feed_from_the_beginning_lists_commits_oldest_first(shared: Graph) -> None:
    feed = shared.changes.feed("beginning")
    found = list(feed)
    assert told(found) == FIVE
    assert [one.commit.id for one in found] == [one.id for one in reversed(shared.log())][1:]
    assert feed.caught_up
    assert feed.cursor == found[-1].cursor


def ids_as_numbers() -> Callable[[str], str]:
    """Gives ids of commits and edges as they first came: which ones a write takes is its own."""
    known: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return known.setdefault(found[0], f"ulid-{len(known) + 1}")

    return lambda text: re.sub(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", number, text)


def test_block_format_and_order_match_the_golden_file(tmp_path: Path) -> None:
    numbered = ids_as_numbers()
    with deterministic_ids(datetime(2024, 1, 1, tzinfo=UTC), seed=1):
        graph = build(omnigraph.init(tmp_path / "g", SCHEMA, durability="os"))
        rows = [
            {"edge": "Knows", "from": "cy", "to": "ann", "data": {"since": "2024-01-01T00:00:00Z"}},
            {"type": "Person", "data": {"name": "zoe", "born": "2000-02-29", "face": "base64:AA=="}},
            {"type": "Firm", "data": {"name": "zeta"}},
            {"type": "Person", "data": {"name": "cy"}},
        ]
        graph.load(rows, mode="append")
        lines = [numbered(json.dumps(one.to_json())) for one in graph.changes.feed("beginning")]
    place = CASES / "blocks.jsonl"
    if os.environ.get("UPDATE_CASES"):
        place.write_text("\n".join(lines) + "\n")
    assert lines == place.read_text().splitlines()


def test_default_start_is_now_and_returns_only_a_cursor(graph: Graph) -> None:
    feed = graph.changes.feed()
    assert (list(feed), feed.caught_up) == ([], True)
    graph.insert("Firm", {"name": "new"})
    assert told(graph.changes.feed(cursor=feed.cursor)) == [[("insert", "Firm", "new")]]


def test_cursor_points_behind_its_block(shared: Graph) -> None:
    for number, block in enumerate(shared.changes.feed("beginning"), 1):
        assert told(shared.changes.feed(cursor=block.cursor)) == FIVE[number:]
        assert told(shared.changes.feed(f"after:{block.commit.id}")) == FIVE[number:]


def test_commits_after_the_feed_was_opened_are_left_to_the_next_feed(graph: Graph) -> None:
    feed = graph.changes.feed("beginning")
    next(feed)
    graph.insert("Firm", {"name": "late"})
    assert told(feed) == FIVE[1:]
    assert told(graph.changes.feed(cursor=feed.cursor)) == [[("insert", "Firm", "late")]]


def test_filter_keeps_all_commits_and_only_matching_changes(shared: Graph) -> None:
    firms = shared.changes.feed("beginning", types=["Firm"])
    assert [len(one.changes) for one in firms] == [0, 0, 0, 0, 1]
    edges = shared.changes.feed("beginning", kinds=["edge"], ops=["delete"])
    assert told(edges) == [[], [], [], [("delete", "Knows", "k")], []]


def test_merge_is_reported_against_its_first_parent(graph: Graph) -> None:
    start = graph.changes.feed().cursor
    side = graph.branches.create("side")
    side.insert("Firm", {"name": "one"})
    side.insert("Firm", {"name": "two"})
    graph.refresh().insert("Firm", {"name": "mine"})
    made = graph.merge("side").commit
    assert made is not None
    both = [("insert", "Firm", "one"), ("insert", "Firm", "two")]
    assert told(graph.changes.feed(cursor=start)) == [[("insert", "Firm", "mine")], both]
    assert [(one.op, one.type, one.id) for one in graph.changes.of_commit(made.id)] == both
    with pytest.raises(InputError, match="not in the first-parent history of branch 'main'"):
        graph.changes.feed(f"after:{side.head.id}")


def test_feed_starts_after_any_revision(shared: Graph, tmp_path: Path) -> None:
    assert told(shared.changes.feed("after:HEAD~2")) == FIVE[-2:]
    assert told(shared.changes.feed("after:main")) == []
    with pytest.raises(InputError, match="unknown revision 'v0'"):
        shared.changes.feed("after:v0")
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    graph.tags.create("v1")
    graph.insert("Firm", {"name": "one"})
    assert told(graph.changes.feed("after:v1")) == [[("insert", "Firm", "one")]]
    assert told(graph.changes.poll("after:v1").blocks) == [[("insert", "Firm", "one")]]
    side = graph.branches.create("side")
    side.insert("Firm", {"name": "two"})
    with pytest.raises(InputError, match=f"revision 'side' \\(commit {side.head.id}\\) is not in the first-parent"):
        graph.changes.feed("after:side")


def test_order_does_not_depend_on_clocks(tmp_path: Path) -> None:
    with deterministic_ids(datetime(2024, 5, 1, tzinfo=UTC), seed=1):
        graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    for day, name in ((9, "one"), (3, "two"), (6, "three"), (1, "four")):
        with deterministic_ids(datetime(2024, 5, day, tzinfo=UTC), seed=day):  # another machine each time
            graph.insert("Firm", {"name": name})
    found = [block[0][2] for block in told(graph.changes.feed("beginning"))]
    assert found == ["one", "two", "three", "four"]


def test_branch_feed_includes_inherited_commits(graph: Graph) -> None:
    side = graph.branches.create("side")
    side.insert("Firm", {"name": "one"})
    assert told(side.changes.feed("beginning")) == [*FIVE, [("insert", "Firm", "one")]]


def test_maintenance_commit_is_an_empty_block(graph: Graph) -> None:
    graph.insert("Person", {"name": "cy"})  # a second fragment
    start = graph.changes.feed().cursor
    assert write(graph._handle.branch_state, rewrite(), [TableKey("node:Person")]) is not None
    (block,) = graph.changes.feed(cursor=start)
    assert (block.commit.operation, list(block.changes)) == ("optimize", [])


def test_first_commit_has_no_parent_state(shared: Graph) -> None:
    first = shared.log()[-1]
    with pytest.raises(CommitHasNoParent) as error:
        shared.changes.of_commit(first)
    assert error.value.to_json()["change_diff_refusal"]["reason"] == "parentless_commit"


def test_schema_change_is_an_event_of_the_feed(graph: Graph) -> None:
    start, firms = graph.changes.feed().cursor, graph.changes.feed(types=["Firm"]).cursor
    graph.insert("Firm", {"name": "before"})
    graph.schema.apply(
        SCHEMA.replace("age: I32?", 'years: I64? @rename_from("age")  size: I32 @default(0)'), message="grow"
    )
    graph.insert("Person", {"name": "new", "size": 7})
    before, event, after = graph.changes.feed(cursor=start)
    assert [len(block.changes) for block in (before, event, after)] == [1, 0, 1]
    assert (before.schema_change, after.schema_change) == (None, None)
    change = event.schema_change
    assert change is not None
    assert (change.op, change.commit_id) == ("schema", event.commit.id)
    assert change.descriptions == (
        "add property node:Person.size: I32, set to 0 in existing entities",
        "rename node:Person.age to years",
        "widen node:Person.years from I32? to I64?",
    )
    assert str(change) == "\n".join(change.descriptions)
    document = event.to_json()
    assert list(document) == ["cause", "schema_change", "changes"]
    assert document["schema_change"]["op"] == "schema"
    step = document["schema_change"]["steps"][1]
    assert (step["kind"], step["from"], step["to"]) == ("rename_property", "age", "years")
    assert step["description"] == change.descriptions[1]
    assert "schema change" in repr(event)
    metadata = event.to_arrow().schema.metadata
    assert json.loads(metadata[b"schema_change"]) == document["schema_change"]
    assert after.to_arrow().schema.metadata is None
    # A filter keeps the steps of its types; the cursor advances over the others.
    filtered = list(graph.changes.feed(cursor=firms, types=["Firm"]))
    assert [block.schema_change for block in filtered] == [None, None, None]


def test_pages_carry_a_schema_change_once(graph: Graph) -> None:
    start = graph.changes.feed().cursor
    graph.schema.apply(SCHEMA.replace("node Firm { name: String @key }\n", ""), message="no firms")
    graph.schema.apply(graph.schema.source.replace("age: I32?", "age: I32?  size: I32?"))
    page = graph.changes.poll(cursor=start)
    assert [len(part.changes) for part in page.blocks] == [1, 0]
    assert [part.schema_change is not None for part in page.blocks] == [True, True]
    assert page.caught_up
    assert graph.changes.poll(cursor=page.cursor).blocks == ()
    dropped = graph.changes.commit_page(page.blocks[0].commit.id)
    assert dropped.schema_change is not None
    assert dropped.schema_change.descriptions == ("drop node type Firm (earlier versions stay readable) [OG-DS-102]",)
    graph.schema.apply(graph.schema.source.replace("age: I32?", ""), allow_data_loss=True)
    erased = graph.diff("HEAD~1").schema_change
    assert erased is not None
    assert erased.descriptions[0].startswith("drop property node:Person.age and its history")
    assert dropped.to_json()["schema_change"]["steps"][0]["kind"] == "drop_type"


def test_added_nullable_property_is_no_boundary_of_the_feed(graph: Graph) -> None:
    start = graph.changes.feed().cursor
    graph.schema.apply(SCHEMA.replace("age: I32?", "age: I32?  size: I32?"))
    graph.insert("Person", {"name": "new", "size": 7})
    blocks = told(graph.changes.feed(cursor=start))
    assert [block for block in blocks if block] == [[("insert", "Person", "new")]]


def test_filter_accepts_a_type_dropped_later(graph: Graph) -> None:
    start = graph.changes.feed(types=["Firm"]).cursor
    every = graph.changes.feed().cursor
    graph.schema.apply(SCHEMA.replace("node Firm { name: String @key }\n", ""))
    gone = [[("delete", "Firm", "acme")]]
    assert told(graph.changes.feed(cursor=start, types=["Firm"])) == gone
    assert told(graph.changes.feed(cursor=every)) == gone
    with pytest.raises(InputError, match="unknown type 'Firm'"):
        graph.changes.feed(types=["Firm"])


def test_filter_follows_a_renamed_type(graph: Graph) -> None:
    start = graph.changes.feed(types=["Firm"]).cursor
    named = SCHEMA.replace("node Firm {", 'node Company @rename_from("Firm") {')
    graph.schema.apply(named)
    graph.insert("Company", {"name": "new"})
    (_, block) = graph.changes.feed(cursor=start, types=["Company"])
    assert told([block]) == [[("insert", "Company", "new")]]
    with pytest.raises(InputError, match="unknown type 'Frm'"):
        graph.changes.feed(types=["Frm"])


def test_follow_yields_new_commits_until_the_handle_closes(graph: Graph) -> None:
    names = iter(("one", "two"))
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        name = next(names, None)
        if name is None:
            graph.close()
        else:
            graph.insert("Firm", {"name": name})

    found = told(graph.changes.follow(poll=7, wait=wait, ops=["insert"]))
    assert found == [[("insert", "Firm", "one")], [("insert", "Firm", "two")]]
    assert waits == [7, 7, 7]


def test_follow_starts_at_the_call_and_stops_on_request(graph: Graph) -> None:
    stop = threading.Event()
    following = graph.changes.follow(stop=stop, poll=0.01)
    graph.insert("Firm", {"name": "one"})
    assert told([next(following)]) == [[("insert", "Firm", "one")]]
    threading.Timer(0.05, stop.set).start()
    assert list(following) == []


def test_closing_the_handle_wakes_a_waiting_follower(graph: Graph) -> None:
    following = graph.changes.follow(poll=3600)
    threading.Timer(0.05, graph.close).start()
    assert list(following) == []


def test_follow_rejects_invalid_targets(shared: Graph) -> None:
    with pytest.raises(UsageError, match="cannot follow changes"):
        shared.at("HEAD").changes.follow()
    with pytest.raises(InputError, match="greater than 0"):
        shared.changes.follow(poll=0)


async def _follow(graph: Graph) -> list[list[tuple[str, str, str]]]:
    from omnigraph.api.async_graph import AsyncGraph

    found = []
    async for block in AsyncGraph(graph).changes.follow("beginning", poll=0.01):
        found.append(block)
        if len(found) == 5:
            graph.insert("Firm", {"name": "late"})
        if len(found) == 6:
            break
    return told(found)


def test_async_follow_yields_new_commits(graph: Graph) -> None:
    import asyncio

    assert asyncio.run(_follow(graph)) == [*FIVE, [("insert", "Firm", "late")]]


def test_feed_of_a_past_handle_ends_at_its_commit(shared: Graph) -> None:
    assert told(shared.at("HEAD~2").changes.feed("beginning")) == FIVE[:3]


def test_cursor_is_rejected_for_a_recreated_branch(graph: Graph) -> None:
    side = graph.branches.create("side")
    side.insert("Firm", {"name": "old"})
    cursor = side.changes.feed().cursor
    following = side.changes.follow(cursor=cursor, wait=lambda _: None)
    graph.branches.delete("side", force=True)
    with pytest.raises(BranchNotFound):
        next(following)
    again = graph.branches.create("side")
    again.insert("Firm", {"name": "new"})
    with pytest.raises(ChangeCursorRejected, match="deleted and recreated"):
        again.changes.feed(cursor=cursor)
    with pytest.raises(BranchNotFound):
        side.changes.feed(cursor=cursor)


def test_cursor_survives_a_branch_rename(graph: Graph) -> None:
    side = graph.branches.create("side")
    side.insert("Firm", {"name": "old"})
    cursor = side.changes.feed().cursor
    page = side.changes.poll("beginning", limit=1).next_page_token
    following = side.changes.follow(cursor=cursor, wait=lambda _: None)
    renamed = graph.branches.rename("side", "review")
    renamed.insert("Firm", {"name": "new"})
    for one in (renamed, side, graph.checkout("review")):
        assert [len(block.changes) for block in one.changes.feed(cursor=cursor)] == [1]
    assert renamed.changes.poll(page_token=page).blocks
    assert next(following).changes
    again = graph.branches.create("side")
    with pytest.raises(ChangeCursorRejected, match="its name now belongs to a different branch"):
        again.changes.feed(cursor=cursor)


def test_cursor_is_valid_in_a_copy(graph: Graph, tmp_path: Path) -> None:
    cursor = next(graph.changes.feed("beginning")).cursor
    graph.maintenance.copy_to(tmp_path / "copy")
    copied = omnigraph.open(tmp_path / "copy", read_only=True)
    assert told(copied.changes.feed(cursor=cursor)) == FIVE[1:]


def test_sinks_receive_batches(shared: Graph) -> None:
    batches = list(shared.changes.feed("beginning").to_arrow_batches())
    assert [one.num_rows for one in batches] == [2, 1, 1, 2, 1]
    row = batches[2].to_pylist()[0]
    assert (row["op"], json.loads(row["after"])["properties"]["age"]) == ("update", 2)


def test_changes_of_a_commit_are_listed(shared: Graph) -> None:
    changes = shared.changes
    assert [(change.op, change.id) for change in changes.of_commit("HEAD")] == [("insert", "acme")]
    assert [len(changes.of_commit(commit)) for commit in shared.log()[:-1]] == [1, 2, 1, 1, 2]
    edges = changes.of_commit("HEAD~1", kinds=["edge"])
    assert [(one.op, one.endpoints) for one in edges] == [("delete", {"src": "ann", "dst": "bob"})]
