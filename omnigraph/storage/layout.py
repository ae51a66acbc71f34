"""The names inside a graph root, and nothing else.

No name in a root is ever written twice, except leases: names that could collide contain a ULID.
"""

import re
from urllib.parse import quote, unquote

MANIFEST = "__manifest"
BRANCHES = "__branches"
REFS = "_refs/branches"
TAGS = "_refs/tags"
COMMITS = "_commits"
SCHEMAS = "_schemas"
CHECKSUMS = "_checksums"
INTENTS = "__recovery"
AUDIT = "_audit"
ASIDE = "_aside"
GC = "__gc"
CLAIM = "__init_claim.json"
PROBE = "__create_if_absent_probe_"
MAIN = "main"
WORDS = "words.lance"  # in the directory of a full-text index segment

STAMP_KEY = "omnigraph:internal_schema_version"
STAMP = 100
_KEY_BYTES = 1024  # the longest key on S3, and thus the longest name in any store
_REF = re.compile(r"([^/]+)/([0-9]{10})\.json")
_INTENT = re.compile(rf"{INTENTS}/([0-9A-Z]{{26}})\.(json|confirmed|lease|verdict|set_aside|newer)")


def fnv1a64(text: str) -> str:
    """Return FNV-1a 64 of the UTF-8 bytes of a name, as sixteen hexadecimal digits.

    >>> fnv1a64("Person")
    '40d76f1f51639ec0'
    """
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return f"{value:016x}"


def table_directory(table_key: str, ulid: str) -> str:
    """Return the directory of a table; a new one for each registration.

    >>> table_directory("node:Person", "01J0000000000000000000000A")
    'nodes/40d76f1f51639ec0-01J0000000000000000000000A'
    """
    kind, _, name = table_key.partition(":")
    return f"{kind}s/{fnv1a64(name)}-{ulid}"


def manifest_directory(branch_ulid: str) -> str:
    """Return the manifest dataset of a branch; the main branch has a fixed name."""
    return MANIFEST if branch_ulid == MAIN else f"{BRANCHES}/{branch_ulid}"


def ref_name(name: str, number: int, place: str = REFS) -> str:
    """Return the n-th ref object of a branch or tag: odd numbers mean open, even mean deleted.

    >>> ref_name("review/a", 3)
    '_refs/branches/review%2Fa/0000000003.json'
    """
    return f"{place}/{quote(name, safe='')}/{number:010d}.json"


def can_have_refs(name: str) -> bool:
    """Return whether a store can hold ref objects of this name; existing names always can.

    >>> can_have_refs("a b"), can_have_refs("."), can_have_refs("x" * 1025)
    (True, False, False)
    """
    try:
        segment = quote(name, safe="")
    except UnicodeEncodeError:  # surrogates
        return False
    return segment not in ("", ".", "..") and len(segment) <= _KEY_BYTES


def parse_ref_name(name: str, place: str = REFS) -> tuple[str, int] | None:
    """Return the ref and the sequence number of a ref object; None for an unrelated file.

    >>> parse_ref_name("_refs/branches/review%2Fa/0000000003.json")
    ('review/a', 3)
    >>> parse_ref_name("_refs/branches/.DS_Store")
    """
    found = _REF.fullmatch(name.removeprefix(f"{place}/"))
    return (unquote(found[1]), int(found[2])) if found else None


def chunk_name(digest: str, ulid: str) -> str:
    """Return the name of a sealed log chunk; the digest verifies it, the ULID makes it unique."""
    return f"{COMMITS}/{digest}-{ulid}"


def schema_name(digest: str, ulid: str) -> str:
    """Return the name of a schema object; the digest verifies it, the ULID makes it unique."""
    return f"{SCHEMAS}/{digest}-{ulid}"


def gc_name(run: str, part: str) -> str:
    """Return the name of a file of a garbage collection run: `condemned` or `sweep`."""
    return f"{GC}/{run}.{part}"


def intent_name(ulid: str, part: str = "json") -> str:
    """Return a file of an intent: `json`, `lease`, `confirmed`, `verdict`, `set_aside`, `newer`."""
    return f"{INTENTS}/{ulid}.{part}"


def parse_intent_name(name: str) -> tuple[str, str] | None:
    """Return the ULID and the suffix of an intent's file; None for an unrelated file.

    >>> parse_intent_name("__recovery/01J0000000000000000000000A.lease")
    ('01J0000000000000000000000A', 'lease')
    >>> parse_intent_name("__recovery/backup/01J0000000000000000000000A.json")
    """
    found = _INTENT.fullmatch(name)
    return (found[1], found[2]) if found else None
