"""Every case under tests/cases/query/lint: the printed report."""

import json

import pytest

from omnigraph.lang.query import lint_queries
from tests.lang.query_check.blocks import Block, blocks

CASES = blocks("lint")
MEMBERS = [
    "status",
    "schema_source",
    "query_path",
    "queries_processed",
    "errors",
    "warnings",
    "infos",
    "results",
    "findings",
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_lint_case(case: Block) -> None:
    report = lint_queries(case.parts[0], case.catalog, "case.gq", "case.pg").to_json()
    assert list(report) == MEMBERS
    assert report["schema_source"] == "case.pg"
    assert report["query_path"] == "case.gq"
    report = json.loads(json.dumps(report))
    wanted = json.loads(case.parts[1])
    findings = wanted.pop("findings")
    assert {name: report[name] for name in wanted} == wanted
    shown = [{name: one.get(name) for name in two} for one, two in zip(report["findings"], findings, strict=True)]
    assert shown == findings


def test_the_diagnostics_of_a_report_are_in_source_order() -> None:
    text = 'query a() { delete Ghost where id = "x" } query b() { '
    text += 'query c($n: I32) { delete Doc where id = "x" }'
    found = lint_queries(text, CASES[0].catalog).diagnostics
    assert [one.code for one in found] == ["T10", "Q000", "L202"]
    assert [one.start for one in found] == sorted(one.start for one in found)
