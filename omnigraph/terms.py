"""The terms of a write: who, why, on what condition, and under which key it is recognised again.

Owns the step from a caller's options to what the protocol checks on every attempt: the condition
of a conditional write, the strictness of an update, the wish to stop.
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

# Set by who may want to stop the writes of this context, such as a cancelled coroutine.
STOP: ContextVar[threading.Event | None] = ContextVar("omnigraph_stop", default=None)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a caller may say of any write."""

    if_commit: str | None = None
    message: str | None = None
    actor: str | None = None
    idempotency_key: str | None = None

    def signature(self, request: object = None) -> Signature:
        """Who writes and why; with a key also what, so that another request is told apart."""
        for name in ("message", "actor", "idempotency_key"):
            text = getattr(self, name)
            if text is not None and len(text) > _LONGEST:
                raise InputError(f"{name} has more than {_LONGEST} characters", reason="too long")
        key = self.idempotency_key
        digest = None if key is None else digest_request(request)
        return Signature(self.actor, self.message, key, digest)

    def conditions(self, watch: Watch, attempts: "Attempts") -> tuple[Requirement, ...]:
        """What must hold on every base that the write is tried on, the caller's condition first."""
        head = () if self.if_commit is None else (HeadWas(self.if_commit),)
        return (attempts, *head, watch)


@dataclass(slots=True)
class Attempts:
    """Counts on how many bases a write was tried, and ends it when its caller has gone."""

    count: int = 0
    stop: threading.Event | None = field(default_factory=STOP.get)

    def to_json(self) -> list[Any]:
        """Nothing that anybody else could check."""
        return ["watch", []]

    def check(self, txn: WriteTxn) -> None:
        """One more; raises `Cancelled` when nobody waits for the outcome."""
        self.count += 1
        if self.stop is not None and self.stop.is_set():
            raise Cancelled(f"the write to {txn.branch} was called off; nothing was changed")

    @property
    def retries(self) -> int:
        """How often it had to be tried again."""
        return max(0, self.count - 1)


def actor_of(given: str | None) -> str | None:
    """Who writes: as given, else `OMNIGRAPH_ACTOR`; names of our own are refused."""
    actor = given or os.environ.get("OMNIGRAPH_ACTOR") or None
    if actor is not None and actor.startswith(_RESERVED):
        raise InputError(
            f"'{actor}' cannot be an actor: '{_RESERVED}' is reserved", reason="reserved actor"
        )
    return actor


def request_of(mode: str, source: object) -> object:
    """What tells one load from another: the records that were given as plain data.

    A file or a frame would have to be read for it; such a load is known by its key alone.

    >>> request_of("append", {"Person": [{"name": "ann"}]})
    ('append', [('Person', [[('name', "'ann'")]])])
    """
    if not isinstance(source, Mapping):
        return mode
    return mode, [(name, told(source[name])) for name in sorted(source, key=str)]


def told(value: object) -> object:
    """Plain data, spelled the same in every process; nothing for anything else.

    >>> told({"b": [1.5, None], "a": "x"})
    [('a', "'x'"), ('b', ['1.5', 'None'])]
    """
    if isinstance(value, Mapping):
        return [(name, told(value[name])) for name in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [told(one) for one in value]
    if value is None or isinstance(value, _PLAIN):
        return repr(value)
    # Arrays would spell themselves with the middle left out.
    listed = getattr(value, "tolist", None)
    return told(listed()) if listed is not None else ""
