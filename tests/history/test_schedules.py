"""Every schedule that broke an earlier text of the protocol has its test, seen to fail once."""

from tests.rig.lists import entries, missing

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


def test_a_test_that_is_not_there_is_missed() -> None:
    assert missing("tests/history/test_schedules.py::test_that_never_was")
    assert missing("tests/nowhere.py::test_x")
    assert missing("a reason")
