"""Options that any write accepts: actor, message, precondition and idempotency key.

Owns the step from a caller's options to the metadata of the commit and to the requirements that
the write protocol checks on every attempt. It never writes anything itself.
"""

import os
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from omnigraph.errors import Cancelled, InputError
from omnigraph.history.plan import HeadWas, Requirement, Signature, Watch, WriteTxn
from omnigraph.request_digest import digest_request

_RESERVED = "omnigraph:"
_PLAIN = (str, bytes, int, float, date)
_LONGEST = 4096  # characters of a message, an actor or a key

# Set by code that may have to stop the writes of its context, such as a cancelled coroutine.
STOP: ContextVar[threading.Event | None] = ContextVar("omnigraph_stop", default=None)


@dataclass(frozen=True, slots=True)
class Terms:
    """Options that every write method accepts."""

    if_commit: str | None = None
    message: str | None = None
    actor: str | None = None
    idempotency_key: str | None = None

    def signature(self, request: object = None) -> Signature:
        """Return the metadata of the commit; with a key, also the digest of the request.

        The digest tells a repetition of the request from another request under the same key.
        """
        for name in ("message", "actor", "idempotency_key"):
            text = getattr(self, name)
            if text is not None and len(text) > _LONGEST:
                raise InputError(f"{name} has more than {_LONGEST} characters", reason="too long")
        key = self.idempotency_key
        digest = None if key is None else digest_request(request)
        return Signature(self.actor, self.message, key, digest)

    def conditions(self, watch: Watch, attempts: "Attempts") -> tuple[Requirement, ...]:
        """Return what every attempt must satisfy, the caller's own precondition first."""
        head = () if self.if_commit is None else (HeadWas(self.if_commit),)
        return (attempts, *head, watch)


@dataclass(slots=True)
class Attempts:
    """Counts the attempts of a write and stops it when its caller no longer waits."""

    count: int = 0
    stop: threading.Event | None = field(default_factory=STOP.get)

    def to_json(self) -> list[Any]:
        """Return an empty requirement: no other process can check this one."""
        return ["watch", []]

    def check(self, txn: WriteTxn) -> None:
        """Count an attempt; raise `Cancelled` when the caller no longer waits."""
        self.count += 1
        if self.stop is not None and self.stop.is_set():
            raise Cancelled(f"the write to {txn.branch} was cancelled; nothing was changed")

    @property
    def retries(self) -> int:
        """How often the write was repeated after a conflict."""
        return max(0, self.count - 1)


def actor_of(given: str | None) -> str | None:
    """Return the explicit actor or `OMNIGRAPH_ACTOR`; refuse names reserved for the system."""
    actor = given or os.environ.get("OMNIGRAPH_ACTOR") or None
    if actor is not None and actor.startswith(_RESERVED):
        raise InputError(
            f"'{actor}' cannot be an actor: '{_RESERVED}' is reserved", reason="reserved actor"
        )
    return actor


def request_of(mode: str, source: object) -> object:
    """Return what distinguishes one load from another: its mode and its records.

    Files and frames would have to be read first, so such a load is identified by its key alone.

    >>> request_of("append", {"Person": [{"name": "ann"}]})
    ('append', [('Person', [[('name', "'ann'")]])])
    """
    if not isinstance(source, Mapping):
        return mode
    return mode, [(name, told(source[name])) for name in sorted(source, key=str)]


def told(value: object) -> object:
    """Describe plain data the same way in every process; return "" for anything else.

    >>> told({"b": [1.5, None], "a": "x"})
    [('a', "'x'"), ('b', ['1.5', 'None'])]
    """
    if isinstance(value, Mapping):
        return [(name, told(value[name])) for name in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [told(one) for one in value]
    if value is None or isinstance(value, _PLAIN):
        return repr(value)
    # The repr of a long array leaves out its middle.
    listed = getattr(value, "tolist", None)
    return told(listed()) if listed is not None else ""
