"""Generate the nodes of the example library as lines of NDJSON, with one function per type.

Each function streams its rows and keeps none of them in memory.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import cache
from math import fsum, sqrt
from random import Random

from .outline import (
    LAST_YEAR,
    OPENED,
    SHARES,
    Library,
    doi,
    institution,
    institution_code,
    orcid,
    outlines,
)
from .prose import compose, pick
from .words import FIELDS, FIRST_NAMES, LAST_NAMES, PLACES, TOPICS, VENUES, Topic

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def node(kind: str, data: dict[str, object]) -> str:
    """Return the line for a node; properties without a value are omitted."""
    present = {name: value for name, value in data.items() if value is not None}
    return encode({"type": kind, "data": present}) + "\n"


def topic_rows(library: Library) -> Iterator[str]:
    """Yield the fields and their topics."""
    for slug, name in FIELDS:
        yield node("Topic", {"slug": slug, "name": name})
    for topic in TOPICS:
        yield node("Topic", {"slug": topic.slug, "name": topic.name.capitalize()})


def institution_rows(library: Library) -> Iterator[str]:
    """Yield universities, companies and other institutions."""
    rng = library.random("institution")
    for number in range(library.institutions):
        name, kind, where = institution(number)
        place, located = PLACES[where], rng.random() < 0.85
        data: dict[str, object] = {"code": institution_code(number), "name": name, "kind": kind}
        data["country"] = place.country
        data["latitude"] = place.latitude if located else None
        data["longitude"] = place.longitude if located else None
        data["staff"] = 40 + small(rng, 20_000) if rng.random() < 0.8 else None
        yield node("Institution", data)


def small(rng: Random, most: int) -> int:
    """Return a random number below `most`; small numbers are much more likely than large ones."""
    draw = rng.random()
    return int(draw * draw * draw * most)


def moment(rng: Random, day: date) -> str:
    """Return a random time during office hours on a day."""
    second = int(rng.random() * 36_000)
    hour, minute = 8 + second // 3600, second // 60 % 60
    return f"{day}T{hour:02d}:{minute:02d}:{second % 60:02d}Z"


PLAIN = str.maketrans("áãäéíóöøüñł", "aaaeiooounl")


def author_rows(library: Library) -> Iterator[str]:
    """Yield authors. Several authors can have the same name, but keys and e-mail addresses are unique."""
    rng = library.random("author")
    for number in range(library.authors):
        first, last = pick(rng, FIRST_NAMES), pick(rng, LAST_NAMES)
        initial = "ABCDEFGHJKLMNPRSTW"[int(rng.random() * 18)]
        name = f"{first} {initial}. {last}" if rng.random() < 0.4 else f"{first} {last}"
        handle = f"{first}.{last}".lower().translate(PLAIN)
        known = rng.random()
        data: dict[str, object] = {"orcid": orcid(number), "name": name}
        data["email"] = f"{handle}.{number + 1}@example.org" if known < 0.7 else None
        data["aliases"] = [f"{first[0]}. {last}"] if rng.random() < 0.3 else None
        data["homepage"] = f"https://people.example.org/{handle}" if known < 0.2 else None
        data["active"] = rng.random() < 0.85
        data["added_at"] = moment(rng, date(2020, 1, 1) + timedelta(int(rng.random() * 2400)))
        yield node("Author", data)


def venue_rows(library: Library) -> Iterator[str]:
    """Yield journals, conferences and workshops."""
    for venue in VENUES:
        yield node("Venue", venue._asdict())


def edition_rows(library: Library) -> Iterator[str]:
    """Yield one edition of each venue for every year since the venue was founded."""
    for venue in VENUES:
        for year in range(venue.founded, LAST_YEAR + 1):
            volume = year - venue.founded + 1
            yield node("Edition", {"series": venue.code, "year": year, "volume": volume})


def directions() -> tuple[tuple[float, ...], ...]:
    """Return one eight-dimensional direction per topic; directions within a field are similar."""
    rng = Random("topic directions")  # noqa: S311 - nothing here is a secret
    found = []
    for topic in TOPICS:
        vector = [rng.random() * 0.9 - 0.45 for _ in range(8)]
        vector[topic.field] += 1.0
        found.append(tuple(vector))
    return tuple(found)


DIRECTIONS = directions()


def vector_of(rng: Random, topics: Sequence[int]) -> list[float]:
    """Return a unit vector in the direction of a mixture of topics, with some noise."""
    draw, shares = rng.random, SHARES[len(topics) - 1]
    mixed = [(draw() + draw() + draw() - 1.5) * 0.2 for _ in range(8)]
    for topic, share in zip(topics, shares, strict=True):
        mixed = [x + share * y for x, y in zip(mixed, DIRECTIONS[topic], strict=True)]
    # fsum is exact, whereas the rounding in sum depends on the Python version.
    length = sqrt(fsum([x * x for x in mixed]))
    # Adding 0.0 turns a negative zero into a positive one.
    return [round(x / length, 6) + 0.0 for x in mixed]


@cache
def thumbnail(field: int) -> str:
    """Return a one-pixel picture in the color of a field."""
    color = bytes((40 + 35 * field, 200 - 30 * field, 90 + 20 * field))
    start = b"GIF89a\x01\x00\x01\x00\x80\x00\x00" + color + b"\x00\x00\x00"
    end = b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
    return "base64:" + base64.b64encode(start + end).decode()


def paper_rows(library: Library) -> Iterator[str]:
    """Yield papers with text and vectors that match their topics."""
    rng = library.random("paper")
    for paper in outlines(library):
        subjects: list[Topic] = [TOPICS[topic] for topic in paper.topics]
        title, abstract, keywords = compose(rng, subjects)
        appeared = paper.status in ("published", "retracted")
        data: dict[str, object] = {"doi": doi(library, paper.number), "title": title}
        data |= {"abstract": abstract, "keywords": keywords, "status": paper.status}
        data["year"] = paper.year
        data["published"] = paper.day.isoformat() if appeared else None
        data["pages"] = 4 + small(rng, 60) if rng.random() < 0.9 else None
        data["downloads"] = small(rng, 50_000)
        data["open_access"] = rng.random() < (0.2 if paper.year < 2010 else 0.6)
        data["added_at"] = moment(rng, max(paper.day, OPENED + timedelta(int(rng.random() * 400))))
        vector = vector_of(rng, paper.topics)
        data["abstract_vec"] = vector if rng.random() < 0.97 else None
        data["thumbnail"] = thumbnail(subjects[0].field) if paper.number % 40 == 7 else None
        yield node("Paper", data)
