"""Every numbered case of the server and of the errors has a test, or a reason why there is none."""

import pytest

from tests.rig.case_lists import entries, missing

# The number of cases, and the cases of which at least one part is different: policies and clusters are not built,
# external blobs are copied, and interrupted writes do not block later writes.
LISTS = {"server/conformance.txt": (33, {2, 16, 18, 22, 28}), "errors/conformance.txt": (16, {1, 2, 7})}


@pytest.mark.parametrize("name", LISTS)
def test_every_case_is_listed_in_order(name: str) -> None:
    count, _ = LISTS[name]
    assert list(dict.fromkeys(int(number) for number, *_ in entries(name))) == [*range(1, count + 1)]


@pytest.mark.parametrize("name", LISTS)
def test_only_the_known_cases_are_different(name: str) -> None:
    _, different = LISTS[name]
    assert {int(number) for number, fate, _ in entries(name) if fate != "stands"} == different


@pytest.mark.parametrize("name", LISTS)
def test_every_case_has_a_test_or_a_reason(name: str) -> None:
    for number, fate, test_or_reason in entries(name):
        word, _, difference = fate.partition(": ")
        assert bool(difference) == (word == "changed"), number
        if word == "falls":
            assert "::" not in test_or_reason
        else:
            assert not missing(test_or_reason), (number, missing(test_or_reason))
