"""Generated names that are difficult for stores: 2,000, seeded, the same in every run."""

from collections.abc import Callable, Iterator
from random import Random

COUNT = 2000
LENGTHS = (1, 2, 63, 79, 80, 81, 143, 199, 200, 201, 240, 249, 254, 255, 256, 300, 990, 1024, 1100)
PLAIN = "abcXYZ019._-"
# Combining marks in both normal forms, right-to-left text and marks, emoji, look-alikes, halves of
# characters, white space, invisible characters.
ODD = (
    "\u00e9", "e\u0301", "\u0323\u0307", "\u05d0\u05d1", "\u202e", "\u200f", "\U0001f600",
    "\U0001f469\u200d\U0001f4bb", "\u0430", "\u212a", "\u01c5", "\u00df", "\u0130", "\ud800",
    "\udfff", "\u00a0", "\u2003", "\ufeff", "\u200b", "\uff0e", "\uff0f", "\u2024", "\U000e0001",
)  # fmt: skip
CONTROL = ("\x00", "\x01", "\t", "\n", "\r", "\x1b", "\x7f", "\x85", "\u2028")
SYNTAX = ("%", "%2F", "%2e", "%00", "%%", "*", "?", "[a]", "{b}", "'", '"', ";", "--", "`", "$",
          "\\", ":", "|", "<", ">", "#", "&", "=", "+", ",", "@", "!", "~", "^",
          " ", "''")  # fmt: skip
OWN = (
    "0000000001.json", "0000000002.json", "00000000001.json", "000000001.json", "__manifest",
    "__branches", "_refs", "_refs/branches", "_refs/tags", "branches", "tags", "_commits",
    "_schemas", "__recovery", "_audit", "_aside", "__gc", "__gc/claim", "__init_claim.json",
    "__create_if_absent_probe_1", "nodes", "edges", "words.lance", "_versions", "_indices", "data",
    "01J8ZC9Q3M0000000000000000", "01j8zc9q3m0000000000000000", "1.manifest", ".DS_Store",
    "0000000001.json#12", "a#123", "x.lock", "x.lock/y", "X.LOCK", "verdict", "sweep",
)  # fmt: skip
RESERVED = (
    "main", "Main", "MAIN", "main/x", "HEAD", "head", "hEAD", "HEAD~1", "main~2", "main..dev",
    "..", ".", "...", "a..b", ".a", "a.", "a/.", "a/./b", "a/../b", "./a", "../a", "/", "//", "/a",
    "a/", "a//b", "", " ", "  a  ", "a ", " a", "a\n", "-", "-a", "--help", "a/-b", "con", "NUL",
    "aux.txt", "select", "null", "None", "true", "1", "007", "2026-12-01", "2026-12-01T00:00:00Z",
    "manifest:1", "id", "src", "_rowid", "~", "@", "@{-1}", "a@{0}", "a b", "a\tb", "a.json",
)  # fmt: skip
# Each of these once left an intent that nobody could finish, or a branch that nobody could find.
HARDEST = (".", "x" * 300, "y" * 1100, "0000000001.json")
SEGMENTS = (*PLAIN, "ab", "a.b", ".", "..", "", ".a", "a.", "-", "__a", "_a", "a.lock", "main", " ")


def generate_names(count: int = COUNT) -> list[str]:
    """Different names: the listed ones first, then names around limits, then random mixtures."""
    random = Random(20260101)
    names = dict.fromkeys((*OWN, *RESERVED, *_around_limits(), *ODD, *CONTROL, *SYNTAX))
    while len(names) < count:
        names.setdefault(random.choice(_MAKERS)(random))
    return list(names)[:count]


def sample_names(count: int) -> list[str]:
    """Some of these names, spread over all kinds; the same in every run, the hardest always."""
    others = [name for name in generate_names() if name not in HARDEST]
    return [*HARDEST, *Random(7).sample(others, count - len(HARDEST))]


def identifier_of(name: str) -> str:
    """A name that the grammar of schemas takes, like this one."""
    kept = "".join(c for c in name if c.isascii() and (c.isalnum() or c == "_"))
    return f"T{kept}"


def _around_limits() -> Iterator[str]:
    for length in LENGTHS:
        yield "x" * length
        yield ("x/" * length)[: length // 2 * 2 - 1] or "x"
        yield "\u00e9" * (length // 2)
        yield "\U0001f600" * (length // 4)
        yield "%" * (length // 3)
        yield "x" * (length - 1) + "."


def _valid(random: Random) -> str:
    parts = ("".join(random.choices(PLAIN, k=random.randint(1, 8))) for _ in range(3))
    return "/".join([*parts][: random.randint(1, 3)])


def _segments(random: Random) -> str:
    return "/".join(random.choices(SEGMENTS, k=random.randint(1, 5)))


def _spoiled(random: Random) -> str:
    """A plain name with something else in it."""
    name = _valid(random)
    at = random.randint(0, len(name))
    return name[:at] + random.choice((*ODD, *CONTROL, *SYNTAX)) + name[at:]


def _long(random: Random) -> str:
    pattern = random.choice(("y", "ab/", "a.b-", "\u0623", "%", "e\u0301"))
    return (pattern * 1100)[: random.choice(LENGTHS) + random.randint(-2, 2)]


def _other_case(random: Random) -> str:
    word = random.choice((*OWN, *RESERVED, _valid(random)))
    return "".join(random.choice((c.lower(), c.upper())) for c in word)


def _padded(random: Random) -> str:
    pads = ("", " ", ".", "..", "/", "\t", "-", "~", "\u00a0")
    return random.choice(pads) + _valid(random) + random.choice(pads)


_MAKERS: tuple[Callable[[Random], str], ...] = (
    _valid, _valid, _segments, _spoiled, _long, _other_case, _padded,
)  # fmt: skip
