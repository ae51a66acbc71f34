"""The door of all durable effects: order, count, failure, bounded memory."""

from pathlib import Path

import pytest

from omnigraph.storage import effects as module
from omnigraph.storage.effects import Effect, Effects, Fault
from tests.rig.writes import CITY, PERSON, append, init_small, line_at, write


def test_effects_are_remembered_in_order_and_counted_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_KEPT", 3)
    effects = Effects()
    for number in range(20):
        effects.run("object", f"_refs/{number}", lambda: None)
    effects.run("publish", "__manifest", lambda: None)
    assert len(effects.done) <= 6
    assert effects.done[-2:] == [Effect("object", "_refs/19"), Effect("publish", "__manifest")]
    assert effects.counts() == {"object": 20, "publish": 1}


def test_a_block_sees_its_own_effects_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 1)
    effects = Effects()
    effects.run("object", "before", lambda: None)
    with effects.recorded() as outer:
        effects.run("object", "a", lambda: None)
        with effects.recorded() as inner:
            effects.run("object", "b", lambda: None)
        effects.run("object", "c", lambda: None)
    effects.run("object", "after", lambda: None)
    assert [one.target for one in outer] == ["a", "b", "c"]
    assert [one.target for one in inner] == ["b"]


def test_what_fails_is_not_counted() -> None:
    effects = Effects()
    with effects.failing(Fault(2, "before")):
        effects.run("object", "a", lambda: None)
        with pytest.raises(OSError, match="injected"):
            effects.run("object", "b", lambda: None)
        effects.run("object", "c", lambda: None)
    assert [one.target for one in effects.done] == ["a", "c"]


def test_effects_are_counted_by_kind_and_place(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    init_small(root)
    effects = Effects()
    line = line_at(root, effects=effects, durability="os")
    entry = line.base().state.tables[PERSON]
    write(line, append({"a": 1}))
    write(line, append({"b": 1}), (PERSON, CITY))
    city = line.base().state.tables[CITY].location
    assert effects.by_target() == {
        ("stage", entry.location): 2,
        ("detach", entry.location): 2,
        ("stage", city): 1,
        ("detach", city): 1,
        ("state", "__manifest"): 2,
        ("publish", "__manifest"): 2,
    }
    assert sum(effects.by_target().values()) == effects.counts().total()


def test_many_places_take_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TARGETS", 3)
    effects = Effects()
    for number in range(10):
        effects.run("create", f"nodes/{number}", lambda: None)
        effects.run("stage", f"nodes/{number}", lambda: None)
    effects.run("stage", "nodes/0", lambda: None)
    found = effects.by_target()
    assert found["stage", "nodes/0"] == 2
    assert (found["create", module.ELSEWHERE], found["stage", module.ELSEWHERE]) == (7, 7)
    assert len(found) == 8
    assert effects.counts() == {"create": 10, "stage": 11}
