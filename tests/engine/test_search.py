"""Text conditions and rankings without an index."""

import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.search.stem import stem
from omnigraph.engine.search.text import analyze_texts, token_of_word, tokenize
from omnigraph.errors import EmbeddingError, ParameterError
from tests.engine.stored_graph import Small

STEMS = Path(__file__).parents[1] / "cases" / "text" / "stems.txt"
SCHEMA = """
node Doc {
    slug: String @key  body: String @index  kind: enum(memo, spec)
    v: Vector(2)?  w: Vector(2)?  @index(w, metric=l2)
}
edge Cites: Doc -> Doc
"""
DOCS: list[dict[str, Any]] = [
    {"slug": "a", "body": "graph databases store graphs", "kind": "memo", "v": [0.0, 0.0]},
    {"slug": "b", "body": "a database of graphs", "kind": "spec", "v": [3.0, 4.0]},
    {"slug": "c", "body": "searching text quickly", "kind": "memo", "v": None},
    {"slug": "d", "body": "the crème brûlée recipe", "kind": "memo", "v": None},
]


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Small:
    root: Path = tmp_path_factory.mktemp("search") / "graph"
    rows = [{"id": one["slug"], "w": one["v"], **one} for one in DOCS]
    cites = [{"id": "1", "src": "a", "dst": "b"}, {"id": "2", "src": "c", "dst": "b"}]
    return Small(root, SCHEMA, {"node:Doc": rows, "edge:Cites": cites})


def slugs(graph: Small, text: str, **params: Any) -> list[str]:
    return [row[0] for row in graph.rows(text, **params)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('search($d.body, "graph")', ["a", "b"]),
        ('search($d.body, "the of")', []),
        ('search($d.body, "zebra quick")', ["c"]),
        ('search($d.body, "CREME brulees")', ["d"]),
        ('match_text($d.body, "store graph")', ["a"]),
        ('match_text($d.body, "graph store")', []),
        ('fuzzy($d.body, "serching", 1)', ["c"]),
        ('fuzzy($d.body, "serching", 0)', []),
        ('not search($d.body, "graph")', ["c", "d"]),
        ('search($d.body, "graph") and $d.kind = "spec"', ["b"]),
    ],
)
def test_text_conditions(docs: Small, condition: str, expected: list[str]) -> None:
    assert slugs(docs, f"match {{ $d: Doc {condition} }} return {{ $d.slug }}") == expected


def test_a_text_condition_on_a_reached_node(docs: Small) -> None:
    text = 'match { $a: Doc $a cites $d search($d.body, "database") } return { $a.slug }'
    assert slugs(docs, text) == ["a", "c"]


def test_nearest_is_by_cosine_and_leaves_out_nulls(docs: Small) -> None:
    text = "match { $d: Doc } return { $d.slug } order { nearest($d.v, [0.0, 1.0]) } limit 5"
    assert slugs(docs, text) == ["b", "a"]


def test_nearest_follows_the_metric_of_the_index(docs: Small) -> None:
    text = "match { $d: Doc } return { $d.slug } order { nearest($d.w, [0.0, 1.0]) } limit 5"
    assert slugs(docs, text) == ["a", "b"]


def test_filter_is_applied_before_the_limit(docs: Small) -> None:
    text = 'match { $d: Doc $d.kind = "memo" } return { $d.slug } order { nearest($d.v, [0.0, 1.0]) } limit 1'
    assert slugs(docs, text) == ["a"]


def test_bm25_returns_matches_with_scores(docs: Small) -> None:
    text = 'match { $d: Doc } return { $d.slug, bm25($d.body, "graph store") as s } order { s } '
    found = docs.rows(text)
    assert [row[0] for row in found] == ["a", "b"]
    assert found[0][1] > found[1][1] > 0


def test_a_score_without_order_is_null_where_nothing_matches(docs: Small) -> None:
    text = 'match { $d: Doc } return { $d.slug, bm25($d.body, "store") as s }'
    assert [row[1] is None for row in docs.rows(text)] == [False, True, True, True]


def test_ranking_precedes_expansion_and_keeps_its_order(docs: Small) -> None:
    text = 'match { $a: Doc $a cites $d } return { $a.slug } order { bm25($d.body, "graph") } '
    assert slugs(docs, text) == ["a", "c"]


def test_fusion_combines_rankings(docs: Small) -> None:
    text = (
        "match { $d: Doc } return { $d.slug, "
        'rrf(nearest($d.w, [0.0, 1.0]), bm25($d.body, "searching database")) as s } '
        "order { s } limit 4"
    )
    found = docs.rows(text)
    # nearest: a, b; bm25: c (rare word), then b and a by the length of their texts.
    assert [row[0] for row in found] == ["a", "b", "c"]
    assert found[0][1] == pytest.approx(1 / 61 + 1 / 63)
    assert found[2][1] == pytest.approx(1 / 61)


def test_nearest_by_text_requires_an_embedding_provider(docs: Small) -> None:
    text = 'match { $d: Doc } return { $d.slug } order { nearest($d.v, "hello") } limit 1'
    with pytest.raises(EmbeddingError):
        docs.run(text)


def test_text_is_split_into_stemmed_tokens() -> None:
    known = {"generously": "generous", "knotty": "knotti", "crying": "cri", "hoping": "hope"}
    assert {word: stem(word) for word in known} == known
    assert tokenize("Straße № 7, naïve—co-op's") == ["strass", "7", "naiv", "co", "op", "s"]


def test_stems_of_a_word_list() -> None:
    """Another version of the library may stem otherwise, and so change what a search finds."""
    same, changed = STEMS.read_text().split("\n\n")
    stems = {word: line.split()[0] for line in same.splitlines()[1:] for word in line.split()[1:]}
    changed_stems = [line.split() for line in changed.splitlines()[1:]]
    assert len(stems) > 4000
    assert {word: stem(word) for word in stems} == stems
    assert [(word, stem(word)) for word, _, _ in changed_stems] == [(word, now) for word, _, now in changed_stems]


def test_threads_stem_words_independently() -> None:
    stem.cache_clear()
    roots = ["".join(letters) for letters in permutations("abcdelo", 4)]
    words = [root + ending for root in roots for ending in ("ingly", "ational")]
    with ThreadPoolExecutor(8) as executor:
        concurrent = list(executor.map(stem, words, chunksize=10))
    assert concurrent == [stem.__wrapped__(word) for word in words]


def test_fusion_constant_must_be_positive(docs: Small) -> None:
    text = (
        "query q($k: I64) { match { $d: Doc } return { $d.slug } order { "
        'rrf(nearest($d.w, [0.0, 1.0]), bm25($d.body, "graph"), $k) } limit 4 }'
    )
    assert slugs(docs, text, k=1) == ["a", "b"]
    with pytest.raises(ParameterError):
        docs.run(text, k=0)


def test_ascii_tokenizer_equals_the_general_one() -> None:
    chance = Random(4)
    letters = "abZ09 .,-_$\x00\x7f\n"
    some = ["".join(chance.choices(letters, k=chance.randrange(9))) for _ in range(400)]
    mixed = [one + chance.choice(["", "", "É", "ß x"]) if one else None for one in some]
    column = pa.array(mixed, pa.string())
    tokens = analyze_texts(column)
    found: list[list[str]] = [[] for _ in mixed]
    for owner, code in zip(tokens.text_indexes, tokens.codes, strict=True):
        found[owner].append(tokens.vocabulary[code])
    assert found == [[] if one is None else _one_by_one(one) for one in mixed]
    part = analyze_texts(column.slice(17, 50))
    assert [part.vocabulary[code] for code in part.codes] == [one for row in found[17:67] for one in row]
    assert analyze_texts(column.slice(0, 0)).vocabulary == ()
    assert analyze_texts(pa.array(["u v", "w", "x y"]).slice(1)).vocabulary == ("w", "x", "y")


def _one_by_one(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKD", text.lower())
    bare = "".join(one for one in folded if not unicodedata.combining(one))
    pieces = re.split(r"[^a-z0-9ß]+", bare)
    return [one for one in map(token_of_word, pieces) if one]
