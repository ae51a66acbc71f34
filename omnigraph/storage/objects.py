"""Read, create, list and remove small control objects on a local disk or S3.

If several writers try to create an object with the same name, exactly one call succeeds and returns True. Every created
object contains a nonce. If a response is lost, the repeated request may find an object that the first request created.
The nonce shows that it is the same object.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnigraph.errors import StorageError
from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

from .checksums import CHECKSUM_MEMBER, matches_own_checksum, with_own_checksum
from .effects import Effects
from .local_objects import LocalBackend
from .object_backend import ListedObject, ObjectBackend
from .root import GraphRoot


@record
class ControlObjects:
    """The control objects in a root, as JSON or bytes."""

    backend: ObjectBackend
    effects: Effects

    def read(self, object_name: str) -> bytes | None:
        """Return an object's bytes, or None if it does not exist."""
        return self.backend.read(object_name)

    def read_json(self, object_name: str) -> dict[str, Any] | None:
        """Return a JSON object, or None if it does not exist; raise `StorageError` if it cannot be parsed.

        The error has kind `permanent`. It is also raised if the object does not match its own checksum, because its
        content or its name was changed.
        """
        object_bytes = self.backend.read(object_name)
        if object_bytes is None:
            return None
        try:
            members = json.loads(object_bytes)
        except (ValueError, RecursionError) as error:
            raise _unreadable_object_error(object_name) from error
        if not isinstance(members, dict):
            raise _unreadable_object_error(object_name)
        if not matches_own_checksum(object_name, members):
            raise _unreadable_object_error(object_name, "does not match its checksum")
        members.pop(CHECKSUM_MEMBER, None)
        return members

    def create_json(self, object_name: str, members: Mapping[str, Any]) -> bool:
        """Create an object if the name is free; return True if this call created the object under that name.

        If a damaged object has the name, the name counts as taken.
        """
        own_members = with_own_checksum(
            object_name, {**members, "nonce": members.get("nonce") or clock_and_ids.new_nonce()}
        )
        object_bytes = json.dumps(own_members, ensure_ascii=False, sort_keys=True).encode()
        if self.effects.run("object", object_name, lambda: self.backend.create(object_name, object_bytes)):
            return True
        try:
            existing = self.read_json(object_name)
        except StorageError as error:
            if error.kind != "permanent":
                raise
            return False
        return existing is not None and existing.get("nonce") == own_members["nonce"]

    def create_bytes(self, object_name: str, object_bytes: bytes) -> None:
        """Create an object under a name that no other writer uses, so that a lost response is harmless."""
        created = self.effects.run("object", object_name, lambda: self.backend.create(object_name, object_bytes))
        if not created and self.backend.read(object_name) != object_bytes:
            raise StorageError(f"another writer created {object_name} with different content", kind="permanent")

    def write_lease(self, lease_name: str, members: Mapping[str, Any]) -> None:
        """Write or renew a lease."""
        lease_bytes = json.dumps(dict(members), sort_keys=True).encode()
        self.effects.run("renew", lease_name, lambda: self.backend.replace(lease_name, lease_bytes))

    def remove(self, object_name: str) -> None:
        """Remove an object."""
        self.effects.run("remove", object_name, lambda: self.backend.remove(object_name))

    def list(self, prefix: str) -> list[ListedObject]:
        """Return the objects below a prefix, in name order."""
        return sorted(self.backend.list(prefix), key=lambda listed_object: listed_object.name)

    def list_level(self, prefix: str) -> tuple[Sequence[str], Sequence[ListedObject]]:
        """Return the directories and objects directly below a prefix, with their full names."""
        return self.backend.list_level(prefix)

    def list_unfinished(self, *prefixes: str) -> Sequence[ListedObject]:
        """Return unfinished files below the prefixes. Their writers are still running or were killed."""
        return [listed_object for prefix in prefixes for listed_object in self.backend.list_unfinished(prefix)]

    def list_first(self, prefix: str, max_objects: int) -> Sequence[ListedObject]:
        """Return the first objects directly below a prefix in name order, with one request."""
        return self.backend.list_first(prefix, max_objects)

    def stat_if_local(self, object_name: str) -> ListedObject | None:
        """Return an object's listing entry, or None if the object is missing or the lookup would take a request."""
        return self.backend.stat_if_local(object_name)

    def change_token(self, prefix: str) -> object | None:
        """Return a token that changes when a name is added or removed directly below a prefix.

        The result is None if the store cannot provide such a token.
        """
        return self.backend.change_token(prefix)


def _unreadable_object_error(object_name: str, reason: str = "is not a JSON object") -> StorageError:
    message = f"control object {object_name} {reason}; nothing was changed"
    return StorageError(message, kind="permanent", effect="none")


def open_objects(root: GraphRoot, effects: Effects, *, durable: bool) -> ControlObjects:
    """Open the control objects in a root."""
    if root.is_local:
        return ControlObjects(LocalBackend(Path(root.path), durable), effects)
    from .s3 import S3Backend

    return ControlObjects(S3Backend.connect(root), effects)
