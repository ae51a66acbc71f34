"""Ids, time and randomness: order, uniqueness and repeatability."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InputError
from omnigraph.values import clock_and_ids

NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


def test_ulids_grow_strictly_even_within_a_millisecond() -> None:
    made = [clock_and_ids.new_ulid() for _ in range(5000)]
    assert made == sorted(set(made))
    assert all(clock_and_ids.is_ulid(one) for one in made)


def test_ulids_of_many_threads_are_all_different() -> None:
    with ThreadPoolExecutor(8) as pool:
        blocks = list(pool.map(lambda _: [clock_and_ids.new_ulid() for _ in range(500)], range(8)))
    assert len({one for block in blocks for one in block}) == 4000
    assert all(block == sorted(block) for block in blocks)


def test_ulids_grow_when_the_clock_goes_back() -> None:
    with clock_and_ids.deterministic_ids(NEW_YEAR) as clock:
        first = clock_and_ids.new_ulid()
        clock.advance(hours=-1)
        second = clock_and_ids.new_ulid()
        clock.advance(hours=2)
        third = clock_and_ids.new_ulid()
    assert first < second < third
    assert clock_and_ids.ulid_time(second) == NEW_YEAR
    assert clock_and_ids.ulid_time(third) == NEW_YEAR + timedelta(hours=1)


def test_ulid_overflow_carries_into_the_next_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    with clock_and_ids.deterministic_ids(NEW_YEAR):
        monkeypatch.setattr(clock_and_ids._active_source, "random", lambda n: b"\xff" * n)
        full, over = clock_and_ids.new_ulid(), clock_and_ids.new_ulid()
    assert full.endswith("Z" * 16)
    assert over.endswith("0" * 16)
    assert clock_and_ids.ulid_time(over) == NEW_YEAR + timedelta(milliseconds=1)


def test_a_ulid_before_1970_is_still_a_ulid() -> None:
    with clock_and_ids.deterministic_ids(datetime(1960, 1, 1, tzinfo=UTC)):
        assert clock_and_ids.is_ulid(clock_and_ids.new_ulid())


FORKED = """
import os
from datetime import UTC, datetime
from omnigraph.values import clock_and_ids
with clock_and_ids.deterministic_ids(datetime(2024, 1, 1, tzinfo=UTC), seed=1):
    clock_and_ids.new_ulid()
    end, start = os.pipe()
    if os.fork() == 0:
        os.write(start, clock_and_ids.new_ulid().encode())
        os._exit(0)
    print(os.read(end, 26).decode() != clock_and_ids.new_ulid(), flush=True)
"""


def test_forked_child_does_not_continue_the_parent_sequence() -> None:
    # In a process of its own: this one may have loaded libraries that must not be forked.
    ended = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n"


@given(st.text(max_size=30) | st.from_regex(r"\A[0-9A-Z]{26}\Z"))
def test_only_canonical_ulids_are_ulids(text: str) -> None:
    canonical = len(text) == 26 and set(text) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    assert clock_and_ids.is_ulid(text) == (canonical and text[0] in "01234567")


@pytest.mark.parametrize(
    "text", ["", "01J", "01j8zc9q3m0000000000000000", "01J8ZC9Q3M000000000000000U", "8" + "Z" * 25]
)
def test_invalid_ulid_is_rejected(text: str) -> None:
    with pytest.raises(InputError, match="not a ULID"):
        clock_and_ids.check_ulid(text)


@given(st.integers(0, 2**128 - 1))
def test_the_digits_of_a_ulid_are_its_number(number: int) -> None:
    source = SimpleNamespace(next_ulid=lambda: number)
    with patch.object(clock_and_ids, "_active_source", source):
        text = clock_and_ids.new_ulid()
    assert clock_and_ids.is_ulid(text)
    crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    python_digits = "0123456789ABCDEFGHIJKLMNOPQRSTUV"
    assert int(text.translate(str.maketrans(crockford, python_digits)), 32) == number


def test_a_ulid_of_the_specification() -> None:
    assert clock_and_ids.ulid_time("01ARYZ6S41TSV4RRFFQ69G5FAV") == datetime(
        2016, 7, 30, 22, 36, 16, 385000, tzinfo=UTC
    )


def test_a_ulid_of_the_far_future_has_no_date() -> None:
    with pytest.raises(InputError, match="9999"):
        clock_and_ids.ulid_time("7" + "Z" * 25)


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))
def test_ulid_contains_its_creation_time(moment: datetime) -> None:
    with clock_and_ids.deterministic_ids(moment):
        assert clock_and_ids.ulid_time(clock_and_ids.new_ulid()) == clock_and_ids.now()


def draws() -> Iterator[object]:
    yield clock_and_ids.now()
    yield clock_and_ids.new_ulid()
    yield clock_and_ids.new_nonce()
    yield clock_and_ids.random_bytes(4)
    yield clock_and_ids.random_fraction()
    yield clock_and_ids.monotonic()


def test_fixed_runs_repeat_and_seeds_differ() -> None:
    runs = []
    for seed in (1, 1, 2):
        with clock_and_ids.deterministic_ids(NEW_YEAR, seed=seed):
            runs.append(list(draws()))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_manual_clock_stands_still_until_moved() -> None:
    with clock_and_ids.deterministic_ids(NEW_YEAR) as clock:
        assert clock_and_ids.now() == clock_and_ids.now() == NEW_YEAR
        clock.advance(milliseconds=1, microseconds=999)
        assert clock_and_ids.now() == NEW_YEAR + timedelta(milliseconds=1)
        assert clock_and_ids.now_micros() % 1_000_000 == 1999
        assert clock_and_ids.now_millis() == clock_and_ids.now_micros() // 1000
        assert clock_and_ids.monotonic() == pytest.approx(0.001999)


def test_real_clock_is_restored_after_an_error() -> None:
    with pytest.raises(RuntimeError), clock_and_ids.deterministic_ids(NEW_YEAR):
        raise RuntimeError
    assert clock_and_ids.now() > NEW_YEAR + timedelta(days=1)


def test_a_clock_can_be_shared_and_blocks_nest() -> None:
    clock = clock_and_ids.ManualClock(NEW_YEAR)
    with clock_and_ids.deterministic_ids(clock):
        clock.advance(days=1)
        with clock_and_ids.deterministic_ids():
            assert clock_and_ids.now() == datetime(1970, 1, 1, tzinfo=UTC)
        assert clock_and_ids.now() == NEW_YEAR + timedelta(days=1)


def test_time_is_utc_in_whole_milliseconds() -> None:
    moment = clock_and_ids.now()
    assert moment.tzinfo is UTC
    assert moment.microsecond % 1000 == 0
    assert clock_and_ids.monotonic() <= clock_and_ids.monotonic()


def test_nonces_differ() -> None:
    assert len({clock_and_ids.new_nonce() for _ in range(100)}) == 100
    assert len(clock_and_ids.new_nonce()) == 32
