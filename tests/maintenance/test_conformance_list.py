"""Every numbered case of maintenance has a test, or a reason why there is none."""

from collections import Counter

from tests.rig.case_lists import entries, missing

CASES = "maintenance/conformance.txt"
NUMBERS = [*map(str, range(1, 42)), "41b", *map(str, range(42, 61))]
# What the storage protocol makes different; all others stand as they are.
MAY_CHANGE = {*range(9, 20), 21, 22, *range(26, 36), 37, 38, 43, *range(45, 48), 52, 53}
# 1: a row does not know when it came, because that would make every version larger. 24: a server runs maintenance.
DIFFERENT = {1, 24}


def test_every_case_is_listed_in_order() -> None:
    assert list(dict.fromkeys(number for number, *_ in entries(CASES))) == NUMBERS


def test_every_case_has_a_test_or_a_reason() -> None:
    for number, fate, place in entries(CASES):
        word, _, what = fate.partition(": ")
        assert word in ("stands", "changed", "falls")
        assert bool(what) == (word == "changed"), number
        if word == "falls":
            assert "::" not in place
        else:
            assert not missing(place), (number, missing(place))
        if word != "stands":
            assert int(number) in MAY_CHANGE | DIFFERENT, number


def test_case_counts_add_up() -> None:
    fates = Counter({number: fate.partition(":")[0] for number, fate, _ in entries(CASES)}.values())
    print(f"maintenance: {fates['stands'] + fates['changed']} of 61 are tests, {dict(fates)}")
    assert fates.total() == 61
