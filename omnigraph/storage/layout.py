"""Names for the directories and objects in a graph root.

Except for leases, no name in a root is ever written twice. Names that could collide contain a ULID.
"""

import re
from urllib.parse import quote, unquote

from omnigraph.values.table_key import TableKey

MANIFEST = "__manifest"
BRANCHES = "__branches"
ALL_REFS = "_refs"
REFS = f"{ALL_REFS}/branches"
TAGS = f"{ALL_REFS}/tags"
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
TOKENS_FILE = "words.lance"  # file name in a full-text index segment's directory

STAMP_KEY = "omnigraph:internal_schema_version"
STAMP = 100
_MAX_KEY_BYTES = 1024  # the maximum key length on S3, which is also applied to all other stores
_REF_PATTERN = re.compile(r"([^/]+)/([0-9]{10})\.json")
_INTENT_PATTERN = re.compile(rf"{INTENTS}/([0-9A-Z]{{26}})\.(json|confirmed|lease|verdict|set_aside|newer)")


def fnv1a64(hashed_name: str) -> str:
    """Return the 64-bit FNV-1a hash of the UTF-8 bytes of a name, as sixteen hexadecimal digits.

    >>> fnv1a64("Person")
    '40d76f1f51639ec0'
    """
    hash_value = 0xCBF29CE484222325
    for byte in hashed_name.encode():
        hash_value = (hash_value ^ byte) * 0x100000001B3 % (1 << 64)
    return f"{hash_value:016x}"


def table_directory(table_key: TableKey, ulid: str) -> str:
    """Return the directory of a table. Every registration of a table gets a new directory.

    >>> table_directory(TableKey("node:Person"), "01J0000000000000000000000A")
    'nodes/40d76f1f51639ec0-01J0000000000000000000000A'
    """
    entity_kind, type_name = table_key.kind, table_key.type_name
    return f"{entity_kind}s/{fnv1a64(type_name)}-{ulid}"


def manifest_directory(branch_ulid: str) -> str:
    """Return the directory for the manifest dataset of a branch. The directory for the main branch has a fixed name."""
    return MANIFEST if branch_ulid == MAIN else f"{BRANCHES}/{branch_ulid}"


def ref_name(ref: str, sequence_number: int, directory: str = REFS) -> str:
    """Return the name of the n-th ref object of a branch or tag.

    A branch or tag exists if the highest number among its ref objects is odd, and is deleted if that number is even.

    >>> ref_name("review/a", 3)
    '_refs/branches/review%2Fa/0000000003.json'
    """
    return f"{directory}/{quote(ref, safe='')}/{sequence_number:010d}.json"


def can_have_refs(ref: str) -> bool:
    """Return whether a store can contain ref objects for a branch or tag with this name.

    The result is True for the name of every existing branch or tag.

    >>> can_have_refs("a b"), can_have_refs("."), can_have_refs("x" * 1025)
    (True, False, False)
    """
    try:
        segment = quote(ref, safe="")
    except UnicodeEncodeError:  # the name contains a surrogate
        return False
    return segment not in ("", ".", "..") and len(segment) <= _MAX_KEY_BYTES


def parse_ref_name(object_name: str, directory: str = REFS) -> tuple[str, int] | None:
    """Return the branch or tag and the number that the name of a ref object contains, or None for an unrelated file.

    >>> parse_ref_name("_refs/branches/review%2Fa/0000000003.json")
    ('review/a', 3)
    >>> parse_ref_name("_refs/branches/.DS_Store")
    """
    name_match = _REF_PATTERN.fullmatch(object_name.removeprefix(f"{directory}/"))
    return (unquote(name_match[1]), int(name_match[2])) if name_match else None


def chunk_name(digest: str, ulid: str) -> str:
    """Return the name of a sealed log chunk. The digest verifies the content, and the ULID makes the name unique."""
    return f"{COMMITS}/{digest}-{ulid}"


def schema_name(digest: str, ulid: str) -> str:
    """Return the name of a schema object. The digest verifies the content, and the ULID makes the name unique."""
    return f"{SCHEMAS}/{digest}-{ulid}"


def gc_name(run_id: str, suffix: str) -> str:
    """Return the name of a file that belongs to a garbage collection run. `suffix` must be `condemned` or `sweep`."""
    return f"{GC}/{run_id}.{suffix}"


def intent_name(ulid: str, suffix: str = "json") -> str:
    """Return the name of a file that belongs to an intent.

    `suffix` is `json`, `lease`, `confirmed`, `verdict`, `set_aside` or `newer`.
    """
    return f"{INTENTS}/{ulid}.{suffix}"


def parse_intent_name(object_name: str) -> tuple[str, str] | None:
    """Return the ULID and the suffix in the name of an intent's file, or None for an unrelated file.

    >>> parse_intent_name("__recovery/01J0000000000000000000000A.lease")
    ('01J0000000000000000000000A', 'lease')
    >>> parse_intent_name("__recovery/backup/01J0000000000000000000000A.json")
    """
    name_match = _INTENT_PATTERN.fullmatch(object_name)
    return (name_match[1], name_match[2]) if name_match else None
