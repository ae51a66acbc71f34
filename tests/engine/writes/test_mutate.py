"""Statements in order: what they see, count and reject."""

import re
from datetime import UTC, datetime

import pytest

from omnigraph.errors import (
    ConstraintViolation,
    ExternalBlobPolicyError,
    InputError,
    PreconditionFailed,
    PropertyValueError,
    ResourceLimitExceeded,
    UniqueViolation,
    VersionConflict,
)
from omnigraph.publish.requirements import ExpectedHead
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey
from tests.engine.writes.conftest import World


def test_an_upsert_of_a_key_keeps_the_rest_of_the_row(world: World) -> None:
    before = world.user("ann")
    done = world.do('upsert User { login: "ann", bio: "new" }')
    assert (done.nodes, done.ids) == ({"User": 1}, {"User": ["ann"]})
    assert world.user("ann") == before | {"bio": "new"}
    assert world.ids("node:User") == ["ann", "bob"]


def test_a_row_without_a_key_is_always_new(world: World) -> None:
    made = world.do('insert Event { title: "t", at: now() } insert Event { title: "t", at: now() }')
    assert world.ids("node:Event") == sorted(made.ids["Event"])
    assert all(clock_and_ids.is_ulid(one) for one in made.ids["Event"])
    times = {one["at"] for one in world.rows("node:Event")}
    assert len(times) == 1


def test_now_is_the_time_of_the_request(world: World) -> None:
    with clock_and_ids.deterministic_ids(datetime(2024, 5, 1, 12, tzinfo=UTC)):
        world.do('insert Event { title: "t", at: now() }')
    assert world.rows("node:Event")[0]["at"] == datetime(2024, 5, 1, 12, tzinfo=UTC)


def test_composite_key_determines_the_id(world: World) -> None:
    world.do('insert Slot { room: "r", day: date("2024-01-01") }')
    assert world.ids("node:Slot") == ['["19723","r"]']


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ('User { login: "Ann" }', ConstraintViolation, "@check violation on User.login"),
        ('User { login: "c", age: 151 }', ConstraintViolation, "@range violation on User.age"),
        ('User { login: "c", mail: "a@x" }', UniqueViolation, "@unique violation on User.mail"),
        ('Follows { from: "ann", to: "x" }', ConstraintViolation, "dst 'x' not found in User"),
        ('Follows { from: "ann", to: "bob" }', UniqueViolation, "(dst, src)"),
        ('User { login: "" }', InputError, "login"),
        ('User { login: "p", pic: "https://x/y" }', ExternalBlobPolicyError, "https://x/y"),
    ],
)
def test_rejected_statement_leaves_nothing(world: World, statement: str, error: type[Exception], words: str) -> None:
    before = world.head
    with pytest.raises(error, match=re.escape(words)):
        world.do(f'insert User {{ login: "first" }} insert {statement}')
    assert world.head == before
    assert world.ids("node:User") == ["ann", "bob"]


@pytest.mark.parametrize(
    ("declared", "value", "error"),
    [
        ("$r: String | update User set { role: $r }", "root", ConstraintViolation),
        ("$r: I64 | update User set { age: $r }", 3_000_000_000, PropertyValueError),
        ("$r: String | update User set { bio: $r }", "x" * (33 << 20), ResourceLimitExceeded),
    ],
)
def test_parameter_of_the_wrong_type_is_rejected(
    world: World, declared: str, value: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        world.do(f'{declared} where login = "ann"', {"r": value})
    assert world.user("ann")["age"] == 30


def test_limits_are_inclusive_and_null_passes(world: World) -> None:
    world.do('insert User { login: "c", age: 150, score: 5 } insert User { login: "d" }')
    assert (world.user("c")["age"], world.user("c")["score"]) == (150, 5.0)


def test_a_freed_value_may_be_used_again_in_one_query(world: World) -> None:
    world.do('update User set { mail: "n@x" } where login = "ann" insert User { login: "cyd", mail: "a@x" }')
    assert (world.user("ann")["mail"], world.user("cyd")["mail"]) == ("n@x", "a@x")


def test_edge_may_be_inserted_before_its_node(world: World) -> None:
    world.do('insert Follows { from: "eve", to: "ann" } insert User { login: "eve" }')
    assert len(world.ids("edge:Follows")) == 2


def test_too_many_edges_are_rejected(world: World) -> None:
    event = world.do('insert Event { title: "t", at: now() }').ids["Event"][0]
    statement = f'insert Owns {{ from: "ann", to: "{event}" }} '
    with pytest.raises(ConstraintViolation, match="has 3 edges, but must have at most 2"):
        world.do(statement * 3)
    world.do(statement * 2)
    with pytest.raises(ConstraintViolation, match="@card"):
        world.do(statement)


def test_too_few_edges_are_rejected(world: World) -> None:
    world.do('insert Slot { room: "r", day: date("2024-01-01") }')
    world.do("""$s: String | insert Hosts { from: "ann", to: $s }""", {"s": '["19723","r"]'})
    with pytest.raises(ConstraintViolation, match="has 0 edges, but must have at least 1"):
        world.do('delete Hosts where from = "ann"')
    gone = world.do('delete User where login = "ann"')
    assert (gone.nodes, gone.edges) == ({"User": 1}, {"Follows": 1, "Hosts": 1})


def test_update_keeps_unnamed_properties(world: World) -> None:
    world.do('insert User { login: "pia", age: 30, pic: "base64:aGk=" }')
    assert world.do("update User set { age: 31 } where age = 30").nodes == {"User": 2}
    assert (world.user("ann")["bio"], world.user("ann")["mail"]) == ("hi", "a@x")
    assert world.user("pia")["pic"] == b"hi"
    world.do("""$b: String? | update User set { pic: $b, bio: $b } where age = 31""", {"b": None})
    assert (world.user("pia")["pic"], world.user("ann")["bio"]) == (None, None)


def test_update_without_matches_makes_no_commit(world: World) -> None:
    before = world.head
    for statement in ("update User set { age: 1 }", "delete User"):
        done = world.do(f'{statement} where login = "nobody"', conditions=[ExpectedHead(before)])
        assert (done.commit, done.nodes, done.edges) == (None, {}, {})
    assert world.head == before


def test_later_statements_see_only_the_latest_version(world: World) -> None:
    done = world.do(
        'insert User { login: "fay", age: 1 }'
        "update User set { age: 2 } where age = 1 update User set { age: 3 } where age = 1"
    )
    assert (done.nodes, world.user("fay")["age"]) == ({"User": 2}, 2)
    world.do(
        'update User set { age: 40 } where login = "ann" upsert User { login: "ann", age: 41 }'
        'update User set { bio: "new" } where age = 41'
    )
    ann = world.user("ann")
    assert (ann["age"], ann["bio"], ann["mail"]) == (41, "new", "a@x")
    assert world.ids("node:User") == ["ann", "bob", "fay"]


def test_intermediate_row_versions_are_validated(world: World) -> None:
    with pytest.raises(ConstraintViolation, match=r"200 is not in 0\.\.150"):
        world.do('insert User { login: "f", age: 200 } upsert User { login: "f", age: 2 }')


def test_deletes_count_every_row_once(world: World) -> None:
    world.do('insert User { login: "eve" } insert Follows { from: "bob", to: "ann" }')
    done = world.do(
        'delete User where login = "ann" delete User where age > 100 '
        'delete User where login = "bob" delete User where login = "ann"'
    )
    assert (done.nodes, done.edges) == ({"User": 2}, {"Follows": 2})
    assert (world.ids("node:User"), world.ids("edge:Follows")) == (["eve"], [])


def test_edges_are_deleted_by_endpoint(world: World) -> None:
    done = world.do('delete Follows where to = "bob"')
    assert (done.nodes, done.edges, len(world.ids("node:User"))) == ({}, {"Follows": 1}, 2)


def test_expected_head_condition_is_checked(world: World) -> None:
    head = world.head
    world.do('insert User { login: "c" }', conditions=[ExpectedHead(head)])
    with pytest.raises(PreconditionFailed) as refused:
        world.do('insert User { login: "d" }', conditions=[ExpectedHead(head)])
    assert (refused.value.expected, refused.value.actual) == (head, world.head)


def test_commit_metadata_and_idempotency_key_are_recorded(world: World) -> None:
    signature = CommitMetadata("eva", "why", "key-1", "r")
    first = world.do('insert User { login: "c" }', metadata=signature)
    again = world.do('insert User { login: "c" }', metadata=signature)
    assert first.commit is not None
    assert again.commit is not None
    assert (first.commit.id, first.commit.actor, first.commit.message) == (
        again.commit.id, "eva", "why",
    )  # fmt: skip
    assert (first.replayed, again.replayed) == (False, True)


def test_strict_write_requires_the_shown_state(world: World) -> None:
    from omnigraph.publish.read_set import ReadSet

    shown = ReadSet(world.line.refresh().state.tables)
    world.do('insert User { login: "c" }')
    with pytest.raises(VersionConflict):
        world.do(
            'update User set { age: 1 } where login = "bob"',
            conditions=[shown.require_unchanged([TableKey("node:User")])],
        )
    world.do('upsert User { login: "bob", age: 3 }', conditions=[shown.require_unchanged()])
    assert world.user("bob")["age"] == 3
