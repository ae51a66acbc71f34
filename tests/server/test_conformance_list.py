"""Every numbered case of the server has a test, or a reason why there is none."""

from tests.rig.case_lists import entries, missing

CASES = "server/conformance.txt"
DIFFERENT = {2, 16, 18, 28}  # policies and clusters are not built


def test_every_case_is_listed_in_order() -> None:
    assert list(dict.fromkeys(int(number) for number, *_ in entries(CASES))) == [*range(1, 34)]


def test_every_case_has_a_test_or_a_reason() -> None:
    for number, fate, test_or_reason in entries(CASES):
        word, _, difference = fate.partition(": ")
        assert bool(difference) == (word == "changed"), number
        assert (word == "stands") == (int(number) not in DIFFERENT), number
        if word == "falls":
            assert "::" not in test_or_reason
        else:
            assert not missing(test_or_reason), (number, missing(test_or_reason))
