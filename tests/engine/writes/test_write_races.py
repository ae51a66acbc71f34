"""What a write has read must still hold when it lands."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.writes import matched_writes
from omnigraph.errors import ConstraintViolation, KeyConflict, ReadSetConflict, UniqueViolation, VersionConflict
from omnigraph.ingest import load as loads
from omnigraph.ingest.stage import stage_tables
from omnigraph.publish.plan_json import requirement_from_json
from omnigraph.publish.requirements import SameLookupResult, check_requirements
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import Delta, build_table_delta
from omnigraph.rules.lookup import RecordingLookup
from omnigraph.storage.table import can_replay
from omnigraph.values.clock_and_ids import new_ulid
from omnigraph.values.table_key import TableKey
from tests.engine.writes.conftest import World


def txn(world: World) -> WriteTxn:
    return WriteTxn(world.line.store, "main", world.line.last_known(), new_ulid(), 0)


def between(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, deed: Callable[[], object]) -> None:
    """Do something else after the first call of a function, before its answer is used."""
    original, left = getattr(module, name), [deed]

    def wrapped(*given: Any, **how: Any) -> Any:
        answer = original(*given, **how)
        if left:
            left.pop()()
        return answer

    monkeypatch.setattr(module, name, wrapped)


def elsewhere(world: World) -> World:
    """The same graph as another process would see it."""
    import omnigraph

    other = World.__new__(World)
    other.graph = omnigraph.open(world.graph.uri, durability="fsync")
    other.line = other.graph._handle.branch_state
    assert other.line is not world.line
    return other


@pytest.mark.parametrize(
    ("rival", "data", "error"),
    [
        ('insert User { login: "new" }', {"User": [{"login": "new"}]}, KeyConflict),
        ('insert User { login: "x", mail: "m@x" }', {"User": [{"login": "y", "mail": "m@x"}]}, UniqueViolation),
        ('delete User where login = "bob"', {"Follows": [{"from": "bob", "to": "ann"}]}, ConstraintViolation),
        ('insert Follows { from: "bob", to: "ann" }', {"Follows": [{"from": "bob", "to": "ann"}]}, UniqueViolation),
    ],
)
def test_load_is_rejected_if_a_concurrent_write_breaks_a_rule(
    world: World, monkeypatch: pytest.MonkeyPatch, rival: str, data: dict[str, Any], error: type[Exception]
) -> None:
    other = elsewhere(world)
    between(monkeypatch, loads, "stage", lambda: other.do(rival))
    with pytest.raises(error):
        world.load(data)


FED_BY_A_MATCH = "match { $u: User  $u follows $v } update $u set { bio: $v.login }"


def test_matched_write_is_refused_if_what_it_read_changes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    other = elsewhere(world)
    rival = 'insert User { login: "cyd" } insert Follows { from: "cyd", to: "bob" }'
    between(monkeypatch, matched_writes, "_run_match", lambda: other.do(rival))
    with pytest.raises(VersionConflict):
        world.do(FED_BY_A_MATCH)


def test_match_without_conditions_runs_again_on_a_newer_base(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    other = elsewhere(world)
    rival = 'insert Follows { from: "bob", to: "ann" }'
    between(monkeypatch, matched_writes, "_run_match", lambda: other.do(rival))
    assert world.do(FED_BY_A_MATCH, conditions=()).nodes == {"User": 2}


def test_concurrent_unrelated_write_needs_no_restaging(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    other = elsewhere(world)
    between(monkeypatch, loads, "stage", lambda: other.do('insert User { login: "other" }'))
    before = world.line.store.effects.counts_by_kind()["stage"]
    world.load({"User": [{"login": "new", "mail": "m@x"}]})
    assert world.line.store.effects.counts_by_kind()["stage"] == before + 1
    assert world.ids("node:User") == ["ann", "bob", "new", "other"]


def test_read_requirements_round_trip_through_json(world: World) -> None:
    lookup = RecordingLookup(txn(world))
    lookup.find(TableKey("node:User"), {"id": pa.array(["ann", "zed"])}, ["id"])
    lookup.find(TableKey("node:User"), {"age": pa.array([30], pa.int32())}, ["id", "age"])
    told = [requirement_from_json(one.to_json()) for one in lookup.requirements]
    assert all(isinstance(one, SameLookupResult) for one in told)
    world.do('insert User { login: "other" }')
    for requirements in (lookup.requirements, told):
        check_requirements(requirements, txn(world))
    world.do('insert User { login: "zed" }')
    for requirements in (lookup.requirements, told):
        with pytest.raises(ReadSetConflict):
            check_requirements(requirements, txn(world))


def test_replacement_of_an_empty_table_conflicts_with_new_rows(world: World) -> None:
    rows = pa.table({"id": ["e"], "at": pa.array([0], pa.timestamp("ms", "UTC")), "title": ["t"]})
    rows = rows.append_column("v", pa.nulls(1, pa.list_(pa.float32(), 2)))
    base = txn(world)
    staged = stage_tables(
        base, Delta({TableKey("node:Event"): build_table_delta(TableKey("node:Event"), rows, "replace")})
    )
    assert can_replay(staged[TableKey("node:Event")], base.table(TableKey("node:Event")))
    world.do('insert Event { title: "t", at: now() }')
    assert not can_replay(staged[TableKey("node:Event")], txn(world).table(TableKey("node:Event")))
