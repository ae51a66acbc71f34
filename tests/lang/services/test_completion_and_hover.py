"""Completion and hover texts: tables with a cursor mark, and properties over every example in the repository."""

from itertools import chain
from pathlib import Path
from typing import get_args

import pytest

from omnigraph.lang.query.plan_scalars import ScalarFunction
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.services import LanguageName, complete, hover
from omnigraph.lang.services import query_words as words
from omnigraph.lang.services.expected import keyword_terminals, read_prefix

SCHEMA = """
interface Named { name: String }
node Person implements Named { name: String @key  age: I32? @description("in years") }
node Doc { slug: String @key  title: String }
edge Knows: Person -> Person { since: I32? }
edge Wrote: Person -> Doc
"""
CATALOG = compile_schema(SCHEMA)
ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(chain((ROOT / "examples").rglob("*.gq"), (ROOT / "examples").rglob("*.pg")))

# Text with the cursor at `|`, items that must be offered first, and items that must not be offered.
QUERY_CASES = [
    ("|", "query match insert", "return"),
    ("query q($n: St|) {", "String", "Person"),
    ("query q() { match { $p: | } }", "Doc Person Named", "Knows"),
    ("query q() { match { $p: Person $p | } }", "knows wrote", "return"),
    ("query q() { match { $d: Doc $d | } }", "wrote", "knows"),
    ("query q() { match { $p: Person $p $e:| } }", "knows wrote", "since"),
    ("query q() { match { $p: Person { |", "age id name", "true and"),
    ('query q() { match { $p: Person { name: "a", | } } }', "age id", "name"),
    ("query q() { match { $p: Person $p wrote $d } return { $d.|", "id slug title", "age"),
    ("query q() { match { $d: Doc $p wrote $d } return { $p.|", "age id name", "slug"),
    ("query q() { match { $p $e:knows $x } return { $e.s| } }", "since", "name"),
    ("query q() { match { $p: Person $p. } return { $p.|", "age id name", "slug"),
    ("query q() { match { $p: Person\n $p.. x\n $p | } }", "knows wrote", "return"),
    ("query q($n: I32) { match { $p: Person } return { |", "$n $p count", "and insert asc"),
    ("query q() { match { $p: Person } return { $p.name | } }", "$p", "and desc"),
    ("query q() { match { $p: Person } return { $p.name a| } }", "avg abs as", "and asc"),
    ("query q() { match { $p: Person } return { $p.name as n } order { |", "n $p", "as"),
    ("query q() { match { $p: Person } return { $p.name as n } order { n | } }", "asc desc", "as and"),
    ("query q() { match { $p: Person } return { $p.name } | }", "having union order limit", "match"),
    ("query q($k: I64) { match { $p: Person } return { $p.name } limit |", "$k", "$p"),
    ("match { $p: Person } return { lo|", "lower", "query"),
    ("query q() { insert | }", "Doc Person Knows Wrote", "Named"),
    ("query q() { insert Person { |", "age id name", "null true"),
    ("query q() { insert Knows { |", "from to id since", "name"),
    ("query q() { update Person set { age: 1 } where |", "age id name", "slug count"),
    ("query q() { match { $p: Person } update $p set { |", "age id name", "slug"),
    ('query q() { match { $p: Person $p.name = "a|', "", "match"),
    ("query q() { // ma|", "", "match"),
]
SCHEMA_CASES = [
    ("|", "node edge interface", "implements"),
    ("node A { } |", "node edge interface", "@key"),
    ("interface N { } node A impl|", "implements", "node"),
    ("interface N { } node A implements |", "N", "A String"),
    ("node A { name: |", "String", "A node"),
    ("node A { name: String @|", "@key @unique @index", "@card"),
    ("node A { name: String age: I32 @range(|", "name age", "@key"),
    ("node A { name: String age: I32 @unique(name, |", "age", "name"),
    ("node A {} node B {} edge E: |", "A B", "String"),
    ("node A {} edge E: A -> |", "A", "String"),
    ("node A {} edge E: A -> A @|", "@description @instruction", "@key"),
    ("node A { broken broken\n  name: |", "String", "A"),
]


def check_items(language: LanguageName, marked: str, first: str, absent: str) -> None:
    offset = marked.index("|")
    labels = [item.label for item in complete(marked.replace("|", ""), offset, language, CATALOG)]
    assert labels[: len(first.split())] == first.split(), labels
    assert not {*absent.split()} & {*labels}, labels


@pytest.mark.parametrize(("marked", "first", "absent"), QUERY_CASES)
def test_query_completion(marked: str, first: str, absent: str) -> None:
    check_items("query", marked, first, absent)


@pytest.mark.parametrize(("marked", "first", "absent"), SCHEMA_CASES)
def test_schema_completion(marked: str, first: str, absent: str) -> None:
    check_items("schema", marked, first, absent)


@pytest.mark.parametrize(
    ("language", "marked", "contents"),
    [
        ("query", "query q() { match { $|p: Person } }", "`$p`: node of type Person"),
        ("query", "query q($n: I32?) { match { $p: Person $p.age > $|n } }", "`$n`: parameter of type I32?"),
        ("query", "match { $p: Person } return { $p.a|ge }", "`age: I32?`: property of Person\n\nin years"),
        ("query", "query q() { insert Person { na|me: 1 } }", "`name: String @key`: property of Person"),
        ("query", "query q() { match { $p: Person $p wr|ote $d } }", "**edge Wrote: Person -> Doc**"),
        ("query", "return { lo|wer($p.name) }", "`lower(text): String`: the text in lowercase"),
        ("query", "query q() { mat|ch", "`match`: the patterns and conditions that select rows"),
        ("query", "query q() { match { $p: nothing| } }", None),
        ("schema", "node A { name: String @k|ey }", "`@key`: identifies an entity and determines its id"),
        ("schema", "node A { } edge E: A| -> A", "**node A**"),
        ("schema", "node A { name: Str|ing", "`String`: Unicode text"),
    ],
)
def test_hover(language: LanguageName, marked: str, contents: str | None) -> None:
    explanation = hover(marked.replace("|", ""), marked.index("|"), language, CATALOG)
    assert (None if explanation is None else explanation.contents) == contents


def test_every_keyword_and_function_has_a_meaning() -> None:
    keywords = set(chain.from_iterable(keyword_terminals("query").values()))
    assert keywords <= words.KEYWORD_MEANINGS.keys() | words.FUNCTIONS.keys() | words.SCALAR_TYPE_MEANINGS.keys()
    assert words.SCALAR_FUNCTIONS.keys() == {*get_args(ScalarFunction)}


@pytest.mark.parametrize(
    ("word", "essential_phrases"),
    [
        ("insert", ("adds an entity", "`KeyConflict`", "key exists")),
        ("upsert", ("adds an entity", "key exists", "changes the assigned properties", "keeps the others")),
        ("search", ("any token",)),
        ("match_text", ("all", "in sequence")),
        ("fuzzy", ("any token", "number of edits")),
    ],
)
def test_meanings_agree_with_the_reference(word: str, essential_phrases: tuple[str, ...]) -> None:
    reference_text = " ".join((ROOT / "docs/reference/query-language.md").read_text().split())
    meaning = words.FUNCTIONS[word].meaning if word in words.FUNCTIONS else words.KEYWORD_MEANINGS[word]
    for phrase in essential_phrases:
        assert phrase in reference_text
        assert phrase in meaning


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_items_keep_a_parsable_prefix_parsable(path: Path) -> None:
    text = path.read_text()[:1500]
    language: LanguageName = "schema" if path.suffix == ".pg" else "query"
    openings = ("query ",) if language == "query" else ("\nnode ", "\nedge ", "\ninterface ")
    catalog = compile_schema((ROOT / "examples/library/schema.pg").read_text())
    checked = 0
    for offset in range(0, len(text), 13):
        hover(text, offset, language, catalog)
        complete(text, offset, language, catalog)
        start = max(text.rfind(opening, 0, offset) for opening in openings)
        for item in complete(text[:offset], offset, language, catalog)[:3]:
            before = text[max(start, 0) : item.replaced.start]
            expectation = read_prefix(language, before)
            # Outside a declaration, an item begins the next declaration or the body of a query.
            if start < 0 or expectation is None or "$END" in expectation.allowed or '"' in item.insert_text:
                continue
            checked += 1
            assert read_prefix(language, before + item.insert_text) is not None, before + item.insert_text
    assert checked > 0
