"""Every number of the conformance lists has a case, and every listed case exists."""

import re
from pathlib import Path

from tests.model.engine_cases import CASES, all_cases

ROOT = Path(__file__).parents[2]
LINES = [
    [part.strip() for part in line.split("|")]
    for line in (CASES / "engine.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
HIGHEST = {"query": 60, "mutations": 61}


def test_every_case_number_is_listed() -> None:
    named = {(volume, int(number)) for volume, number in (one[0].split(" ") for one in LINES)}
    assert named == {(v, n) for v, top in HIGHEST.items() for n in range(1, top + 1)}


def test_every_listed_case_exists() -> None:
    for what, fate, place in LINES:
        assert re.match(r"stands$|changed: |falls$|later$", fate), what
        if fate in ("falls", "later"):
            continue
        file, _, test = place.partition("::")
        if test:
            assert f"def {test}(" in (ROOT / file).read_text("utf-8"), what
            continue
        text = (CASES / f"{file}.txt").read_text("utf-8")
        volume, number = what.split(" ")
        own = rf"^# case: .*\b{volume} (?:\d+ and )*{number}\b"
        checked = rf"^# case: {number}\b"
        values = file.startswith("values/")
        found = re.search(own, text, re.MULTILINE) or re.search(checked, text, re.MULTILINE)
        assert values or found, (what, place)


def test_number_of_cases_is_three_hundred() -> None:
    cases = all_cases()
    assert len(cases) >= 300
    assert len({str(one) for one in cases}) == len(cases)
