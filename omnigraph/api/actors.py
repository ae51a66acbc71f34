"""Determine the actor for a handle or a write, from the caller's argument or from `OMNIGRAPH_ACTOR`."""

import os

from omnigraph.errors import InputError
from omnigraph.values.option_text import check_option_text

_RESERVED_PREFIX = "omnigraph:"


def resolve_actor(explicit_actor: str | None) -> str | None:
    """Return the explicit actor, the value of `OMNIGRAPH_ACTOR`, or None; reject names reserved for the system."""
    check_option_text(explicit_actor, "actor")
    return reject_reserved_actor(explicit_actor or os.environ.get("OMNIGRAPH_ACTOR") or None)


def reject_reserved_actor(actor: str | None) -> str | None:
    """Return the actor; raise `InputError` if its name is reserved for the system."""
    if actor is not None and actor.startswith(_RESERVED_PREFIX):
        message = f"'{actor}' cannot be used as an actor: the prefix '{_RESERVED_PREFIX}' is reserved"
        raise InputError(message, reason="reserved actor")
    return actor
