"""Loads: modes, rejections with positions, and no effect of a rejected load."""

from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.errors import (
    ConstraintViolation,
    ExternalBlobPolicyError,
    InputError,
    KeyConflict,
    OmnigraphError,
    PropertyValueError,
    ResourceLimitExceeded,
    UniqueViolation,
    UsageError,
    VersionConflict,
)
from omnigraph.ingest.load import LoadOptions
from omnigraph.ingest.load_limits import LoadLimits
from omnigraph.values.table_key import TableKey
from tests.engine.writes.conftest import World

REPORT = LoadOptions(on_error="report")
U = b'{"type":"User","data":{"login":"a",'
E = b'{"type":"Event","data":{"title":"t","at":0,'


def user(**data: Any) -> dict[str, Any]:
    return {"type": "User", "data": data}


def test_append_is_strict_and_merge_replaces(world: World) -> None:
    kim = b'{"type":"User","data":{"login":"kim"}}'
    assert world.load(kim).nodes == {"User": 1}
    before = world.head
    with pytest.raises(KeyConflict) as taken:
        world.load(b"\n" + kim)
    assert (taken.value.type_name, taken.value.entity_id) == ("User", "kim")
    assert taken.value.details["line"] == 2
    assert world.head == before
    world.load(b'{"type":"User","data":{"login":"ann","age":5}}', "merge")
    ann = world.user("ann")
    assert (ann["age"], ann["bio"], ann["mail"]) == (5, None, None)


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_duplicate_key_in_one_input_is_rejected(world: World, mode: str) -> None:
    with pytest.raises(UniqueViolation) as twice:
        world.load([user(login="ann"), user(login="bob"), user(login="zed"), user(login="zed")], mode)
    facts = twice.value
    assert (facts.property, facts.line, facts.first_input_position) == ("login", 4, 3)


@pytest.mark.parametrize(
    ("line", "error", "words"),
    [
        (b'{"type":"User","data"', InputError, "line 3: malformed JSON"),
        (b'{"type":"User","edge":"Follows"}', InputError, "line 3: .*'type' and 'edge'"),
        (b"{}", InputError, "line 3: .*'type' and 'edge'"),
        (b"[]", InputError, "line 3: expected one JSON object, got an array"),
        (b'{"type":"User","data":{"login":"a"},"x":1}', InputError, "line 3: unknown member 'x'"),
        (b'{"type":"user"}', InputError, "line 3: unknown node type 'user'"),
        (b'{"type":7}', InputError, "line 3: 'type' must be a string, got a number"),
        (b'{"type":"User","data":[]}', InputError, "line 3: 'data' must be an object"),
        (U + b'"login":"b"}}', InputError, "'login' appears twice"),
        (U + b'"nick":1}}', InputError, "node:User has no property 'nick'"),
        (b'{"type":"User","data":{"_rowid":1}}', InputError, "'_rowid'"),
        (U + b'"age":"3"}}', PropertyValueError, "line 3: .*User.age"),
        (U + b'"age":3.0}}', PropertyValueError, "line 3: .*User.age"),
        (b'{"type":"User","data":{"age":3}}', PropertyValueError, "line 3: .*User.login"),
        (b'{"type":"User","data":{"id":"b","login":"a"}}', InputError, "line 3: id 'b' .*'a'"),
        (U + b'"id":7}}', InputError, "line 3: 'id' must be a string"),
        (b'{"edge":"Follows","to":"bob"}', InputError, "line 3: 'from' must be a string"),
        (b'{"edge":"Owns","from":"a","to":"b","data":{"src":"a"}}', InputError, "'src'"),
        (b'{"edge":"Likes","from":"ann","to":"bob"}', InputError, "line 3: unknown edge type"),
        (E + b'"v":[1,null]}}', PropertyValueError, "Event.v"),
        (E + b'"v":[1,2,3]}}', PropertyValueError, "an array of length 3"),
        (U + b'"pic":"base64:@@"}}', PropertyValueError, "User.pic"),
        (U + b'"pic":"https://x/y"}}', ExternalBlobPolicyError, "x/y"),
        (U + b'"age":151}}', ConstraintViolation, "line 3: @range"),
        (b'{"type":"User","data":{"login":"A"}}', ConstraintViolation, "line 3: @check"),
        (U + b'"role":"root"}}', ConstraintViolation, "admin, user"),
        (U + b'"mail":"a@x"}}', UniqueViolation, "line 3: @unique"),
        (b'{"edge":"Follows","from":"ann","to":"no"}', ConstraintViolation, "line 3: .*dst 'no'"),
        (b'{"type":"User","truncate":true}', InputError, "line 3: 'truncate' requires mode 'overwrite'"),
    ],
)  # fmt: skip
def test_bad_line_is_located_and_nothing_is_written(
    quiet: World, line: bytes, error: type[OmnigraphError], words: str
) -> None:
    before = quiet.head
    with pytest.raises(error, match=words):
        quiet.load(b'{"type":"User","data":{"login":"first"}}\n\n' + line)
    assert quiet.head == before


def test_accepted_inputs_are_loaded(world: World) -> None:
    lines = b"""
        {"edge":"follows","from":"bob","to":"zoe"}
        {"type":"User","data":{"login":"zoe","id":"zoe","age":null,"pic":"base64:"}}\r
        {"type":"Event","data":{"id":"E","title":"t","at":"2024-01-01","v":[1,2.5]}}
        {"type":"Event","data":{"id":"F","title":"u","at":0}}
    """
    done = world.load(lines)
    assert (done.nodes, done.edges, done.total) == ({"Event": 2, "User": 1}, {"Follows": 1}, 4)
    first, second = world.rows("node:Event")
    assert (first["at"].isoformat(), first["v"]) == ("2024-01-01T00:00:00+00:00", [1.0, 2.5])
    assert (second["at"].timestamp(), second["v"]) == (0, None)
    assert world.user("zoe")["pic"] == b""
    assert world.user("bob")["pic"] is None


def test_duplicate_id_without_a_key_is_rejected(world: World) -> None:
    events = [{"type": "Event", "data": {"id": "E", "title": t, "at": 0}} for t in "ab"]
    with pytest.raises(KeyConflict):
        world.load(events)
    with pytest.raises(KeyConflict):
        world.load(events, "overwrite")
    assert world.load(events, "merge").nodes == {"Event": 2}
    assert [one["title"] for one in world.rows("node:Event")] == ["b"]


def test_overwrite_replaces_the_types_it_names(world: World) -> None:
    world.load([{"type": "Event", "data": {"id": "E", "title": "t", "at": 0}}])
    with pytest.raises(ConstraintViolation, match="dst 'bob' not found in User"):
        world.load([user(login="ann"), user(login="cyd")], "overwrite")
    world.load([user(login="ann"), user(login="bob")], "overwrite")
    assert (world.user("ann")["age"], world.ids("node:Event")) == (None, ["E"])
    world.load([{"edge": "Follows", "from": "bob", "to": "ann", "data": {"id": "f"}}], "overwrite")
    assert world.ids("edge:Follows") == ["f"]
    with pytest.raises(ConstraintViolation, match="not found in User"):
        world.load([{"edge": "Follows", "from": "bob", "to": "x"}], "overwrite")


def test_truncate_empties_a_type(world: World) -> None:
    done = world.load(b'{"edge":"Follows","truncate":true}\n{"type":"User","truncate":true}', "overwrite")
    assert done.commit is not None
    assert (world.ids("node:User"), world.ids("edge:Follows")) == ([], [])
    before = world.head
    assert world.load(b'{"type":"User","truncate":true}', "overwrite").commit is None
    assert world.head == before


def test_empty_input_makes_no_commit(world: World) -> None:
    before = world.head
    empty: list[Any] = [b"", b"\n \n", [], {}, {"User": []}]
    for data in empty:
        for mode in ("append", "merge", "overwrite"):
            if data != {"User": []} or mode != "overwrite":
                assert world.load(data, mode).commit is None
    assert world.head == before


def test_merge_load_writes_only_changed_rows(make: Callable[[str], World]) -> None:
    world = make("node N { k: String @key  f: F64?  v: Vector(2)?  l: [String]?  b: Blob? }")
    rows: list[dict[str, Any]] = [{"k": "a", "f": 0.0, "v": [1, 2], "l": ["x", ""], "b": "base64:aGk="}, {"k": "b"}]
    world.load({"N": rows}, "merge")
    before = world.head
    done = world.load({"N": rows}, "merge")
    assert (done.commit, done.nodes, world.head) == (None, {"N": 2}, before)
    for name, value in (("f", -0.0), ("v", [1, 3]), ("l", ["x"]), ("b", "base64:"), ("f", None)):
        rows[0][name] = value
        commit = world.load({"N": rows}, "merge").commit
        assert commit is not None
        assert commit.tables[TableKey("node:N")] is not None
    assert [one["id"] for one in world.rows("node:N")] == ["a", "b"]
    assert world.rows("node:N")[0]["b"] == b""


def test_positive_and_negative_zero_are_equal(make: Callable[[str], World]) -> None:
    world = make("node N { f: F64? @unique }")
    world.load({"N": [{"f": -0.0}]})
    with pytest.raises(UniqueViolation, match="value '0'"):
        world.load({"N": [{"f": 0.0}]})


def test_moving_an_edge_checks_cardinality_of_its_old_source(world: World) -> None:
    world.do('insert Slot { room: "r", day: date("2024-01-01") }')
    hosts = {"edge": "Hosts", "from": "ann", "to": '["19723","r"]', "data": {"id": "h"}}
    world.load([hosts])
    with pytest.raises(ConstraintViolation, match="source 'ann' has 0 edges"):
        world.load([{**hosts, "from": "bob"}], "merge")
    world.load([{**hosts, "from": "bob"}, {**hosts, "data": {"id": "g"}}], "merge")
    assert [one["src"] for one in world.rows("edge:Hosts")] == ["ann", "bob"]


def test_a_report_names_every_bad_line(world: World) -> None:
    lines = b"""{"type":"User","data":{"login":"ok"}}
{"type":"User","data":{"login":"UP"}}
{"type":"User"
{"type":"User","data":{"login":"x","age":"1","score":"2"}}

{"type":"User","data":{"login":"bob"}}
{"type":"User","data":{"login":"ok"}}
{"type":"User","data":{"login":"y","mail":"a@x"}}
{"edge":"Follows","from":"x","to":"ok"}
"""
    before = world.head
    done = world.load(lines, options=REPORT)
    found = [(one.line, one.type, one.id) for one in done.problems]
    assert found == [
        (2, "User", "UP"),
        (3, None, None),
        (4, "User", "x"),
        (4, "User", "x"),
        (6, "User", "bob"),
        (7, "User", "ok"),
        (8, "User", "y"),
    ]
    assert all(one.reason for one in done.problems)
    assert (done.commit, world.head) == (None, before)
    good = world.load(b'{"type":"User","data":{"login":"ok"}}', options=REPORT)
    assert (good.problems, good.commit is None) == ((), False)


def test_report_includes_problems_after_bad_lines(world: World) -> None:
    lines = b"""{"type":"User","data":{"login":"zed","age":"1"}}
{"type":"User","data":{"login":"yan",}}
{"type":"User","data":{"login":7}}
{"edge":"Follows","from":"ann","to":"zed"}
{"edge":"Follows","from":"ann","to":"yan"}
{"edge":"Follows","from":"ann","to":"7"}
{"edge":"Follows","from":"ann","to":"nobody"}
{"edge":"Owns","from":"ghost","to":5,"data":{"nope":1,"also":2}}
{"type":"Event","data":{"id":"e","title":"t","at":0}}
{"edge":"Owns","from":"ann","to":"e"}
{"edge":"Owns","from":"ann","to":"e"}
{"edge":"Owns","from":"ann","to":"e"}
"""
    done = world.load(lines, options=REPORT)
    found = [(one.line, one.error.code) for one in done.problems]
    bad, rule = "InputError", "ConstraintViolation"
    assert found[:3] == [(1, "PropertyValueError"), (2, bad), (3, "PropertyValueError")]
    assert found[3:] == [(7, rule), (8, bad), (8, bad), (8, bad), (10, rule)]
    assert "'ann' -> 'nobody'" in done.problems[3].reason
    assert "at most 2" in done.problems[-1].reason


def test_hint_explains_endpoint_format(make: Callable[[str], World]) -> None:
    world = make("node Day { on: Date @key } edge Next: Day -> Day")
    world.load([{"type": "Day", "data": {"on": "2024-01-01"}}])
    with pytest.raises(ConstraintViolation) as spelled:
        world.load([{"edge": "Next", "from": "2024-01-01", "to": "19723"}])
    assert spelled.value.hint == "`from` must be the id of a node of type Day: for this `on` value, write '19723'"
    assert world.load([{"edge": "Next", "from": "19723", "to": "19723"}]).commit
    with pytest.raises(InputError) as number:
        world.load([{"edge": "Next", "from": "19723", "to": 19723}])
    assert number.value.hint == 'ids are strings: write "19723"'


def test_limit_errors_name_the_limit_and_the_value(world: World) -> None:
    rows = [{"type": "Event", "data": {"title": "t", "at": 0}}] * 4
    few = LoadOptions(limits=LoadLimits(rows=3))
    with pytest.raises(ResourceLimitExceeded) as refused:
        world.load(rows, options=few)
    assert (refused.value.limit, refused.value.actual) == (3, 4)
    world.load(rows[:3], options=few)
    long = LoadOptions(limits=LoadLimits(value_bytes=10))
    with pytest.raises(ResourceLimitExceeded, match=r"one User\.bio value"):
        world.load([user(login="a", bio="x" * 11)], options=long)
    line = LoadOptions(limits=LoadLimits(line_bytes=60))
    with pytest.raises(ResourceLimitExceeded, match="graph_batch_line_bytes"):
        world.load(U + b'"bio":"' + b"x" * 60 + b'"}}', options=line)


def test_unknown_mode_is_rejected(world: World) -> None:
    with pytest.raises(UsageError, match="mode must be one of"):
        world.load(b"", "replace")


def test_defaults_fill_missing_properties(make: Callable[[str], World]) -> None:
    world = make('node N { k: String @key  a: I32 @default(7)  b: String? @default("x") }')
    world.load([{"type": "N", "data": {"k": "1"}}, {"type": "N", "data": {"k": "2", "b": None}}])
    world.do('insert N { k: "3" }')
    assert [(one["a"], one["b"]) for one in world.rows("node:N")] == [(7, "x"), (7, None), (7, "x")]


def test_overwrite_requires_the_shown_state(world: World) -> None:
    from omnigraph.publish.read_set import ReadSet

    shown = ReadSet(world.line.refresh().state.tables)
    world.load([user(login="new")])
    data = [user(login="ann"), user(login="bob")]
    with pytest.raises(VersionConflict):
        world.load(data, "overwrite", conditions=[shown.require_unchanged([TableKey("node:User")])])
