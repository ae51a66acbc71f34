"""Random histories of writes, resets and reverts of ranges end equal on the product and on the model.

The steps are those of the random graph machine; most of them are recovery verbs here. Planted
defects show that the model would find a reset or a revert that is wrong.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from omnigraph.api import merges
from omnigraph.errors import OmnigraphError
from omnigraph.history.revision_ranges import resolve_range
from omnigraph.merging import planner
from omnigraph.merging import reset as reset_module
from tests.model.test_random_graph_histories import GraphMachine
from tests.rig.depth import repeats

STEPS = ("mutate", "mutate", "load", "branch", "reset", "reset", "revert_range", "revert_range", "upkeep", "look_back")


def run_program(seed: int, length: int) -> None:
    """Run one random program, and compare everything at its end."""
    dice, machine = Random(seed), GraphMachine()
    try:
        for _ in range(length):
            step, own = dice.choice(STEPS), dice.randrange(2**32)
            if step == "branch" and len(machine.graphs) > 2:
                continue
            more = {"how": dice.choice(["compact", "index"])} if step == "upkeep" else {}
            getattr(machine, step)(own, **more)
            machine.ask(own)
    except BaseException:
        machine.shown.clear()  # only the first difference is told
        raise
    finally:
        machine.teardown()


def test_recovery_programs_match_the_model() -> None:
    for seed in range(2):
        run_program(seed, 12)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_many_recovery_programs_match_the_model() -> None:
    for seed in range(repeats(8)):
        run_program(seed, 25)


def _forget_a_table(patch: pytest.MonkeyPatch) -> None:
    """A reset leaves out one of the tables that differ."""
    real = planner.MergePlanner.changed_tables
    patch.setattr(planner.MergePlanner, "changed_tables", lambda self: real(self)[1:])


def _take_the_parent(patch: pytest.MonkeyPatch) -> None:
    """A reset takes the state before the commit that was named."""
    real = reset_module.reset

    def reset(branch: Any, snapshot: Any, *others: Any) -> Any:
        parent = snapshot.commit.parent
        tables, schema = snapshot.log.tables_and_schema_at(parent or snapshot.commit_id)
        return real(branch, replace(snapshot, tables=tables, schema_row=schema), *others)

    patch.setattr(merges, "reset", reset)


def _keep_the_counter(patch: pytest.MonkeyPatch) -> None:
    """A reset restores the rows, but under the content id of the current state."""
    real = reset_module._restored_entry

    def entry(head: Any, restored: Any, key: Any) -> Any:
        return replace(real(head, restored, key), content_id=head.table_entry(key).content_id)

    patch.setattr(reset_module, "_restored_entry", entry)


def _undo_only_the_last(patch: pytest.MonkeyPatch) -> None:
    """A revert of a range undoes its last commit only."""

    def ends(store: Any, branch: Any, head: Any, text: str) -> Any:
        _, last = resolve_range(store, branch, head, text)
        return resolve_range(store, branch, head, f"{last.commit.parent or last.commit_id}..{last.commit_id}")

    patch.setattr(merges, "resolve_range", ends)


def _swap_the_ends(patch: pytest.MonkeyPatch) -> None:
    """A revert of a range applies its changes once more."""
    patch.setattr(merges, "resolve_range", lambda *given: resolve_range(*given)[::-1])


DEFECTS: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    _forget_a_table,
    _take_the_parent,
    _keep_the_counter,
    _undo_only_the_last,
    _swap_the_ends,
)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("plant", DEFECTS, ids=lambda one: one.__name__)
def test_planted_recovery_defects_are_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, OmnigraphError)):
        _run_six()


def _run_six() -> None:
    for seed in range(6):
        run_program(seed, 25)
