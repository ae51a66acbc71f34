"""An independent definition of a valid library.

An independent check of the generator: it reads NDJSON and knows the rules of `schema.pg` by heart.
It must not import the generator, nor anything of ours that reads schemas.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from typing import Any

Data = dict[str, Any]
Rule = Callable[[Any], bool]


def text(pattern: str = r"\S") -> Rule:
    """A string that matches."""
    return lambda value: isinstance(value, str) and re.search(pattern, value) is not None


def whole(low: int, high: int = 2**31 - 1) -> Rule:
    """An integer within bounds; true and false are none."""
    return lambda value: type(value) is int and low <= value <= high


def decimal(low: float, high: float) -> Rule:
    """A number within bounds."""
    return lambda value: type(value) in (int, float) and low <= value <= high


def one_of(*words: str) -> Rule:
    """One of the values of an enum."""
    return lambda value: isinstance(value, str) and value in words


def flag(value: object) -> bool:
    """True or false."""
    return isinstance(value, bool)


def texts(value: object) -> bool:
    """A list of strings that are not blank and not repeated."""
    if not isinstance(value, list):
        return False
    return all(isinstance(x, str) and x for x in value) and len(set(value)) == len(value)


def day(value: object) -> bool:
    """A calendar day as ISO 8601 text."""
    return isinstance(value, str) and date.fromisoformat(value).isoformat() == value


def instant(value: object) -> bool:
    """A moment in UTC."""
    return text(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")(value) and bool(datetime.fromisoformat(str(value)))


def unit_vector(value: object) -> bool:
    """Eight numbers of length one."""
    if not isinstance(value, list) or len(value) != 8:
        return False
    return all(type(x) is float and round(x, 6) == x for x in value) and (abs(sum(x * x for x in value) - 1) < 1e-4)


def orcid(value: object) -> bool:
    """An ORCID with the check digit of ISO 7064 MOD 11-2."""
    if not text(r"^\d{4}-\d{4}-\d{4}-\d{3}[\dX]$")(value):
        return False
    digits = [10 if c == "X" else int(c) for c in str(value) if c != "-"]
    return sum(digit << 15 - place for place, digit in enumerate(digits)) % 11 == 1


DOI = text(r"^10\.[0-9]{4,9}/[a-z0-9.]+$")
PICTURE = text(r"^base64:[A-Za-z0-9+/]+={0,2}$")
YEAR = whole(1980, 2026)

# property -> rule; a `?` behind the name says that it may be missing
NODES: dict[str, dict[str, Rule]] = {
    "Topic": {"slug": text("^[a-z]+(-[a-z]+)*$"), "name": text()},
    "Institution": {
        "code": text(),
        "name": text(),
        "kind": one_of("university", "institute", "company", "government"),
        "country": text("^[A-Z]{2}$"),
        "latitude?": decimal(-90, 90),
        "longitude?": decimal(-180, 180),
        "staff?": whole(1),
    },
    "Author": {
        "orcid": orcid,
        "name": text(),
        "email?": text(r"^[a-z.0-9]+@example\.org$"),
        "aliases?": texts,
        "homepage?": text("^https://"),
        "active": flag,
        "added_at": instant,
    },
    "Venue": {
        "code": text(),
        "name": text(),
        "kind": one_of("journal", "conference", "workshop"),
        "founded": whole(1600, 2100),
        "publisher?": text(),
    },
    "Edition": {"series": text(), "year": YEAR, "volume": whole(1)},
    "Paper": {
        "doi": DOI,
        "title": text("^[A-Z]"),
        "abstract": text(r"^[A-Z].{150,}\.$"),
        "keywords": texts,
        "status": one_of("preprint", "in-review", "published", "retracted"),
        "year": YEAR,
        "published?": day,
        "pages?": whole(1, 5000),
        "downloads": whole(0),
        "open_access": flag,
        "added_at": instant,
        "abstract_vec?": unit_vector,
        "thumbnail?": PICTURE,
    },
}
KEYS = {
    "Topic": ("slug",),
    "Institution": ("code",),
    "Author": ("orcid",),
    "Venue": ("code",),
    "Edition": ("series", "year"),
    "Paper": ("doi",),
}
UNIQUE = (("Author", ("email",)), ("Institution", ("name", "country")))
# source, target, fewest and most per source, properties
EDGES: dict[str, tuple[str, str, int, int | None, dict[str, Rule]]] = {
    "NarrowerThan": ("Topic", "Topic", 0, 1, {}),
    "AffiliatedWith": ("Author", "Institution", 1, 2, {"since": day, "until?": day}),
    "Wrote": ("Author", "Paper", 0, None, {"position": whole(1), "corresponding": flag}),
    "Reviewed": (
        "Author",
        "Paper",
        0,
        None,
        {"reviewed_on": day, "verdict": one_of("accept", "revise", "reject"), "score?": whole(1, 5)},
    ),
    "Cites": ("Paper", "Paper", 0, None, {"intent": one_of("background", "method", "comparison")}),
    "About": ("Paper", "Topic", 1, 3, {"weight": decimal(0, 1)}),
    "PublishedIn": ("Paper", "Edition", 0, 1, {"first_page?": whole(1)}),
    "EditionOf": ("Edition", "Venue", 1, 1, {}),
}


class Contents:
    """The rows of a library and everything that is wrong with them."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.nodes: dict[str, dict[str, Data]] = {kind: {} for kind in NODES}
        self.edges: dict[str, list[tuple[str, str, Data]]] = {kind: [] for kind in EDGES}
        self.wrong: list[str] = []
        for number, line in enumerate(lines, 1):
            self.wrong += [f"line {number}: {what}" for what in self._add(line)]
        for check in (self._unique, self._endpoints, self._pairs, self._cardinality):
            self.wrong += check()

    def _add(self, line: str) -> Iterator[str]:
        row = json.loads(line, object_pairs_hook=without_repeats)
        if line != json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n":
            yield "not compact"
        if set(row) == {"type", "data"} and row["type"] in NODES:
            yield from misfits(row["data"], NODES[row["type"]])
            yield from self._add_node(row["type"], row["data"])
        elif set(row) == {"edge", "from", "to", "data"} and row["edge"] in EDGES:
            yield from misfits(row["data"], EDGES[row["edge"]][-1])
            self.edges[row["edge"]].append((row["from"], row["to"], row["data"]))
        else:
            yield "no envelope"

    def _add_node(self, kind: str, data: Data) -> Iterator[str]:
        identity = identity_of(kind, data)
        if identity in self.nodes[kind]:
            yield f"{kind} {identity} occurs twice"
        self.nodes[kind][identity] = data

    def _unique(self) -> Iterator[str]:
        for kind, columns in UNIQUE:
            rows = (tuple(row.get(c) for c in columns) for row in self.nodes[kind].values())
            counts = Counter(row for row in rows if None not in row)
            yield from (f"{kind} {row} is not unique" for row, n in counts.items() if n > 1)

    def _endpoints(self) -> Iterator[str]:
        for kind, (source, target, *_) in EDGES.items():
            for start, end, _data in self.edges[kind]:
                if start not in self.nodes[source] or end not in self.nodes[target]:
                    yield f"{kind} {start} -> {end} leads nowhere"

    def _pairs(self) -> Iterator[str]:
        for kind, edges in self.edges.items():
            counts = Counter((start, end) for start, end, _data in edges)
            yield from (f"{kind} {pair} occurs twice" for pair, n in counts.items() if n > 1)

    def _cardinality(self) -> Iterator[str]:
        for kind, (source, _target, low, high, _rules) in EDGES.items():
            counts = Counter(start for start, _end, _data in self.edges[kind])
            for identity in self.nodes[source]:
                count = counts[identity]
                if count < low or (high is not None and count > high):
                    yield f"{kind}: {identity} has {count}"


def without_repeats(pairs: list[tuple[str, Any]]) -> Data:
    """A JSON object, unless a member occurs twice."""
    made = dict(pairs)
    assert len(made) == len(pairs), pairs
    return made


def misfits(data: Data, rules: dict[str, Rule]) -> Iterator[str]:
    """What is missing, superfluous or wrong."""
    names = {name.rstrip("?"): name for name in rules}
    yield from (f"{name} is unknown" for name in data if name not in names)
    for name, written in names.items():
        if name not in data:
            if name == written:
                yield f"{name} is missing"
        elif not rules[written](data[name]):
            yield f"{name} is {data[name]!r}"


def identity_of(kind: str, data: Data) -> str:
    """The id of a node: its key, or a JSON list of the parts of its key in name order."""
    parts = [str(data[name]) for name in sorted(KEYS[kind])]
    return parts[0] if len(parts) == 1 else json.dumps(parts, separators=(",", ":"))
