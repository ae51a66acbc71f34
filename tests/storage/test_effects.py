"""The door of all durable effects: order, count, failure, bounded memory."""

import pytest

from omnigraph.storage import effects as module
from omnigraph.storage.effects import Effect, Effects, Fault


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
