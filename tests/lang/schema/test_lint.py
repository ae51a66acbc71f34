"""Lint: every case under tests/cases/schema/lint, severities and the catalog of codes."""

import re
from typing import Any

import pytest

from omnigraph.errors import UsageError
from omnigraph.lang.schema import lint_schema
from omnigraph.lang.schema.codes import CODES
from tests.lang.schema.blocks import Block, blocks
from tests.lang.schema.test_check_cases import check_finding, check_hints, check_span


@pytest.mark.parametrize("case", blocks("lint"), ids=str)
def test_lint_case(case: Block) -> None:
    levels: Any = dict(line.split() for line in case.all("level"))
    found = lint_schema(case.parts[0], "case.pg", severities=levels)
    expected = [line for line in case.all("expect") if line != "ok"]
    shown = [f"{d.code} {d.line}:{d.column} | {d.message}" for d in found]
    assert len(shown) == len(expected), shown
    for one, line in zip(found, expected, strict=True):
        check_finding(one, line, one.code or one.kind)
    check_hints(case, found)
    check_span(found, case.parts[0])


def test_severities_come_from_the_catalog() -> None:
    warning, info = lint_schema("node A_B {} edge E: A_B -> A_B")
    assert (warning.severity, info.severity) == ("warning", "info")
    assert (warning.kind, info.kind) == ("lint", "lint")


def test_a_severity_can_be_raised() -> None:
    (found,) = lint_schema("node A_B {}", severities={"OG-NM-101": "error"})
    assert found.severity == "error"


def test_a_severity_for_a_code_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="OG-NM-11") as caught:
        lint_schema("", severities={"OG-NM-11": "off"})
    assert "OG-NM-101" in (caught.value.hint or "")


def test_every_code_is_well_formed() -> None:
    families = {"DS", "MF", "CD", "BC", "NM", "OW", "NL", "VE", "ED", "LK"}
    for code, entry in CODES.items():
        match = re.fullmatch(r"OG-([A-Z]{2})-\d{3}", code)
        assert match is not None
        assert match[1] in families
        assert entry.code == code
        assert entry.meaning
