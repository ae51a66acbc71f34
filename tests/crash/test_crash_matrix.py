"""A crash at any effect leaves the state before or after the verb, never between.

`python -m tests.crash.matrix` prints the table that is kept in tests/cases/crash/matrix.txt.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.errors import MergeConflict
from omnigraph.storage.store import open_store
from tests.crash.matrix import HOWS, Elsewhere, How, Matrix, Row, another_process
from tests.crash.verbs import VERBS, make_start, merge_side
from tests.rig.depth import stride
from tests.rig.invariants import files

GOLDEN = Path(__file__).parent.parent / "cases" / "crash" / "matrix.txt"
# In the quick suite: failures in the process everywhere in these, and a few ends of a process.
SAMPLE = (*("append-3", "branch-create", "branch-delete", "copy", "long-append-3"), *("merge", "recover-confirmed"))
# One failure each in writes to three tables, where names change, and in upkeep.
THREE: tuple[tuple[str, int, How], ...] = (
    ("upsert-3", 8, "after"),
    ("update-3", 11, "before"),
    ("delete-3", 6, "before"),
    ("branch-rename", 4, "before"),
    ("tag-create", 4, "before"),
    ("revert", 7, "before"),
    ("branch-reset", 4, "after"),
    ("merge-schemas", 9, "after"),
    ("merge-schemas", 13, "before"),
    ("merge-disputed", 9, "after"),
    ("ensure-indices", 7, "after"),
    ("optimize", 5, "before"),
    ("cleanup", 30, "before"),
    ("erase", 6, "after"),
    ("repair", 5, "before"),
)
EVERYWHERE = ("merge-schemas", "merge-disputed")  # cut at every effect in the full run
ENDS = (
    ("append-1", 4),
    ("branch-create", 3),
    ("copy", 37),
    ("long-append-3", 5),
    ("merge-overtaken", 7),
    ("cleanup", 20),
)


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Elsewhere]:
    """A process beside this one."""
    with another_process() as write:
        yield write


@pytest.fixture
def matrix(tmp_path: Path, elsewhere: Elsewhere) -> Matrix:
    """A place for cuts."""
    return Matrix(tmp_path, elsewhere)


def table() -> list[list[str]]:
    """The kept table: cells stand at least two blanks apart."""
    return [re.split(r" {2,}", line) for line in GOLDEN.read_text().splitlines()]


def golden(verb: str) -> list[Row]:
    """The lines of a verb as they are kept."""
    kept = [line for line in table() if line[0] == verb]
    return [Row(verb, int(at), effect, tuple(cells)) for _, at, effect, *cells in kept]


@pytest.mark.parametrize("verb", SAMPLE)
def test_failed_effect_leaves_before_or_after_state(matrix: Matrix, verb: str) -> None:
    hows: tuple[How, ...] = ("before", "after")
    places = [HOWS.index(how) for how in hows]
    kept = golden(verb)
    every = max(1, len(kept) // 5)
    found = list(matrix.rows(verb, hows, every))
    assert [(r.at, r.effect, r.outcomes) for r in found] == [
        (r.at, r.effect, tuple(r.outcomes[one] for one in places)) for r in kept[::every]
    ]


def cut_once(matrix: Matrix, verb: str, at: int, how: How) -> None:
    """One cell of the table."""
    kept = golden(verb)
    before, after, effects = matrix.whole(verb)
    assert len(effects) == len(kept)
    assert matrix.cut(verb, at, how, before, after) == kept[at - 1].outcomes[HOWS.index(how)]


@pytest.mark.parametrize(("verb", "at", "how"), THREE)
def test_failed_write_to_three_tables_is_atomic(matrix: Matrix, verb: str, at: int, how: How) -> None:
    cut_once(matrix, verb, at, how)


@pytest.mark.parametrize(("verb", "at"), ENDS)
def test_killed_process_leaves_before_or_after_state(matrix: Matrix, verb: str, at: int) -> None:
    cut_once(matrix, verb, at, "exit")


def test_conflicting_merge_has_no_effects(tmp_path: Path) -> None:
    store = open_store(str(make_start("clashing", tmp_path)), durability="os")
    before = files(store)
    with store.effects.recording() as done, pytest.raises(MergeConflict):
        merge_side(store)
    assert done == []
    assert files(store) == before


def test_every_verb_is_in_the_table() -> None:
    assert list(dict.fromkeys(line[0] for line in table())) == list(VERBS)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in EVERYWHERE])
def test_sampled_crash_matrix_matches_the_golden_file(matrix: Matrix, verb: str) -> None:
    every = stride(3)
    assert list(matrix.rows(verb, every=every)) == golden(verb)[::every]


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("verb", EVERYWHERE)
def test_merge_of_two_schemas_is_atomic_at_every_effect(matrix: Matrix, verb: str) -> None:
    assert list(matrix.rows(verb)) == golden(verb)
