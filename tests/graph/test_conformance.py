"""Every numbered case has a test, or a reason why there is none."""

import re
from pathlib import Path

CASES = Path(__file__).parents[1] / "cases" / "storage" / "conformance.txt"
FATES = {"stands", "changed", "falls", "later"}


def lines() -> list[tuple[str, int, str, str]]:
    """Volume, number, fate and test of every line."""
    found = []
    for line in CASES.read_text().splitlines():
        if not line.startswith("#"):
            case, fate, test = line.split(" | ")
            volume, number = case.split()
            found.append((volume, int(number), fate.partition(":")[0], test))
    return found


def test_every_case_of_the_storage_format_is_there() -> None:
    assert {number for volume, number, *_ in lines() if volume == "storage"} == set(range(1, 51))


def test_every_case_has_a_test_or_a_reason(checkout: Path) -> None:
    for _, _, fate, test in lines():
        assert fate in FATES
        path, _, name = test.partition("::")
        if fate in ("stands", "changed"):
            source = (checkout / path).read_text()
            assert re.search(rf"^def {name}\(", source, re.MULTILINE), test
        else:
            assert not name
