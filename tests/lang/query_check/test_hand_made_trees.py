"""Trees built by programs: rejected with a finding, never an exception."""

import pytest

from omnigraph.errors import TypeCheckError
from omnigraph.lang.query import compile_query
from omnigraph.lang.query import model as m
from tests.lang.query_check.blocks import schema

PERSON = m.Binding(m.Variable("p"), m.Name("Person"))
NAME = m.Field("p", "name")


def read(*clauses: m.Clause, column: m.Expression = NAME) -> m.Query:
    body = m.ReadBody((PERSON, *clauses), (m.Projection(column, m.Name("c")),))
    return m.Query(m.Name("q"), (), body)


def write(statement: m.Statement) -> m.Query:
    return m.Query(m.Name("q"), (), m.WriteBody((statement,)))


def call(function: m.SearchFunction, *arguments: m.Expression) -> m.Call:
    return m.Call(function, arguments)


WHERE = m.IsNull(m.Alias("age"))
TEXT = m.Literal("string", "x")
LIMITED = m.ReadBody((PERSON,), (m.Projection(NAME),), limit=m.Literal("int", "-1"))
REFUSED: dict[str, tuple[m.Query, str | None]] = {
    "in a list property": (read(m.Filter(m.Membership(NAME, m.Field("p", "tags")))), "T7"),
    "null column": (read(column=m.Literal("null", "null")), None),
    "huge integer": (read(column=m.Literal("int", "9" * 5000)), None),
    "huge float": (read(column=m.Literal("float", "1e999")), None),
    "negative limit": (m.Query(m.Name("q"), (), LIMITED), None),
    "insert without assignments": (write(m.Insert(m.Name("Person"), ())), "T10"),
    "upsert without assignments": (write(m.Upsert(m.Name("Person"), ())), "T10"),
    "patch without assignments": (write(m.Patch(m.Name("Person"), ())), "T10"),
    "update without assignments": (write(m.Update(m.Name("Person"), (), WHERE)), "T10"),
    "search in where": (write(m.Delete(m.Name("Person"), m.TextMatch(call("search", NAME, TEXT)))), "T19"),
    "too few arguments": (read(m.Filter(m.TextMatch(call("search", NAME)))), "T19"),
    "rrf of something else": (read(column=call("rrf", call("bm25", NAME, TEXT), NAME)), "T21"),
    "a bare word in a filter": (read(m.Filter(m.IsNull(m.Alias("p")))), None),
    "a condition that is a ranking": (read(m.Filter(m.TextMatch(call("bm25", NAME, TEXT)))), "T20"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_tree_is_rejected_with_a_finding(name: str) -> None:
    query, code = REFUSED[name]
    with pytest.raises(TypeCheckError) as caught:
        compile_query(query, schema("S"))
    assert [one.code for one in caught.value.diagnostics] == [code]


def test_a_tree_without_text_compiles() -> None:
    compiled = compile_query(read(), schema("S"))
    assert [one.name for one in compiled.operation.result] == ["c"]
