"""No damage stays silent: every kind of file, damaged in every way, at random positions.

`OUTCOMES` is the table that `docs/explanation/damage.md` shows. Trials run in processes of their
own: a damaged file that ended one of them would be a failure, not the end of the tests.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.maintenance.file_damage import DAMAGES, KINDS, build_graph
from tests.rig.depth import repeats

READ, CHECK, HARMLESS = "read", "check", "harmless"
ENDED = "ended"  # Lance ended the process that read; with verification on it is a typed error
NOTICED = {READ, CHECK}
ANY = {READ, CHECK, HARMLESS}
# What a trial may end in. Harmless is what changes nothing that anybody reads.
OUTCOMES: dict[str, set[str]] = {
    "data": {*NOTICED, ENDED},
    "blob": NOTICED,
    "deletion": NOTICED,
    "index": {*NOTICED, ENDED},
    "version": ANY,  # versions in between, which no commit names, are in the trials too
    "transaction": {HARMLESS},
    "state": ANY,  # of old manifest versions nothing is read
    "manifest": ANY,
    "chunk": ANY,  # those that were merged into larger ones are named no more
    "checksums": NOTICED,
    "schema": NOTICED,
    "ref": ANY,  # the objects below the newest one of a name decide nothing
    "tag": NOTICED,
    "intent": {CHECK, HARMLESS},
    "audit": ANY,
}
Trial = dict[str, Any]


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with every kind of file."""
    root = tmp_path_factory.mktemp("rich") / "g"
    build_graph(root)
    return root


def run_trials(rich: Path, work: Path, trials: Sequence[Trial]) -> Iterator[Trial]:
    """Run trials in child processes; one that ends its process is run again with verification."""
    waiting = list(trials)
    while waiting:
        lines = _run_child(rich, work, waiting)
        done = [line for line in lines if "outcome" in line]
        yield from done
        if len(done) == len(waiting):
            return
        began = [line for line in lines if "outcome" not in line]
        assert began, "no trial began"
        ended = {key: began[-1][key] for key in ("kind", "damage", "seed")}
        careful = _run_child(rich, work / "careful", [ended], OMNIGRAPH_VERIFY="1")
        outcome = careful[-1].get("outcome", "the process ended again")
        noticed = outcome.partition(":")[0] in NOTICED
        yield {**ended, "outcome": f"{ENDED}, then {outcome}" if noticed else outcome}
        waiting = waiting[len(done) + 1 :]


def _run_child(rich: Path, work: Path, trials: Sequence[Trial], **environment: str) -> list[Trial]:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.maintenance.file_damage", str(rich), str(work)],
        input="\n".join(map(json.dumps, trials)),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMNIGRAPH_CACHE_DIR": str(work / "cache"), **environment},
    )
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]


def judge_outcome(trial: Trial) -> str | None:
    """What is wrong with an outcome; None when it is one that the table allows."""
    outcome = str(trial["outcome"])
    word = outcome.partition(" ")[0].rstrip(":,")
    if word not in OUTCOMES[trial["kind"]]:
        return json.dumps(trial)
    clean = "check is clean" in outcome and trial["kind"] != "audit"
    return json.dumps(trial) if clean else None


def wrong_outcomes(rich: Path, work: Path, trials: Sequence[Trial]) -> list[str]:
    ended = list(run_trials(rich, work, trials))
    assert len(ended) == len(trials)
    return [wrong for trial in ended if (wrong := judge_outcome(trial)) is not None]


def random_trials(count: int, seed: int) -> list[Trial]:
    """Trials that choose their files at random, flips of data more often than all else."""
    chance = random.Random(seed)
    kinds = [*KINDS, *["data"] * 5]
    ways = [*DAMAGES, *["flipped"] * 3]
    return [
        {"kind": chance.choice(kinds), "damage": chance.choice(ways), "seed": f"{seed}-{number}"}
        for number in range(count)
    ]


@pytest.mark.timeout(600)
def test_damage_of_every_kind_is_detected(rich: Path, tmp_path: Path) -> None:
    table = [{"kind": kind, "damage": way, "seed": "t"} for kind in KINDS for way in DAMAGES]
    trials = [*table, *random_trials(max(0, 50 - len(table)), seed=1)]
    assert wrong_outcomes(rich, tmp_path, trials) == []


@pytest.mark.full
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(2, 2 + repeats(1)))
def test_random_damage_is_detected(rich: Path, tmp_path: Path, seed: int) -> None:
    assert wrong_outcomes(rich, tmp_path, random_trials(100, seed)) == []


def test_trials_detect_a_check_without_comparison(rich: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without checksums some of the same flips would be silent: the trials can fail."""
    monkeypatch.setenv("OMNIGRAPH_TEST_WITHOUT_CHECKSUMS", "1")
    trials = [{"kind": "blob", "damage": "flipped", "seed": f"n{n}"} for n in range(2)]
    assert wrong_outcomes(rich, tmp_path, trials) != []
