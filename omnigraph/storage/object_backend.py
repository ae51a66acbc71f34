"""The interface that each kind of store implements for control objects."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

TRANSFER_BLOCK_BYTES = 8 << 20  # bytes of a large object held in memory at a time


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One listed object, with its root-relative name, its size and its modification time on the store.

    `etag` changes when the name is removed and reused for a different object.
    """

    name: str
    size: int
    modified: datetime
    etag: str = ""


class ObjectBackend(Protocol):
    """The interface that each kind of store implements."""

    def read(self, object_name: str) -> bytes | None:
        """Return the bytes of an object, or None if it does not exist; raise an error for any other failure."""

    def create(self, object_name: str, object_bytes: bytes) -> bool:
        """Create an object; return False if the name is taken."""

    def replace(self, object_name: str, object_bytes: bytes) -> None:
        """Overwrite an object; only leases are overwritten."""

    def read_blocks(self, object_name: str) -> Iterator[bytes] | None:
        """Return the bytes of a large object block by block, or None if it does not exist."""

    def write_blocks(self, object_name: str, blocks: Iterator[bytes]) -> None:
        """Write a large object block by block; it becomes visible completely or not at all."""

    def write_data_file(self, object_name: str, object_bytes: bytes) -> None:
        """Write a data file under a name that no other writer can use."""

    def remove(self, object_name: str) -> None:
        """Remove an object; removing an absent object is not an error."""

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield all objects whose name starts with `prefix/`, at any depth."""

    def list_unfinished(self, prefix: str) -> Iterator[ListedObject]:
        """Yield unfinished files below a prefix; an object store has none."""

    def list_level(self, prefix: str) -> tuple[Sequence[str], Sequence[ListedObject]]:
        """Return the directories and objects directly below `prefix/`."""

    def change_token(self, prefix: str) -> object | None:
        """Return a token that changes when any name directly below `prefix` changes, or None if it is unknown."""

    def stat_if_local(self, object_name: str) -> ListedObject | None:
        """Return an object's listing entry without a request, or None if it is absent or the store needs a request."""

    def list_first(self, prefix: str, max_objects: int) -> Sequence[ListedObject]:
        """Return the first objects directly below `prefix/` in name order, with one request."""
