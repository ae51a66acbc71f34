"""Leftovers of a crash are not damage: `check` ignores them and cleanup removes them.

A copy of the root after every effect is what a crash at that moment leaves.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.history.manifest import manifest_exists, read_manifest
from omnigraph.maintenance.check import check_graph
from omnigraph.maintenance.finding import DAMAGE_KINDS
from omnigraph.maintenance.retention import claim
from omnigraph.maintenance.retention.collect_garbage import cleanup
from omnigraph.maintenance.retention.policy import RetentionPolicy
from omnigraph.publish import unnamed_manifests
from omnigraph.publish.recover import recover
from omnigraph.storage.effects import Effects, Fault
from omnigraph.storage.store import Store, open_store
from tests.crash.verbs import VERBS, make_start, overdue

QUICK = ("branch-create", "tag-create", "branch-rename", "branch-delete", "tag-delete")
FULL = (
    *("branch-create-past", "tag-create-past", "recover-creation", "recover-rename"),
    *("cleanup", "append-3", "long-append-3", "merge", "erase"),
)
Copies = list[Path]


@contextmanager
def copied_after_effects(store: Store, place: Path) -> Iterator[Copies]:
    """Copies of the root as it was after every effect of the block."""
    real, copies = store.effects.run, Copies()

    def run(kind: Any, target: str, action: Callable[[], Any]) -> Any:
        done = real(kind, target, action)
        copies.append(shutil.copytree(store.root.path, place / f"cut-{len(copies) + 1}"))
        return done

    store.effects.run = run  # type: ignore[method-assign]
    try:
        yield copies
    finally:
        del store.effects.run


def damage(root: Path) -> list[str]:
    """What `check` claims; of an interrupted write it may say that a version might be lost."""
    store = open_store(str(root), effects=Effects(read_only=True))
    found = [one for one in check_graph(store, quick=True).findings if one.kind in DAMAGE_KINDS]
    return [str(one) for one in found if "a write was interrupted" not in one.reason]


def judge(root: Path) -> None:
    """No damage at once, after recovery and after a cleanup, which leaves no nameless manifest."""
    store = open_store(str(root), durability="os")
    assert damage(root) == []
    with overdue():
        recover(store)
    assert damage(root) == []
    store.objects.remove(claim.CLAIM_NAME)  # of a collector that crashed
    done = cleanup(store, RetentionPolicy(keep=99, grace=timedelta()))
    assert not done.unnamed
    assert damage(root) == []
    names = unnamed_manifests.list_refs_consistently(store)
    for ulid in unnamed_manifests.list_manifest_ulids(store) - names.named_ulids:
        assert read_manifest(store, ulid).state.head.closed


def cut_everywhere(verb: str, place: Path) -> None:
    root = shutil.copytree(make_start(VERBS[verb].start, place), place / "g")
    store = open_store(str(root), durability="os")
    with overdue(), copied_after_effects(store, place) as copies:
        VERBS[verb].run(store)
    assert copies
    for one in copies:
        judge(one)


@pytest.mark.parametrize("verb", QUICK)
def test_crash_is_not_reported_as_damage(verb: str, tmp_path: Path) -> None:
    cut_everywhere(verb, tmp_path)


@pytest.mark.parametrize(
    ("verb", "how"),
    [
        ("branch-create", "before"),
        ("branch-create", "after"),
        ("branch-rename", "before"),
        pytest.param("tag-create", "before", marks=pytest.mark.full),
        pytest.param("tag-create", "after", marks=pytest.mark.full),
        pytest.param("branch-rename", "after", marks=pytest.mark.full),
    ],
)
def test_failed_effect_is_not_reported_as_damage(verb: str, how: Literal["before", "after"], tmp_path: Path) -> None:
    start = make_start(VERBS[verb].start, tmp_path)
    for at in range(1, 20):
        root = shutil.copytree(start, tmp_path / f"fail-{at}")
        store = open_store(str(root), durability="os")
        effects, refused = store.effects, suppress(OSError, OmnigraphError)
        with effects.recording() as done, effects.failing(Fault(at, how)), refused:
            VERBS[verb].run(store)
        judge(root)
        if len(done) < at - (how == "before"):
            return
    raise AssertionError(f"{verb} has more effects than were cut")


@pytest.mark.full
@pytest.mark.parametrize("verb", FULL)
def test_crash_of_any_verb_is_not_reported_as_damage(verb: str, tmp_path: Path) -> None:
    cut_everywhere(verb, tmp_path)


def test_unnamed_manifest_without_an_intent_is_reported(tmp_path: Path) -> None:
    """The planted defect: the intent goes before the name is taken, and no record is left."""
    root = shutil.copytree(make_start("base", tmp_path), tmp_path / "g")
    store = open_store(str(root), durability="os")
    with copied_after_effects(store, tmp_path) as copies:
        VERBS["branch-create"].run(store)
    stores = ((one, open_store(str(one))) for one in copies)
    before_name = next(one for one, store in stores if len(unnamed_manifests.list_manifest_ulids(store)) == 2)
    assert damage(before_name) == []
    (record,) = (before_name / "__recovery").glob("*.json")
    record.write_bytes(b"{")  # damaged, but there: the creation is not over
    assert not [one for one in damage(before_name) if "ref object" in one]
    for part in (before_name / "__recovery").iterdir():
        part.unlink()
    assert len(damage(before_name)) == 1
    assert manifest_exists(store)
