"""Derive ids for the types and properties that a schema change adds.

Ids are compared across branches. If two branches add the same property to the same type, both must therefore assign it
the same id, and different additions must never share an id. For this reason, an id is a hash of the owner and the name
rather than the next value of a per-branch counter.
"""

from collections.abc import Container
from hashlib import sha256

# Derived ids have exactly 52 bits, so they never collide with a new graph's small ids, and JSON numbers can represent
# them exactly.
FIRST_DERIVED_ID = 1 << 51


def derive_id(domain: str, kind: str, owner_id: int, name: str, taken_ids: Container[int]) -> int:
    """Return an id for an added type or property. The id differs from all current and former ids (`taken_ids`).

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
    """Return whether an id is derived. Ids from a graph's first schema or from an earlier release are sequential."""
    return assigned_id >= FIRST_DERIVED_ID


def _hash_id(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8]) % FIRST_DERIVED_ID + FIRST_DERIVED_ID
