"""The generator of the example library: deterministic output that keeps every schema rule."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.examples.library_rules import Contents
from tests.rig.timeouts import PATIENCE


@pytest.fixture(scope="module")
def library(checkout: Path) -> Path:
    return checkout / "examples" / "library"


def generate(library: Path, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, library / "generate.py", *arguments]
    return subprocess.run(command, capture_output=True, check=False)


def stream(library: Path, *arguments: str) -> bytes:
    done = generate(library, *arguments, "--out", "-")
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def contents_of(data: bytes) -> Contents:
    return Contents(data.decode().splitlines(keepends=True))


@pytest.fixture(scope="module")
def small(library: Path) -> Contents:
    files = sorted((library / "data").iterdir())
    return contents_of(b"".join(file.read_bytes() for file in files))


@pytest.fixture(scope="module")
def large(library: Path) -> Contents:
    return contents_of(stream(library, "--papers", "3000", "--citations", "20000"))


def test_the_committed_files_are_what_the_generator_makes(library: Path, tmp_path: Path) -> None:
    assert generate(library, "--out", tmp_path).returncode == 0
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_bytes() for file in (library / "data").iterdir()}
    assert made.keys() == kept.keys()
    assert [name for name in made if made[name] != kept[name]] == []


def test_the_committed_files_are_small(library: Path) -> None:
    assert sum(file.stat().st_size for file in (library / "data").iterdir()) < 600_000


def test_the_stream_is_the_files_in_order(library: Path) -> None:
    files = sorted((library / "data").iterdir())
    assert stream(library) == b"".join(file.read_bytes() for file in files)


def test_nodes_come_before_edges(library: Path) -> None:
    kinds = [next(iter(json.loads(line))) for line in stream(library).splitlines()]
    assert kinds == sorted(kinds, reverse=True)
    assert set(kinds) == {"type", "edge"}


def test_another_seed_gives_another_library(library: Path) -> None:
    assert stream(library, "--seed", "2") != stream(library)


def test_the_committed_library_keeps_its_schema(small: Contents) -> None:
    assert small.wrong == []
    counts = {kind: len(rows) for kind, rows in small.nodes.items()}
    assert counts | {"Venue": 0, "Edition": 0} == {
        "Topic": 24,
        "Institution": 20,
        "Author": 120,
        "Paper": 200,
        "Venue": 0,
        "Edition": 0,
    }
    assert len(small.edges["Cites"]) == 1000


def test_a_larger_library_keeps_its_schema(large: Contents) -> None:
    assert large.wrong == []
    assert len(large.nodes["Paper"]) == 3000
    assert len(large.edges["Cites"]) == 20_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("--papers", "1"),
        ("--papers", "2", "--authors", "1", "--institutions", "1"),
        ("--papers", "30", "--citations", "217"),
        ("--papers", "50", "--authors", "1000", "--institutions", "400", "--seed", "-3"),
        ("--papers", "400", "--citations", "0", "--authors", "7"),
    ],
)
def test_odd_sizes_keep_the_schema(library: Path, arguments: tuple[str, ...]) -> None:
    contents = contents_of(stream(library, *arguments))
    assert contents.wrong == []
    asked = dict(zip(arguments[::2], map(int, arguments[1::2]), strict=True))
    assert len(contents.nodes["Paper"]) == asked["--papers"]
    if "--citations" in asked:
        assert len(contents.edges["Cites"]) == asked["--citations"]


@pytest.mark.full
@pytest.mark.timeout(600)
def test_library_larger_than_the_caches_keeps_its_schema(library: Path) -> None:
    contents = contents_of(stream(library, "--papers", "70000", "--citations", "100000"))
    assert contents.wrong == []
    assert len(contents.edges["Cites"]) == 100_000


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"status":"published"', '"status":"printed"', "status is 'printed'"),
        ('"year":2019', '"year":1979', "year is 1979"),
        ('"doi":"10.5555/', '"doi":"11.5555/', "doi is '11.5555/"),
        ('"orcid":"9999-0000-0000-0019"', '"orcid":"9999-0000-0000-0018"', "orcid is"),
        ('"abstract_vec":[', '"abstract_vec":[0.1,', "abstract_vec is"),
        ('"position":1,', "", "position is missing"),
        ('"intent":', '"aim":', "aim is unknown"),
        ('"to":"[\\"clearn\\",\\"2019\\"]"', '"to":"clearn"', "leads nowhere"),
        ('"slug":"genomics"', '"slug":"hydrology"', "Topic hydrology occurs twice"),
        ('"edge":"AffiliatedWith"', '"edge":"Wrote"', "AffiliatedWith: 9999-"),
        ('"type":"Venue","data":{', '"type":"Venue","id":1,"data":{', "no envelope"),
    ],
)
def test_schema_check_detects_violations(library: Path, old: str, new: str, complaint: str) -> None:
    data = stream(library).decode()
    assert old in data
    wrong = contents_of(data.replace(old, new, 1).encode()).wrong
    assert any(complaint in one for one in wrong)


def test_only_older_papers_are_cited(large: Contents) -> None:
    papers = large.nodes["Paper"]
    order = {doi: place for place, doi in enumerate(papers)}
    for citing, cited, _data in large.edges["Cites"]:
        assert order[cited] < order[citing]
        assert papers[cited]["year"] <= papers[citing]["year"]
    days = [paper["published"] for paper in papers.values() if "published" in paper]
    assert days == sorted(days)


def test_a_few_papers_are_cited_by_very_many(large: Contents) -> None:
    counts = Counter(cited for _citing, cited, _data in large.edges["Cites"])
    ranked = [count for _paper, count in counts.most_common()]
    mean = sum(ranked) / len(large.nodes["Paper"])
    assert ranked[0] > 15 * mean
    assert sum(ranked[: len(ranked) // 10]) > sum(ranked) / 3


def test_papers_cite_mostly_their_own_topic(large: Contents) -> None:
    topic = {paper: slug for paper, slug, data in large.edges["About"] if data["weight"] >= 0.5}
    same = sum(topic[citing] == topic[cited] for citing, cited, _ in large.edges["Cites"])
    assert same > len(large.edges["Cites"]) / 2


def test_the_nearest_abstracts_are_about_the_same_topic(small: Contents) -> None:
    topic = {paper: slug for paper, slug, data in small.edges["About"] if data["weight"] == 1.0}
    vectors = {
        doi: row["abstract_vec"] for doi, row in small.nodes["Paper"].items() if doi in topic and "abstract_vec" in row
    }
    # Topics with a single paper have nothing to be near to.
    shared = {slug for slug, count in Counter(topic[doi] for doi in vectors).items() if count > 1}
    asked = [doi for doi in vectors if topic[doi] in shared]
    hits = sum(topic[nearest(doi, vectors)] == topic[doi] for doi in asked)
    assert len(asked) > 60
    assert hits > 0.9 * len(asked)


def nearest(doi: str, vectors: dict[str, list[float]]) -> str:
    """The paper with the largest cosine to this one."""
    mine = vectors[doi]
    others = (other for other in vectors if other != doi)
    return max(others, key=lambda o: sum(x * y for x, y in zip(mine, vectors[o], strict=True)))


def test_abstracts_use_the_words_of_their_keywords(small: Contents) -> None:
    for paper in small.nodes["Paper"].values():
        text = paper["abstract"].lower()
        assert sum(word.lower() in text for word in paper["keywords"]) >= 2


def test_dates_of_papers_reviews_and_editions_are_consistent(large: Contents) -> None:
    papers = large.nodes["Paper"]
    for _author, doi, data in large.edges["Reviewed"]:
        assert data["reviewed_on"][:4] >= str(papers[doi]["year"])
    for _author, _place, data in large.edges["AffiliatedWith"]:
        assert data["since"] < data.get("until", "9999")
    for doi, place, _data in large.edges["PublishedIn"]:
        assert papers[doi]["year"] == large.nodes["Edition"][place]["year"]
        assert "published" in papers[doi]


def test_an_author_list_starts_at_one_and_has_no_gaps(large: Contents) -> None:
    lists: dict[str, list[int]] = {}
    for _author, doi, data in large.edges["Wrote"]:
        lists.setdefault(doi, []).append(data["position"])
        assert data["corresponding"] == (data["position"] == 1)
    assert lists.keys() == large.nodes["Paper"].keys()
    assert all(positions == [*range(1, len(positions) + 1)] for positions in lists.values())


def test_nobody_reviews_their_own_paper(large: Contents) -> None:
    wrote = {(author, doi) for author, doi, _data in large.edges["Wrote"]}
    assert not any((author, doi) in wrote for author, doi, _ in large.edges["Reviewed"])


def test_memory_does_not_grow_with_the_library(library: Path) -> None:
    peaks = [peak_memory(library, papers) for papers in (100, 1000)]
    assert peaks[1] < peaks[0] + 100_000


def peak_memory(library: Path, papers: int) -> int:
    """The largest number of bytes in use while all rows of a library pass by.

    Its caches are made small first: they are bounded, but larger than a quick test can fill.
    """
    code = f"""
import sys, tracemalloc
from functools import lru_cache
sys.path.insert(0, {str(library)!r})
import generate
from generator import edges, nodes, outline
for module in (edges, nodes):
    for name in ("doi", "orcid"):
        setattr(module, name, lru_cache(64)(getattr(outline, name).__wrapped__))
library = outline.Library(1, {papers}, {papers}, 20, {papers} * 5)
tracemalloc.start()
for name, rows in generate.FILES:
    for row in rows(library):
        pass
print(tracemalloc.get_traced_memory()[1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--out"),
        (("--out", "-", "--papers", "0"), "--papers must be at least 1"),
        (("--out", "-", "--authors", "0"), "--authors must be at least 1"),
        (("--out", "-", "--papers", "10", "--citations", "23"), "between 0 and 22"),
        (("--out", "-", "--citations", "-1"), "between 0 and"),
    ],
)
def test_impossible_sizes_are_rejected(library: Path, arguments: tuple[str, ...], complaint: str) -> None:
    done = generate(library, *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr.decode()
    assert done.stdout == b""


def test_the_help_explains_itself(library: Path) -> None:
    done = generate(library, "--help")
    assert done.returncode == 0
    assert b"--citations" in done.stdout
    assert b"python generate.py --out data" in done.stdout


def test_a_reader_may_stop_early(library: Path) -> None:
    command = [sys.executable, str(library / "generate.py"), "--papers", "5000", "--out", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"type":"Topic"')
        process.stdout.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""


def test_interrupted_run_leaves_no_partial_file(library: Path, tmp_path: Path) -> None:
    assert generate(library, "--out", tmp_path / "new" / "dir").returncode == 0
    names = [file.name for file in (tmp_path / "new" / "dir").iterdir()]
    assert all(name.endswith(".ndjson") for name in names)
    assert len(names) == 14
