"""The interface that each kind of store implements for control objects."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from omnigraph.records.frozen import record

TRANSFER_BLOCK_BYTES = 8 << 20  # a large object is held in memory one block of this size at a time


@record
class ListedObject:
    """An object in a listing: its root-relative name, its size, and its modification time on the store's clock.

    `etag` changes when the object is removed and its name is reused for a different object.
    """

    name: str
    size: int
    modified: datetime
    etag: str = ""


class ObjectBackend(Protocol):
    """The interface that each kind of store implements."""

    def read(self, object_name: str) -> bytes | None:
        """Return an object's bytes, or None if it does not exist; raise an error if it cannot be read."""

    def create(self, object_name: str, object_bytes: bytes) -> bool:
        """Create an object, or return False if the name is taken."""

    def replace(self, object_name: str, object_bytes: bytes) -> None:
        """Write or overwrite an object. Only leases are ever overwritten."""

    def read_blocks(self, object_name: str) -> Iterator[bytes] | None:
        """Return an iterator over a large object's blocks, or None if the object does not exist."""

    def write_blocks(self, object_name: str, blocks: Iterator[bytes]) -> None:
        """Write a large object block by block. The object becomes visible only when it is complete."""

    def write_data_file(self, object_name: str, object_bytes: bytes) -> None:
        """Write a data file under a name that no other writer uses."""

    def remove(self, object_name: str) -> None:
        """Remove an object, or do nothing if it does not exist."""

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield all objects whose name starts with `prefix/`, at any depth."""

    def list_unfinished(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the unfinished files below a prefix. An object store has none."""

    def list_level(self, prefix: str) -> tuple[Sequence[str], Sequence[ListedObject]]:
        """Return the directories and objects directly below `prefix/`."""

    def change_token(self, prefix: str) -> object | None:
        """Return a token that changes when a name is added or removed directly below `prefix`.

        The result is None if the store cannot provide such a token.
        """

    def stat_if_local(self, object_name: str) -> ListedObject | None:
        """Return an object's listing entry, or None if the object is missing or the lookup would take a request."""

    def list_first(self, prefix: str, max_objects: int) -> Sequence[ListedObject]:
        """Return the first objects directly below `prefix/` in name order, with one request."""
