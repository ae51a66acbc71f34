"""Every interleaving that broke an earlier protocol has a test and a faulty variant."""

from tests.rig.case_lists import entries, missing

SCHEDULES = "storage/schedules.txt"
WANTED = "storage/schedule_ids.txt"


def test_every_schedule_is_listed() -> None:
    assert {one for one, *_ in entries(SCHEDULES)} == {one for (one,) in entries(WANTED)}


def test_every_schedule_has_a_test_and_a_faulty_variant() -> None:
    for one, happens, test, faulty in entries(SCHEDULES):
        assert happens
        assert not missing(test), (one, missing(test))
        rule, _, seen = faulty.partition(": ")
        assert rule, one
        assert not missing(seen), (one, missing(seen))


def test_missing_test_is_reported() -> None:
    assert missing("tests/publish/test_schedule_list.py::test_that_never_was")
    assert missing("tests/nowhere.py::test_x")
    assert missing("a reason")
