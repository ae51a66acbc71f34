"""The facts that all files of the example library share: sizes, keys, dates, topics and teams.

Each stream derives its own random source from the seed and a name, so every file can be generated
separately and still match the others. No generated rows are kept in memory.
"""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache, lru_cache
from itertools import chain
from random import Random
from typing import NamedTuple

from .citations import Citations
from .prose import pick
from .words import FIELDS, INSTITUTIONS, PLACES, TOPICS, VENUES

FIRST_YEAR, LAST_YEAR = 1980, 2026
OPENED = date(2015, 3, 2)
GROUP = 6
# The shares of a paper's topics, for papers with one, two or three topics.
SHARES = ((1.0,), (0.7, 0.3), (0.6, 0.25, 0.15))
# The topic of each of the 32 papers in a block; some topics are more popular than others.
MIXTURE = tuple(chain(range(len(TOPICS)), (0, 0, 0, 3, 3, 4, 4, 6, 6, 9, 12, 14, 8, 1)))
# The other topics in the same field.
SIBLINGS = tuple(
    tuple(n for n, other in enumerate(TOPICS) if other.field == topic.field and other != topic) for topic in TOPICS
)


class Library(NamedTuple):
    """The seed and the size of a library. The same five numbers always produce the same bytes."""

    seed: int
    papers: int
    authors: int
    institutions: int
    citations: int

    def random(self, name: str) -> Random:
        """Return a separate random source for a name."""
        return Random(f"{self.seed}/{name}")  # noqa: S311 - nothing here is a secret

    def graph(self) -> Citations:
        """Return the citation graph, which also determines the main topic of each paper."""
        return Citations(self.seed, self.papers, self.citations, MIXTURE)


class Outline(NamedTuple):
    """The facts about one paper that several files share."""

    number: int
    year: int
    day: date
    status: str
    topics: tuple[int, ...]
    venue: int | None
    authors: tuple[int, ...]


# Identities, which are derived from numbers -------------------------------------------------


@cache
def year_starts(papers: int) -> tuple[int, ...]:
    """Return the number of the first paper in each year; later years have more papers."""
    weights = [4 + (year - FIRST_YEAR) ** 2 // 16 for year in range(FIRST_YEAR, LAST_YEAR + 1)]
    total = sum(weights)
    return tuple(papers * sum(weights[:i]) // total for i in range(len(weights) + 1))


def year_of(library: Library, paper: int) -> int:
    """Return the year in which a paper was written; higher numbers never have an earlier year."""
    return FIRST_YEAR - 1 + bisect_right(year_starts(library.papers), paper)


def day_of(library: Library, paper: int, year: int) -> date:
    """Return the day on which a paper was written; higher numbers never have an earlier day."""
    starts = year_starts(library.papers)
    start, end = starts[year - FIRST_YEAR], starts[year - FIRST_YEAR + 1]
    days = 300 if year == LAST_YEAR else 365
    return date(year, 1, 1) + timedelta(days * (paper - start) // (end - start))


@lru_cache(maxsize=1 << 16)
def doi(library: Library, paper: int) -> str:
    """Return the key of a paper. The prefix 10.5555 is reserved for examples."""
    return f"10.5555/lib.{year_of(library, paper)}.{paper + 1:05d}"


@lru_cache(maxsize=1 << 16)
def orcid(author: int) -> str:
    """Return the key of an author: an unassigned ORCID with a valid check digit (ISO 7064)."""
    digits = f"{999_900_000_000_001 + author:015d}"
    total = 0
    for digit in digits:
        total = (total + int(digit)) * 2
    text = digits + "0123456789X"[(12 - total % 11) % 11]
    return f"{text[:4]}-{text[4:8]}-{text[8:12]}-{text[12:]}"


def institution(number: int) -> tuple[str, str, int]:
    """Return the name, kind and place of an institution; names are unique."""
    place = number % len(PLACES)
    turn = number // len(PLACES)
    pattern, kind = INSTITUTIONS[(number + turn) % len(INSTITUTIONS)]
    again = number // (len(PLACES) * len(INSTITUTIONS))
    name = pattern.format(PLACES[place].name)
    return (f"{name} {again + 1}" if again else name), kind, place


def institution_code(number: int) -> str:
    """Return the key of an institution."""
    return institution(number)[0].lower().replace(" ", "-")


# Groups and teams ---------------------------------------------------------------------------


def group_of(library: Library, paper: int, field: int, draw: float) -> int:
    """Return the research group that wrote a paper: a group in its field that was active at the time."""
    groups = -(-library.authors // GROUP)
    rows = (groups - field + len(FIELDS) - 1) // len(FIELDS)
    if rows <= 0:
        return int(draw * groups)
    around = max(1, rows // 8)
    row = paper * rows // library.papers + int(draw * (2 * around + 1)) - around
    return field + len(FIELDS) * min(max(row, 0), rows - 1)


def members(library: Library, group: int) -> range:
    """Return the authors in a research group."""
    return range(group * GROUP, min((group + 1) * GROUP, library.authors))


def team(library: Library, rng: Random, group: range) -> tuple[int, ...]:
    """Return the authors of a paper: adjacent members of a group, sometimes with a guest author."""
    count = min(len(group), 1 + int((rng.random() + rng.random()) * 2))
    start = int(rng.random() * len(group))
    chosen = [group[(start + step) % len(group)] for step in range(count)]
    guest = int(rng.random() * library.authors * 5)
    return (*chosen, guest) if guest < library.authors and guest not in chosen else tuple(chosen)


def status_of(year: int, draw: float) -> str:
    """Return the status of a paper. Most old papers are published, but many recent ones are not."""
    waiting = (0.3, 0.55) if year >= LAST_YEAR - 1 else (0.07, 0.07)
    if draw < waiting[1]:
        return "preprint" if draw < waiting[0] else "in-review"
    return "retracted" if draw > 0.985 else "published"


def venue_of(year: int, status: str, field: int, draw: float) -> int | None:
    """Return the venue of a paper, usually the one for its field if that venue existed at the time."""
    if status in ("preprint", "in-review") or draw > 0.95:
        return None
    venue = field if draw < 0.65 else 7 if draw < 0.72 else 6
    return venue if VENUES[venue].founded <= year else 6


def topics_of(rng: Random, main: int) -> tuple[int, ...]:
    """Return one to three topics, starting with the main one; the others are often in its field."""
    draw = rng.random()
    if draw > 0.5:
        return (main,)
    near, far = pick(rng, SIBLINGS[main]), int(rng.random() * len(TOPICS))
    if draw > 0.15 or TOPICS[far].field == TOPICS[main].field:
        return main, near
    return main, near, far


def outlines(library: Library) -> Iterator[Outline]:
    """Yield all papers, from the oldest to the newest."""
    rng, graph = library.random("outline"), library.graph()
    for number in range(library.papers):
        year = year_of(library, number)
        topics = topics_of(rng, graph.topic(number))
        field = TOPICS[topics[0]].field
        status = status_of(year, rng.random())
        venue = venue_of(year, status, field, rng.random())
        authors = team(library, rng, members(library, group_of(library, number, field, rng.random())))
        day = day_of(library, number, year)
        yield Outline(number, year, day, status, topics, venue, authors)
