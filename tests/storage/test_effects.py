"""The single entry of all durable effects: order, counts, failures, bounded memory."""

from pathlib import Path

import pytest

from omnigraph.storage import effects as module
from omnigraph.storage.effects import DurableEffect, Effects, Fault
from tests.rig.writes import CITY, PERSON, append, init_small, line_at, write


def test_effects_are_recorded_in_order_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RECENT_LIMIT", 3)
    effects = Effects()
    for number in range(20):
        effects.run("object", f"_refs/{number}", lambda: None)
    effects.run("publish", "__manifest", lambda: None)
    assert len(effects.completed) <= 6
    assert effects.completed[-2:] == [DurableEffect("object", "_refs/19"), DurableEffect("publish", "__manifest")]
    assert effects.counts_by_kind() == {"object": 20, "publish": 1}


def test_recording_block_sees_only_its_own_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RECENT_LIMIT", 1)
    effects = Effects()
    effects.run("object", "before", lambda: None)
    with effects.recording() as outer:
        effects.run("object", "a", lambda: None)
        with effects.recording() as inner:
            effects.run("object", "b", lambda: None)
        effects.run("object", "c", lambda: None)
    effects.run("object", "after", lambda: None)
    assert [one.target for one in outer] == ["a", "b", "c"]
    assert [one.target for one in inner] == ["b"]


def test_failed_effects_are_not_counted() -> None:
    effects = Effects()
    with effects.failing(Fault(2, "before")):
        effects.run("object", "a", lambda: None)
        with pytest.raises(OSError, match="injected"):
            effects.run("object", "b", lambda: None)
        effects.run("object", "c", lambda: None)
    assert [one.target for one in effects.completed] == ["a", "c"]


def test_effects_are_counted_by_kind_and_location(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    init_small(root)
    effects = Effects()
    line = line_at(root, effects=effects, durability="os")
    entry = line.last_known().state.tables[PERSON]
    write(line, append({"a": 1}))
    write(line, append({"b": 1}), (PERSON, CITY))
    city = line.last_known().state.tables[CITY].location
    assert effects.counts_by_target() == {
        ("stage", entry.location): 2,
        ("detach", entry.location): 2,
        ("stage", city): 1,
        ("detach", city): 1,
        ("state", "__manifest"): 2,
        ("publish", "__manifest"): 2,
    }
    assert sum(effects.counts_by_target().values()) == effects.counts_by_kind().total()


def test_memory_does_not_grow_with_locations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_TARGET_GROUPS", 3)
    effects = Effects()
    for number in range(10):
        effects.run("create", f"nodes/{number}", lambda: None)
        effects.run("stage", f"nodes/{number}", lambda: None)
    effects.run("stage", "nodes/0", lambda: None)
    found = effects.counts_by_target()
    assert found["stage", "nodes/0"] == 2
    assert (found["create", module.OTHER_TARGETS], found["stage", module.OTHER_TARGETS]) == (7, 7)
    assert len(found) == 8
    assert effects.counts_by_kind() == {"create": 10, "stage": 11}
