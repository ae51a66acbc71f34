"""S3 requests of a write with and without tail compaction, and from a cold handle."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.api.handle import Handle
from omnigraph.storage.layout import COMMITS, INTENTS
from omnigraph.values.clock_and_ids import deterministic_ids
from tests.cost.measurements import METHODS, golden, open_cold, spoken
from tests.evolve.test_concurrent_writers import elsewhere
from tests.rig.depth import repeats
from tests.rig.independent_writers import apart
from tests.rig.plugin import S3
from tests.rig.proxy import requests_of
from tests.rig.upload import bring

SOME = 8
AGES = (10, 100, 500, 1_000, 10_000)
SCHEMA = "node Note { text: String }\nnode User { login: String @key }"


def asked(s3: S3, ages: tuple[int, ...]) -> list[str]:
    """Lines of what single inserts ask for, and of a keyed one from a cold handle at each age."""
    graph, plain = open_cold(s3.url, read_only=False), Counter[str]()
    graph.insert("Note", {"text": "warm"})
    lines = []
    for n in range(max(ages)):
        with requests_of(s3.proxy) as made:
            graph.insert("Note", {"text": f"t{n}"})
        logged = sum(f"{COMMITS}/" in one.key or f"{INTENTS}/" in one.key for one in made.seen)
        if not logged:
            plain[spoken(made.counts, METHODS)] += 1
        graph.insert("User", {"login": f"u{n}"})
        if n + 1 in ages:
            cold = elsewhere(graph)
            with requests_of(s3.proxy) as made:
                cold.insert("User", {"login": f"cold{n}"})
            lines.append(f"at {n + 1}: a keyed insert, cold: {spoken(made.counts, METHODS)}")
            graph.refresh()
    return [*lines, *(f"{cost}: {count}" for cost, count in sorted(plain.items()))]


def test_tail_compaction_requests_match_the_golden_file(s3: S3) -> None:
    omnigraph.init(s3.url, SCHEMA)
    with deterministic_ids():
        lines = asked(s3, (4, 20))
    assert lines == golden("fold.txt", lines)


def cold_inserts(s3: S3, place: Path, ages: Iterable[int]) -> Iterator[str]:
    """What a keyed insert asks for from a handle that knows nothing, at each age.

    The graph grows on a disk, and is brought to the server at each age.
    """
    graph, held = omnigraph.init(place, SCHEMA, durability="os"), 0
    for age in ages:
        for n in range(held, age):
            graph.insert("User", {"login": f"u{n}"})
        held, aged = age, f"{s3.url}-{age}"
        bring(s3.server, place, aged)
        worst: Counter[str] = Counter()
        for n in range(SOME):  # some fold, some do not
            line = apart(aged)
            with requests_of(s3.proxy) as made:
                Graph(Handle(line.store, line)).insert("User", {"login": f"cold{n}"})
            assert made.attempts == made.counts, made.lines
            worst |= made.counts
        yield f"at {age:,}: at most {spoken(worst, METHODS)}"


def test_requests_of_a_cold_insert_are_bounded(s3: S3, tmp_path: Path) -> None:
    with deterministic_ids():
        lines = list(cold_inserts(s3, tmp_path / "g", AGES[:2]))
    assert lines == golden("fold-cold.txt")[: len(lines)]


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_requests_of_a_cold_insert_are_bounded_at_any_history_length(s3: S3, tmp_path: Path) -> None:
    with deterministic_ids():
        lines = list(cold_inserts(s3, tmp_path / "g", AGES[: 3 + repeats(1)]))
    assert lines == golden("fold-cold.txt")[: len(lines)]


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_requests_of_a_keyed_insert_do_not_grow_with_history(s3: S3) -> None:
    omnigraph.init(s3.url, SCHEMA)
    with deterministic_ids():
        lines = asked(s3, (10, 100, 500, 600, 1100))
    assert lines == golden("fold-aged.txt", lines)
