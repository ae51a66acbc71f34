"""Ids of types and properties that a schema change adds, derived from what is added.

Two branches that add the same property to the same type must give it the same id, and two branches
that add different things must never share one, because ids are compared across branches. An id is
therefore a hash of the owner and the name, not the next number of a counter that every branch has.
"""

from collections.abc import Container
from hashlib import sha256

# Derived ids have exactly 52 bits: they never meet the small ids of a new graph, and JSON readers keep them exact.
FIRST_DERIVED_ID = 1 << 51


def derive_id(domain: str, kind: str, owner_id: int, name: str, taken_ids: Container[int]) -> int:
    """Return the id of an addition; `taken_ids` are in use or were, and are never assigned again.

    >>> first = derive_id("0" * 26, "property", 1, "email", ())
    >>> first == derive_id("0" * 26, "property", 1, "email", ())
    True
    >>> first == derive_id("0" * 26, "property", 1, "email", {first})
    False
    """
    attempt = 0
    while (derived_id := _hash_id(f"{domain}/{kind}/{owner_id}/{name}/{attempt}")) in taken_ids:
        attempt += 1
    return derived_id


def is_derived(assigned_id: int) -> bool:
    """Return whether an id was derived; other ids come from the counter of an earlier release or a new graph."""
    return assigned_id >= FIRST_DERIVED_ID


def _hash_id(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8]) % FIRST_DERIVED_ID + FIRST_DERIVED_ID
