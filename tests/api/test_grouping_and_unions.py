"""Groups, unions, and hints for other query languages, through the handle."""

import pytest

from omnigraph import Graph
from omnigraph.errors import ParseError, TypeCheckError

UNION = (
    "match { $p: Person } return { $p.name as n, $p.age as k } "
    "union match { $f: Firm } return { $f.name as n, $f.size as k }"
)


def test_union_as_table_stream_and_prepared_query(people: Graph) -> None:
    expected = [("ann", 30), ("bob", 25), ("cyd", None), ("dee", 30), ("acme", None), ("zeta", None)]
    result = people.query(UNION)
    assert result.to_records() == expected
    assert [str(field.type) for field in result.to_arrow().schema] == ["string", "int64"]
    streamed = [row for batch in people.stream(UNION) for row in batch.to_pylist()]
    assert [tuple(row.values()) for row in streamed] == expected
    prepared = people.prepare(f"query q($m: I32) {{ {UNION} order {{ k desc, n }} limit $m }}")
    assert prepared(m=1).to_records() == [("ann", 30)]


def test_explain_shows_parts_and_having(people: Graph) -> None:
    plan = str(people.explain(f"{UNION} order {{ k }} limit 2", analyze=True))
    assert [line.split("  ")[0] for line in plan.splitlines() if not line.startswith(" ")] == [
        "operator", "part 1", "part 2", "union", "order by k", "limit 2",
    ]  # fmt: skip
    grouped = str(people.explain("match { $p: Person } return { $p.age } having { count(*) > 1 }"))
    assert "having count(*) > 1" in grouped


def test_parameters_of_a_bare_body_are_shared_by_all_parts(people: Graph) -> None:
    text = (
        "match { $p: Person  $p.age = $n } return { $p.name as x } "
        "union all match { $p: Person  $p.age > $n } return { $p.name as x }"
    )
    assert people.query(text, n=25).to_records() == [("bob",), ("ann",), ("dee",)]
    counted = "match { $p: Person } return { $p.team, count(*) as c } having { c >= $n } order { c }"
    assert people.query(counted, n=2).to_records() == [("core", 2)]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("MATCH (p:Person) RETURN p", "this is Cypher; write `query name() { match { $p: Person } return { $p } }`"),
        ("match (p:Person) return p.name", "this is Cypher; write `match { $p: Person } return { $p.name }`"),
        ("SELECT * FROM Person", "this is SQL; write `query name() { match { $p: Person } return { $p } }`"),
        ("match { $p: Person  $p.name =~ \"a\" } return { $p }", "`=~` is not an operator"),
    ],
)  # fmt: skip
def test_query_in_another_language_shows_our_form(people: Graph, text: str, hint: str) -> None:
    with pytest.raises(ParseError) as refused:
        people.query(text)
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    "text", ["insert into Person (name) values ('x')", 'update Person set age = 3 where name = "x"']
)
def test_mutation_in_another_language_shows_our_form(graph: Graph, text: str) -> None:
    with pytest.raises(ParseError, match=r"this is SQL; write `(insert|update) Person"):
        graph.mutate(text)


def test_shown_form_runs(people: Graph) -> None:
    """The hint is a query that the graph accepts."""
    with pytest.raises(ParseError) as refused:
        people.query("MATCH (a:Person)-[:WORKS_AT]->(f:Firm {name: 'acme'}) RETURN a.name AS n ORDER BY n DESC LIMIT 1")
    form = (refused.value.diagnostics[0].hint or "").partition("`")[2].rpartition("`")[0]
    assert people.query(form).to_records() == [("bob",)]


def test_union_reports_the_position_of_a_column_that_differs(people: Graph) -> None:
    with pytest.raises(TypeCheckError) as refused:
        people.query("match { $p: Person } return { $p.name as n }\nunion match { $f: Firm } return { $f.size as n }")
    assert (refused.value.diagnostics[0].line, refused.value.diagnostics[0].code) == (2, "T30")
