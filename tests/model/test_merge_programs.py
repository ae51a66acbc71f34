"""Random programs of branches and merges end equal on the product and on the model.

`pytest tests/model/test_merge_programs.py` runs 120 small ones, the full run 600, times the depth. What fails
is made small and printed as a script.
"""

from pathlib import Path

import pytest

from tests.model.failed_programs import FOUND
from tests.model.planted_defects import DEFECTS
from tests.model.program_runner import hits, run
from tests.model.random_programs import Author, Program, script, shrunk
from tests.rig.case_lists import missing
from tests.rig.depth import repeats

QUICK, FULL = 120, repeats(600)


def failure(program: Program, *, whole: bool = True) -> BaseException | None:
    """How a program fails, if it does."""
    try:
        run(program, whole=whole)
    except (Exception, pytest.fail.Exception) as error:
        return error
    return None


def check(seed: int, size: int, *, whole: bool = True, kind: str = "program") -> None:
    """Run one program; a failing one is made small and told."""
    program = getattr(Author(seed), kind)(size)
    first = failure(program, whole=whole)
    if first is None:
        return
    small = shrunk(program, lambda one: type(failure(one)) is type(first))
    told = failure(small) or first
    pytest.fail(f"program {seed} of {size}: {told!r}\n\n{script(small)}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(4))
def test_small_programs_match_the_model(part: int) -> None:
    for seed in range(part, QUICK, 4):
        check(seed, (4, 4, 5, 7)[part], whole=seed % 16 == part)


def test_incremental_diff_equals_the_full_diff() -> None:
    for seed in range(3):
        run(Author(seed).program(11), shadow=True)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_incremental_diff_equals_the_full_diff_in_many_histories() -> None:
    for seed in range(repeats(60)):
        run(Author(seed).program(12 + seed % 12), shadow=True)


@pytest.mark.full
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("part", range(10))
def test_many_programs_match_the_model(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    hits.clear()
    for seed in range(QUICK + part, QUICK + FULL, 10):
        check(seed, 5 + seed % 21)
    with capsys.disabled():
        print(f"\ncame across: {dict(sorted(hits.items()))}")
    rare = {name for name in EVERYTHING if hits[name] < 5}
    assert FULL < 5000 or not rare  # a sample may miss a rare one


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(8))
def test_programs_with_schemas_that_go_apart_match_the_model(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Some 280 programs; a depth of 8 runs more than 2,000."""
    hits.clear()
    count = repeats(35)
    for number in range(count):
        check(part * 1000 + number, 8 + number % 12, whole=number % 8 == 0, kind="schema_program")
    with capsys.disabled():
        print(f"\ncame across: {dict(sorted(hits.items()))}")
    assert count < 500 or not {name for name in WITH_SCHEMAS if hits[name] < 3}


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_programs_with_different_defaults_match_the_model() -> None:
    for seed in range(repeats(60)):
        check(seed, 7 + seed % 5, whole=seed % 8 == 0, kind="filled_program")


@pytest.mark.parametrize("name", DEFECTS)
def test_programs_of_planted_defects_pass_without_the_defect(name: str) -> None:
    run(DEFECTS[name].program)


@pytest.mark.parametrize("name", FOUND)
def test_formerly_failing_programs_pass(name: str) -> None:
    run(FOUND[name])


@pytest.mark.full
@pytest.mark.parametrize("name", DEFECTS)
def test_planted_defects_are_detected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    DEFECTS[name].plant(monkeypatch)
    assert failure(DEFECTS[name].program) is not None


def test_documentation_names_every_planted_defect_and_existing_tests(checkout: Path) -> None:
    page = (checkout / "docs" / "explanation" / "how-merges-are-tested.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|") and "::" in line]
    assert {name for name in DEFECTS if f"| `{name}` |" not in page} == set()
    assert [one for line in rows for one in missing(line)] == []
    assert f"runs {QUICK} small programs" in page


EVERYTHING = (
    *("already_up_to_date", "fast_forward", "merged", "conflict", "refused"),
    *("divergent_insert", "divergent_update", "delete_vs_update", "orphan_edge"),
    *("unique_violation", "cardinality_violation", "value_constraint_violation"),
    *("several bases", "doubtful", "lost edges", "discarded", "credited"),
    *("put", "cut", "patch", "fork", "drop", "rewrite", "reopen", "fault", "diff", "at"),
    *("schema", "optimize", "cleanup"),
    *("keyed edge clash", "keyed edge on both"),
    *("replay merged", "replay conflict", "replay refused", "traced"),
)
WITH_SCHEMAS = (
    *("merged", "schema conflict: open", "several bases", "discarded", "credited", "diff"),
    *("replay merged", "replay refused", "misfit"),
    *("slot size.type of two schemas", "slot knows.card of two schemas", "slot level.values of two schemas"),
    *("slot title.checks of two schemas", "slot size.range of two schemas", "slot grades of two schemas"),
)
