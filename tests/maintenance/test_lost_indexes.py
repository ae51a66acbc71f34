"""Lost or truncated index files of every kind are named and rebuilt."""

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import IndexUnreadable
from tests.maintenance.conftest import again
from tests.maintenance.test_check_damage import FULL, look, scramble

SCHEMA = """
node Doc {
  name: String @key
  code: String? @index(code, kind=ngram)
  body: String? @index(body, kind=fulltext)
  place: Vector(2)? @index
  age: I32? @index
}
"""
QUESTIONS = (
    'match { $d: Doc  $d.code contains "ber 12" } return { count($d) }',
    "match { $d: Doc  $d.age = 7 } return { count($d) }",
    "match { $d: Doc } return { $d.name } order { nearest($d.place, [3.0, 1.0]) } limit 2",
)
FILES = (
    ("index.idx", "IVF_FLAT"),
    ("auxiliary.idx", "IVF_FLAT"),
    ("ngram_postings.lance", "NGram"),
    ("part_0_invert.lance", "Inverted"),
    ("words.lance", "Inverted"),
    ("page_lookup.lance", "BTree"),
)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("indexed") / "g"
    graph = omnigraph.init(place, SCHEMA, durability="os")
    rows = [
        {
            "name": f"n{n}",
            "code": f"text number {n}",
            "body": f"hello number {n}",
            "place": [float(n), 1.0],
            "age": n % 50,
        }
        for n in range(300)
    ]
    graph.load({"Doc": rows}, mode="append")
    graph.maintenance.ensure_indices()
    return place


@pytest.fixture
def docs(indexed: Path, tmp_path: Path) -> Graph:
    shutil.copytree(indexed, tmp_path / "g")
    return omnigraph.open(tmp_path / "g", durability="os")


def lose(path: Path) -> None:
    path.unlink()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def answers(graph: Graph) -> list[list[list[object]]]:
    fresh = again(graph)
    return [fresh.query(one).to_lists() for one in QUESTIONS]


def index_file(graph: Graph, name: str) -> Path:
    return next(Path(graph.uri).glob(f"*/*/_indices/*/{name}"))


def test_intact_indexes_have_no_findings_and_are_not_rebuilt(docs: Graph) -> None:
    assert look(docs).findings == ()
    assert not again(docs).maintenance.ensure_indices()


@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (lose, "auxiliary.idx"),
        (cut_short, "ngram_postings.lance"),
        *(pytest.param(lose, name, marks=FULL) for name, _ in FILES),
        *(
            pytest.param(cut_short, name, marks=FULL)
            for name, _ in FILES
            if name != "words.lance"  # its size stands nowhere
        ),
    ],
)
def test_check_names_a_lost_index_and_ensure_indices_rebuilds_it(
    docs: Graph, spoil: Callable[[Path], object], name: str
) -> None:
    before = answers(docs)
    path = index_file(docs, name)
    spoil(path)
    for quick in (False, True):
        found = look(docs, quick=quick)
        place = str(path.parent.relative_to(docs.uri))
        assert [(one.kind, one.name) for one in found.findings] == [("index", place)]
        assert "ensure-indices" in (found.findings[0].hint or "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndexUnreadable)
        assert answers(docs) == before
    assert again(docs).maintenance.ensure_indices().indexes["node:Doc"]
    assert look(docs).findings == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answers(docs) == before
    assert not again(docs).maintenance.ensure_indices()


@pytest.mark.parametrize("name", ["auxiliary.idx", *(pytest.param(one, marks=FULL) for one, _ in FILES)])
def test_check_detects_changed_bytes_of_the_same_length(docs: Graph, name: str) -> None:
    scramble(index_file(docs, name))
    (found,) = look(docs).findings
    assert found.kind == "index"
    assert "ensure-indices" in (found.hint or "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndexUnreadable)
        again(docs).maintenance.cleanup(keep=1, grace=0, confirm=True, erase=True)  # rebuilds all of them, too
    assert look(docs).findings == ()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("auxiliary.idx", marks=FULL),
        "ngram_postings.lance",
        pytest.param("part_0_invert.lance", marks=FULL),
    ],
)
def test_check_queries_indexes_of_every_kind(docs: Graph, tmp_path: Path, name: str) -> None:
    """The files of an index over other rows, in the place of the right ones."""
    other = omnigraph.init(tmp_path / "other", SCHEMA, durability="os")
    row = {"name": "x", "code": "qqq www", "body": "zzz", "place": [-5.0, 70.0]}
    other.load({"Doc": [row]}, mode="append")
    other.maintenance.ensure_indices()
    ours, theirs = index_file(docs, name).parent, index_file(other, name).parent
    for file in theirs.iterdir():
        if file.is_file():
            (ours / file.name).write_bytes(file.read_bytes())
    for file in ours.iterdir():  # as long as they were, by something that nobody reads
        if file.name == name:
            (ours / "padding.bin").write_bytes(b"x" * 100_000)
            break
    found = look(docs).findings
    assert [one.kind for one in found] == ["index"]
    assert any(one in found[0].reason for one in ("missing", "has a damaged file", "does not list"))
