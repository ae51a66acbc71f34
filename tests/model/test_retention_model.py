"""No schedule breaks the cleanup model; omitting any part of the protocol breaks one.

`python -m tests.model.retention` searches the schedules of this table anew.
"""

import pytest

from tests.model.retention import DIRECTED, PARTS, Outcome, directed, run
from tests.rig.depth import repeats

# The part that is left out, and the random schedule that breaks then; the others are thought out.
SEEDS = {
    "fence": 8,
    "epoch": 13,
    "lists": 19,
    "all lists": 71,
    "open": 19,
    "intents": 2,
    "armed": 27,
    "creates": 290,
    "heads again": 21,
    "verdict": 22,
    "refusal": 6,
    "tags": 5,
}


def _schedule(part: str, without: str = "") -> Outcome:
    return directed(part, without) if part in DIRECTED else run(SEEDS[part], without)


def test_every_protocol_part_has_a_schedule() -> None:
    assert {*SEEDS, *DIRECTED} == PARTS.keys()


@pytest.mark.parametrize("part", PARTS)
def test_omitting_a_protocol_part_breaks_its_schedule(part: str) -> None:
    without, whole = _schedule(part, part), _schedule(part)
    print(f"without {part:16} {without.broken} ({PARTS[part]})")
    assert without.broken is not None
    assert whole.broken is None


def _broken(seeds: range) -> list[tuple[int, str | None]]:
    found = [(seed, run(seed)) for seed in seeds]
    assert sum(one.swept for _, one in found) > 30 * len(found)
    return [(seed, one.broken) for seed, one in found if one.broken is not None]


def test_random_schedules_do_not_break_the_protocol() -> None:
    assert _broken(range(150)) == []


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_thousands_of_random_schedules_do_not_break_the_protocol() -> None:
    assert _broken(range(repeats(4_000))) == []
