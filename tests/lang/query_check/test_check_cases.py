"""Every case under tests/cases/query/check: accepted and rejected queries with positions."""

import pytest

from omnigraph.errors import LanguageError, ParseError, TypeCheckError
from omnigraph.errors.diagnostics import Diagnostic
from omnigraph.lang.query import compile_queries, diagnose_queries
from omnigraph.lang.query.codes import LINT_CODES, TYPE_CODES
from tests.lang.query_check.blocks import Block, blocks

CASES = blocks("check")
CLASSES: dict[str, type[LanguageError]] = {"parse": ParseError, "type": TypeCheckError}
KNOWN = {"case", "schema", "params", "expect", "hint", "warn", "column", "reads", "writes"}
UNREACHED = {"L201", "Q000"}  # findings of lint alone


@pytest.mark.parametrize("case", CASES, ids=str)
def test_check_case(case: Block) -> None:
    assert {name for name, _ in case.headers} <= KNOWN
    _, found = diagnose_queries(case.text, case.catalog, "case.gq")
    errors = [one for one in found if one.severity == "error"]
    if case.all("expect") == ["ok"]:
        assert errors == []
        check_facts(case)
    else:
        check_errors(case, errors)
        with pytest.raises(CLASSES[errors[0].kind]) as caught:
            compile_queries(case.text, case.catalog, "case.gq")
        assert list(caught.value.diagnostics) == errors
    warnings = [one for one in found if one.severity == "warning"]
    check_findings(case, warnings, case.all("warn"))


def check_errors(case: Block, found: list[Diagnostic]) -> None:
    check_findings(case, found, case.all("expect"))
    at = -1
    for name, value in case.headers:
        at += name == "expect"
        if name == "hint":
            assert value in (found[at].hint or "")


def check_findings(case: Block, found: list[Diagnostic], expected: list[str]) -> None:
    shown = [f"{d.code or d.kind} `{case.text[d.start : d.end]}` | {d.message}" for d in found]
    assert len(found) == len(expected), shown
    for one, line, said in zip(found, expected, shown, strict=True):
        head, *phrases = line.split(" | ")
        code, _, place = head.partition(" ")
        assert code == (one.code or one.kind), said
        assert not place or place == f"`{case.text[one.start : one.end]}`", said
        assert [phrase for phrase in phrases if phrase not in one.message] == [], said


def check_facts(case: Block) -> None:
    compiled = compile_queries(case.text, case.catalog, "case.gq")
    for name in ("reads", "writes"):
        for value in case.all(name):
            found = getattr(compiled[0].operation, name)
            assert " ".join(f"{one.kind}:{one.type_name}" for one in found) == value
    columns = case.all("column")
    found_columns = []
    for one in compiled[0].operation.result:
        kind = f"{one.kind} of {one.item_kind}" if one.item_kind else one.kind
        kind = f"{kind}({one.vector_dim})" if one.vector_dim else kind
        found_columns.append(f"{one.name} {kind}{'?' if one.nullable else ''}")
    assert not columns or found_columns == columns


@pytest.mark.parametrize("code", sorted(TYPE_CODES))
def test_every_type_code_has_at_least_two_cases(code: str) -> None:
    lines = [line for case in CASES for line in case.all("expect")]
    assert sum(line.split(" ")[0] == code for line in lines) >= 2


@pytest.mark.parametrize("code", sorted(LINT_CODES.keys() - UNREACHED))
def test_every_lint_code_has_a_case(code: str) -> None:
    lines = [line for case in CASES for line in case.all("warn")]
    assert any(line.split(" ")[0] == code for line in lines)
