"""`graph.search` finds nodes by text, by a vector, or by both, with scores."""

import asyncio
from typing import Any

import pytest

from omnigraph import AsyncGraph, Graph
from omnigraph.errors import InputError
from tests.rig.graph_hosts import GraphHost

SCHEMA = """
node Doc {
    slug: String @key  title: String?  body: String?  kind: enum(a, b)?  v: Vector(2)?  file: Blob?  score: F64?
    @index(body, kind=fulltext)
}
node Note { slug: String @key  text: String  rank: I32? }
node Tale { slug: String @key  title: String  text: String }
node Pair { one: Vector(2)  two: Vector(2) }
edge Cites: Doc -> Doc
"""
DOCS: list[dict[str, Any]] = [
    {"slug": "a", "title": "ship", "body": "the sea is deep", "v": [1.0, 0.0], "score": 7.0},
    {"slug": "b", "body": "a ship at sea, at sea", "v": [0.0, 1.0]},
    {"slug": "c", "body": "a ship", "file": b"x"},
]


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    graph = graphs.init(SCHEMA)
    graph.insert("Doc", *DOCS)
    graph.insert("Note", {"slug": "n", "text": "seas", "rank": 1}, {"slug": "m", "text": "land"})
    return graph


def test_the_key_is_searched_only_if_it_is_selected(graph: Graph) -> None:
    assert graph.search("Note", text="seas").scalars("slug") == ["n"]
    assert graph.search("Note", text="m", properties="slug").scalars("slug") == ["m"]


def test_text_is_searched_in_the_indexed_property(graph: Graph) -> None:
    result = graph.search("Doc", text="Seas")
    assert result.columns == ("id", "body", "kind", "score", "slug", "title", "search_score")
    assert result.scalars("slug") == ["b", "a"]
    scores = result.scalars("search_score")
    assert scores[0] > scores[1] > 0
    assert result.to_dicts()[1]["score"] == 7.0
    assert graph.search("Doc", text="sea", k=1).scalars("slug") == ["b"]
    assert graph.search("Doc", text="ship", properties="title").scalars("slug") == ["a"]
    assert graph.search("Doc", text="nowhere").num_rows == 0


def test_vectors_are_ranked_by_their_distance(graph: Graph) -> None:
    result = graph.search("Doc", vector=[0.0, 1.0])
    assert result.scalars("slug") == ["b", "a"]
    assert result.scalars("search_score")[0] == pytest.approx(0.0)
    assert graph.search("Doc", vector=(1, 0), k=1).scalars("slug") == ["a"]


def test_both_rankings_are_combined(graph: Graph) -> None:
    result = graph.search("Doc", text="deep", vector=[0.9, 0.1], properties=["v", "body"])
    assert result.scalars("slug")[0] == "a"
    assert result.scalars("search_score") == sorted(result.scalars("search_score"), reverse=True)


def test_earlier_revisions_and_other_branches_are_searched(graph: Graph) -> None:
    graph.branches.create("dev").insert("Note", {"slug": "d", "text": "sea and sea"})
    options: dict[str, Any] = {"text": "sea", "properties": "text"}
    assert graph.search("Note", **options).scalars("slug") == ["n"]
    assert graph.search("Note", branch="dev", **options).scalars("slug") == ["d", "n"]
    assert graph.search("Note", at="HEAD^", **options).num_rows == 0
    assert graph.at("HEAD").search("Note", **options).scalars("slug") == ["n"]


def test_searches_are_asynchronous(graph: Graph) -> None:
    result = asyncio.run(AsyncGraph(graph).search("Doc", text="sea"))
    assert result.scalars("slug") == ["b", "a"]


@pytest.mark.parametrize(
    ("type_name", "options", "message"),
    [
        ("Doc", {}, "a search requires text, a vector or both"),
        ("Dok", {"text": "x"}, "unknown node type 'Dok'"),
        ("Cites", {"text": "x"}, "unknown node type 'Cites'"),
        ("Doc", {"text": 5}, "the text of a search must be a string"),
        ("Doc", {"text": "x", "k": 0}, "k must be a positive integer"),
        ("Doc", {"text": "x", "properties": "bodi"}, "Doc has no property"),
        ("Doc", {"text": "x", "properties": "v"}, "searching Doc.v requires `vector`"),
        ("Doc", {"text": "x", "properties": "kind"}, "searching Doc.kind requires a String or Vector property"),
        ("Tale", {"text": "x"}, "Tale has several text properties: text, title"),
        ("Note", {"vector": [1, 2]}, "Note has no vector property"),
        ("Pair", {"vector": [1, 2]}, "Pair has several vector properties: one, two"),
    ],
)
def test_impossible_searches_are_refused(graph: Graph, type_name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        graph.search(type_name, **options)
    assert message in str(caught.value)
