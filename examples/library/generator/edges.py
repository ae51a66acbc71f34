"""Generate the edges of the example library as lines of NDJSON, with one function per type.

Each function streams its rows and keeps none of them in memory.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import chain, repeat
from random import Random

from .outline import (
    FIRST_YEAR,
    GROUP,
    LAST_YEAR,
    SHARES,
    Library,
    Outline,
    doi,
    group_of,
    institution_code,
    members,
    orcid,
    outlines,
)
from .prose import pick
from .words import FIELDS, TOPICS, VENUES


def edge(kind: str, source: str, target: str, data: str = "{}") -> str:
    """Return the line for an edge. Callers must escape ids if necessary; most ids need no escaping."""
    return f'{{"edge":"{kind}","from":"{source}","to":"{target}","data":{data}}}\n'


def narrower_rows(library: Library) -> Iterator[str]:
    """Yield an edge from each topic to its field."""
    for topic in TOPICS:
        yield edge("NarrowerThan", topic.slug, FIELDS[topic.field][0])


def affiliation_rows(library: Library) -> Iterator[str]:
    """Yield affiliations: each group works at one institution, and some members have a second post."""
    rng = library.random("affiliation")
    groups = -(-library.authors // GROUP)
    for author in range(library.authors):
        group = author // GROUP
        home = group * 7 % library.institutions
        starts = FIRST_YEAR + (LAST_YEAR - FIRST_YEAR) * group // (groups + 1)
        since = date(starts, 1, 1) + timedelta(int(rng.random() * 700))
        until = since + timedelta(1000 + int(rng.random() * 6000)) if rng.random() < 0.3 else None
        ending = f',"until":"{until}"' if until and until.year <= LAST_YEAR else ""
        data = f'{{"since":"{since}"{ending}}}'
        yield edge("AffiliatedWith", orcid(author), institution_code(home), data)
        other = int(rng.random() * library.institutions)
        if rng.random() < 0.15 and other != home:
            data = f'{{"since":"{since + timedelta(400)}"}}'
            yield edge("AffiliatedWith", orcid(author), institution_code(other), data)


def wrote_rows(library: Library) -> Iterator[str]:
    """Yield the authors of each paper; the first one is the corresponding author."""
    for paper in outlines(library):
        target = doi(library, paper.number)
        data = '{"position":1,"corresponding":true}'
        for position, author in enumerate(paper.authors, 2):
            yield edge("Wrote", orcid(author), target, data)
            data = f'{{"position":{position},"corresponding":false}}'


def reviewed_rows(library: Library) -> Iterator[str]:
    """Yield reviews by people in the same field who did not write the paper."""
    rng = library.random("review")
    for paper in outlines(library):
        wanted = 0 if paper.status == "preprint" else int(rng.random() * 3)
        field, known = TOPICS[paper.topics[0]].field, set(paper.authors)
        for _ in range(wanted):
            group = members(library, group_of(library, paper.number, field, rng.random()))
            reviewer = pick(rng, group)
            if reviewer in known:
                continue
            known.add(reviewer)
            yield edge("Reviewed", orcid(reviewer), doi(library, paper.number), report(rng, paper))


def report(rng: Random, paper: Outline) -> str:
    """Return the properties of one review."""
    day = paper.day + timedelta(5 + int(rng.random() * 50))
    score = 1 + int(rng.random() * 5)
    verdict = ("reject", "revise", "revise", "accept", "accept")[score - 1]
    known = f',"score":{score}' if rng.random() < 0.8 else ""
    return f'{{"reviewed_on":"{day}","verdict":"{verdict}"{known}}}'


INTENTS = tuple(f'{{"intent":"{intent}"}}' for intent in chain(repeat("background", 4), ("method", "comparison")))


def cites_rows(library: Library) -> Iterator[str]:
    """Yield citations; a paper cites only older papers."""
    rng = library.random("cites")
    for citing, cited in library.graph():
        yield edge("Cites", doi(library, citing), doi(library, cited), pick(rng, INTENTS))


def about_rows(library: Library) -> Iterator[str]:
    """Yield the topics of each paper with their shares."""
    for paper in outlines(library):
        source, shares = doi(library, paper.number), SHARES[len(paper.topics) - 1]
        for topic, share in zip(paper.topics, shares, strict=True):
            yield edge("About", source, TOPICS[topic].slug, f'{{"weight":{share}}}')


def edition_id(venue: int, year: int) -> str:
    """Return the id of an edition: its key values as an array, escaped for use in a JSON string."""
    return f'[\\"{VENUES[venue].code}\\",\\"{year}\\"]'


def published_rows(library: Library) -> Iterator[str]:
    """Yield the edition in which each paper was published."""
    rng = library.random("published")
    for paper in outlines(library):
        if paper.venue is not None:
            data = f'{{"first_page":{1 + int(rng.random() * 900)}}}' if rng.random() < 0.8 else "{}"
            place = edition_id(paper.venue, paper.year)
            yield edge("PublishedIn", doi(library, paper.number), place, data)


def edition_of_rows(library: Library) -> Iterator[str]:
    """Yield the venue of each edition."""
    for number, venue in enumerate(VENUES):
        for year in range(venue.founded, LAST_YEAR + 1):
            yield edge("EditionOf", edition_id(number, year), venue.code)
