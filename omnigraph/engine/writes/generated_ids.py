"""Ids for inserted rows without a key. If a write runs again, it gets the same ids in the same order."""

from collections.abc import Iterable

from omnigraph.values import clock_and_ids
from omnigraph.values.clock_and_ids import check_ulid


class IdGenerator:
    """A generator of ids that returns the same ids again when an operation is retried.

    `earlier_ids` are the ids that another generator issued for the same operations. They are issued again before any
    new id. The earlier ids come from a client, so a row with such an id may already exist.
    """

    def __init__(self, earlier_ids: Iterable[str] = ()) -> None:
        self._issued_ids = [check_ulid(earlier_id) for earlier_id in earlier_ids]
        self._earlier_ids = frozenset(self._issued_ids)
        self._next_index = 0

    def restart(self) -> None:
        """Start over, so that the next id is the first one again."""
        self._next_index = 0

    def __call__(self) -> str:
        """Return the next id."""
        if self._next_index == len(self._issued_ids):
            self._issued_ids.append(clock_and_ids.new_ulid())
        self._next_index += 1
        return self._issued_ids[self._next_index - 1]

    def is_new(self, issued_id: str) -> bool:
        """Return whether this generator created the id itself, in which case no stored row can have it yet."""
        return issued_id not in self._earlier_ids

    @property
    def issued_ids(self) -> tuple[str, ...]:
        """The ids that the last run of the operations used."""
        return tuple(self._issued_ids[: self._next_index])
