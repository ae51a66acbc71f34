"""Every numbered case of the storage format has a test, or a reason why there is none."""

from collections import Counter

import pytest

from tests.rig.case_lists import entries, missing

CASES = "storage/conformance.txt"
FATES = {"stands", "changed", "falls"}
VOLUMES = {"storage": 50, "branches": 60, "write-path": 54}


def lines() -> list[tuple[str, int, str, str]]:
    """Volume, number, fate and test of every line."""
    found = []
    for case, fate, test in entries(CASES):
        volume, number = case.split()
        found.append((volume, int(number), fate.partition(":")[0], test))
    return found


def counted() -> dict[str, Counter[str]]:
    """How many cases of each volume stand, are changed or fall."""
    fates = {(volume, number): fate for volume, number, fate, _ in lines()}
    return {volume: Counter(fate for (other, _), fate in fates.items() if other == volume) for volume in VOLUMES}


@pytest.mark.parametrize(("volume", "cases"), VOLUMES.items())
def test_every_case_is_listed(volume: str, cases: int) -> None:
    numbers = {number for other, number, *_ in lines() if other == volume}
    assert numbers == set(range(1, cases + 1))


def test_every_case_has_a_test_or_a_reason() -> None:
    for *case, fate, test in lines():
        assert fate in FATES
        if fate in ("stands", "changed"):
            assert not missing(test), (case, missing(test))
        else:
            assert test
            assert "::" not in test


def test_case_counts_match_the_volumes() -> None:
    for volume, fates in counted().items():
        tests = fates["stands"] + fates["changed"]
        print(f"{volume}: {tests} of {sum(fates.values())} are tests, {dict(fates)}")
        assert tests + fates["falls"] == VOLUMES[volume]
