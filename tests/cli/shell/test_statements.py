"""Where a statement of the shell ends."""

import pytest

from omnigraph.cli.shell.statements import is_complete, is_mutation, is_query_text, split_statements


@pytest.mark.parametrize(
    "statement",
    [
        "branch list",
        "match { $p: P } return { $p } limit 5",
        "match { $p: P } return { $p.n } union match { $p: Q } return { $p.n }",
        "match { $p: P } delete $p",
        "match { $p: P } update $p set { a: 1 }",
        'insert P { n: "a}" }',
        "update P set { a: 1 } where b = 2",
        "delete P where a = 1",
        "query all() { match { $p: P } return { $p } }",
        "explain match { $p: P } return { $p }",
        "\\d P",
    ],
)
def test_statement_is_complete(statement: str) -> None:
    assert is_complete(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "match { $p: P }",
        "match { $p: P } return { $p.n",
        "match { $p: P } return { $p.n } union",
        "match { $p: P } return { $p.n } order",
        "explain match { $p: P }",
        "insert P",
        'insert P { n: "}',
        "update P set { a: 1 }",
        "delete P where",
        "delete P where a = 1 and",
        "query all() {",
        "query -e 'match {",
    ],
)
def test_statement_needs_more_lines(statement: str) -> None:
    assert not is_complete(statement)


def test_kinds_of_statements_are_told_apart() -> None:
    assert is_query_text("// all\nmatch { $p: P } return { $p }")
    assert is_query_text("query all() { match { $p: P } return { $p } }")
    assert not is_query_text("query all --query q.gq")
    assert is_mutation("query add() { insert P { n: 1 } }")
    assert not is_mutation("match { $p: P } return { $p.update }")


@pytest.mark.parametrize(
    ("lines", "statements"),
    [
        (["log", "", "# note", "branch list"], ["log", "branch list"]),
        (["match { $p: P }", "return { $p }", "order { $p.n }", "log"],
         ["match { $p: P }\nreturn { $p }\norder { $p.n }", "log"]),
        (["load --data x \\", "  --mode append", "log"], ["load --data x\n  --mode append", "log"]),
        (["delete P;", "log; // end"], ["delete P", "log"]),
        (['insert P { n: ";', 'b" };'], ['insert P { n: ";\nb" }']),
        (["delete P", "", "log"], ["delete P", "log"]),  # an empty line ends what can never be complete
        (["match {", "", "$p: P } return { $p }"], ["match {\n\n$p: P } return { $p }"]),
        (["match { $p: P }"], ["match { $p: P }"]),  # the end of the input ends a statement
    ],
)  # fmt: skip
def test_lines_are_split_into_statements(lines: list[str], statements: list[str]) -> None:
    assert [statement.rstrip() for statement in split_statements(iter(lines))] == statements
