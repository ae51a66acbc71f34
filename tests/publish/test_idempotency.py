"""A write with an idempotency key is applied once, as long as its outcome is retained."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from omnigraph.errors import InputError
from omnigraph.history.commit import Commit
from omnigraph.publish import idempotency
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.values import clock_and_ids
from tests.rig.independent_writers import apart, people
from tests.rig.writes import PERSON, init_small, read_branch, write

MORNING = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init_small(tmp_path / "g")
    return tmp_path / "g"


def _keyed(root: Path, n: int, key: str | None = "k", request: str = "r") -> Commit:
    made = write(apart(root), people(1, n), signature=CommitMetadata(idempotency_key=key, request_hash=request))
    assert made is not None
    return made


def test_repeated_write_returns_the_first_commit(root: Path) -> None:
    first = _keyed(root, 0)
    _keyed(root, 1, key=None)
    assert _keyed(root, 2) == first
    assert read_branch(apart(root))[PERSON] == [("p0", 0), ("p1", 1)]


def test_another_request_under_the_same_key_is_refused(root: Path) -> None:
    first = _keyed(root, 0)
    with pytest.raises(InputError) as caught:
        _keyed(root, 1, request="other")
    assert caught.value.details["commit_id"] == first.id
    assert len(read_branch(apart(root))[PERSON]) == 1


def test_key_expires_after_a_day(root: Path) -> None:
    with clock_and_ids.deterministic_ids(MORNING) as clock:
        first = _keyed(root, 0)
        clock.advance(hours=23)
        assert _keyed(root, 1) == first
        clock.advance(hours=2)
        assert _keyed(root, 2) != first


def test_key_search_tolerates_a_wrong_commit_time(root: Path) -> None:
    with clock_and_ids.deterministic_ids(MORNING):
        first = _keyed(root, 0)
    with clock_and_ids.deterministic_ids(datetime(2020, 1, 1, tzinfo=UTC), seed=2):
        _keyed(root, 1, key=None)
    with clock_and_ids.deterministic_ids(MORNING, seed=3):
        assert _keyed(root, 2) == first


def test_key_search_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "_MAX_COMMITS", 3)
    first = _keyed(root, 0)
    for n in (1, 2):
        _keyed(root, n, key=None)
    assert _keyed(root, 3) == first
    _keyed(root, 4, key=None)
    assert _keyed(root, 5) != first


def test_write_without_a_key_does_not_search(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "HistoryLog", None)
    assert _keyed(root, 0, key=None)
