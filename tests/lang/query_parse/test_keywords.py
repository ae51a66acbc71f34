"""No word is reserved: every keyword may be used as a name."""

import pytest

from omnigraph.lang.query import model as m
from omnigraph.lang.query.parse import parse_queries
from omnigraph.lang.query.print_syntax import Speller
from tests.lang.query_strategies import KEYWORDS, PAIRING

TRUTHS = ("true", "false")


def parsed(text: str) -> m.Query:
    (query,) = parse_queries(text).queries
    # A second reading of the canonical spelling guards the parser and the speller together.
    assert parse_queries(Speller().query(query)).queries == (query,)
    return query


def clauses(text: str) -> tuple[m.Clause, ...]:
    body = parsed(f"query q() {{ match {{ {text} }} return {{ 1 }} }}").body
    assert isinstance(body, m.ReadBody)
    return body.clauses


@pytest.mark.parametrize("word", KEYWORDS)
def test_keyword_as_query_parameter_and_annotation_name(word: str) -> None:
    text = f"query {word}(${word}: String) {{ delete P where a = ${word} }}"
    query = parsed(text)
    assert (query.name.text, query.parameters[0].name) == (word, word)


@pytest.mark.parametrize("word", KEYWORDS)
def test_keyword_as_variable_and_property(word: str) -> None:
    binding, test = clauses(f"${word}: P {{ {word}: ${word}, {word}: 1 }} ${word}.{word} = 1")
    assert isinstance(binding, m.Binding)
    assert [one.name.text for one in binding.predicates] == [word, word]
    assert test == m.Filter(m.Comparison(m.Field(word, word), "=", m.Literal("int", "1")))


@pytest.mark.parametrize("word", [w for w in KEYWORDS if w != "not"])
def test_keyword_as_edge(word: str) -> None:
    a, b = m.Variable("a"), m.Variable("b")
    name = m.Name(word)
    plain = m.WordPair(a, name, b) if word in PAIRING else m.Traversal(a, (name,), b)
    assert clauses(f"$a {word} $b") == (plain,)
    # The words of the clause before must not change how an edge is read.
    assert clauses(f"$a.x = $b $a {word} $b $a: P $a {word} $b")[1::2] == (plain, plain)
    hops = m.Hops(1, 2)
    assert clauses(f"$a {word}{{1,2}} $b") == (m.Traversal(a, (name,), b, False, hops),)
    assert clauses(f"$a <{word}> $b") == (m.Traversal(a, (name,), b, True),)
    assert clauses(f"$a $w:{word} $b") == (m.Traversal(a, (name,), b, edge_variable=m.Variable("w")),)
    assert clauses(f"$a {word}|{word} $b") == (m.Traversal(a, (name, name), b),)


@pytest.mark.parametrize("word", KEYWORDS)
def test_keyword_as_property_after_a_value_without_a_comma(word: str) -> None:
    values = ["1", "-1", "1.5", "true", "null", '"x"', "$x", "now()", "[1]", 'date("x")']
    given = " ".join(f"{word}: {value}" for value in values)
    body = parsed(f"query q() {{ insert P {{ {given} {word}: 1 }} }}").body
    assert isinstance(body, m.WriteBody)
    (insert,) = body.statements
    assert isinstance(insert, m.Insert)
    assert [one.name.text for one in insert.assignments] == [word] * 11


@pytest.mark.parametrize("word", KEYWORDS)
def test_keyword_as_property_in_a_mutation_where(word: str) -> None:
    text = f"delete P where {word} = 1 and not {word} = 2 or ({word} > 3)"
    body = parsed(f"query q() {{ {text} update P set {{ {word}: 1 }} where {word} != 1 }}").body
    assert isinstance(body, m.WriteBody)
    delete, update = body.statements
    named = m.Alias(word)
    assert isinstance(delete, m.Delete)
    assert isinstance(update, m.Update)
    assert update.where == m.Comparison(named, "!=", m.Literal("int", "1"))
    assert isinstance(delete.where, m.Or)
    assert delete.where.items[1] == m.Comparison(named, ">", m.Literal("int", "3"))


@pytest.mark.parametrize("word", [w for w in KEYWORDS if w not in TRUTHS])
def test_keyword_as_alias_and_bare_column(word: str) -> None:
    text = f"return {{ {word}, $p.x as {word}, {word} as {word} }} order {{ {word} desc, {word} }}"
    body = parsed(f"query q() {{ match {{ $p: P }} {text} }}").body
    assert isinstance(body, m.ReadBody)
    alias, name = m.Alias(word), m.Name(word)
    columns = (m.Projection(alias), m.Projection(m.Field("p", "x"), name), m.Projection(alias, name))
    assert body.projections == columns
    assert body.orderings == (m.Ordering(alias, "desc"), m.Ordering(alias))


@pytest.mark.parametrize("word", [w for w in KEYWORDS if w not in (*TRUTHS, "as")])
def test_keyword_as_bare_column_without_a_comma(word: str) -> None:
    others = ["$p.x", "$p", "1", '"x"', "true", "now()", "count($p)", "n", "[1]", "1 as n"]
    columns = " ".join(f"{other} {word}" for other in others)
    body = parsed(f"query q() {{ match {{ $p: P }} return {{ {columns} }} }}").body
    assert isinstance(body, m.ReadBody)
    assert body.projections[1::2] == (m.Projection(m.Alias(word)),) * 10


@pytest.mark.parametrize("word", [w for w in KEYWORDS if w not in TRUTHS])
def test_keyword_as_aggregate_argument(word: str) -> None:
    body = parsed(f"query q() {{ match {{ $p: P }} return {{ count({word}), sum($p.{word}) }} }}").body
    assert isinstance(body, m.ReadBody)
    assert body.projections[0] == m.Projection(m.Aggregate("count", m.Alias(word)))


@pytest.mark.parametrize(
    "text",
    [
        "querya() { delete P where a = 1 }",
        "query q() { insertP { a: 1 } }",
        "query q() { deleteP where a = 1 }",
        "query q() { delete P wherea = 1 }",
        "query q() { updateP set { a: 1 } where a = 1 }",
        "query q() { update P set{ a: 1 } wherea = 1 }",
        "query q() { match { $p: P } return { 1 } limit10 }",
        "query q() { match { $p: P } return { 1 } limit 10offset 1 }",
        "query q() { match { $p.a isnull } return { 1 } }",
        "query q() { match { $p.a is notnull } return { 1 } }",
        "query q() { match { $p.a = 1 and$p.b = 1x } return { 1 } }",
        "query q() { matches { $p: P } return { 1 } }",
        "query q() { match { $p: P } returned { 1 } }",
        "query q($a: Stringy) { delete P where a = 1 }",
        "query q($a: Vectors(3)) { delete P where a = 1 }",
    ],
)
def test_keyword_matches_whole_words_only(text: str) -> None:
    from omnigraph.errors import ParseError

    with pytest.raises(ParseError):
        parse_queries(text)
