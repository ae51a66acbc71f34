"""The OpenAPI document has the operations, parameters and members of the reference, except for reviewed differences."""

import re
from collections.abc import Iterable

import pytest

from omnigraph.server.openapi import build_openapi
from omnigraph.server.routes import ROUTES
from tests.rig.case_lists import entries
from tests.rig.openapi_facts import facts_of

REFERENCE = {" | ".join(cells) for cells in entries("server/reference_operations.txt")}
OURS = facts_of(build_openapi(ROUTES))
DIFFERENCES = [(line[0], line[2:].replace(" @ ", " | ")) for line, _ in entries("server/reference_differences.txt")]
REASONS = [reason for _, reason in entries("server/reference_differences.txt")]


def operation_of(fact: str) -> str:
    return fact.partition(" | ")[0]


def is_kept(fact: str) -> bool:
    """Whether our document has a fact. A member of a response that becomes required keeps its promise."""
    return fact in OURS or (" | response member " in fact and f"{fact}!" in OURS)


OPERATIONS = {operation_of(fact) for fact in REFERENCE}
MISSING = {fact for fact in REFERENCE if not is_kept(fact)}
ADDED = {fact for fact in OURS - REFERENCE if operation_of(fact) in OPERATIONS}


def unlisted(sign: str, facts: Iterable[str]) -> list[str]:
    """The facts that no reviewed difference with this sign describes."""
    patterns = [as_pattern(text) for listed_sign, text in DIFFERENCES if listed_sign == sign]
    return sorted(fact for fact in facts if not any(pattern.fullmatch(fact) for pattern in patterns))


def as_pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*"))


def test_the_document_has_everything_of_the_reference_except_for_reviewed_differences() -> None:
    assert len(REFERENCE) > 700
    assert unlisted("-", MISSING) == []


def test_what_the_document_adds_to_an_operation_of_the_reference_is_reviewed() -> None:
    assert unlisted("+", ADDED) == []


@pytest.mark.parametrize(("sign", "text"), DIFFERENCES)
def test_every_reviewed_difference_exists_and_has_a_reason(sign: str, text: str) -> None:
    assert any(as_pattern(text).fullmatch(fact) for fact in (MISSING if sign == "-" else ADDED))
    assert all(REASONS)


def test_no_operation_of_the_reference_has_a_new_required_parameter_or_member() -> None:
    required = {fact for fact in ADDED if re.search(r" \| (parameter|request member) \S+!$", fact)}
    # A member of an optional object is required only inside that object.
    assert {fact for fact in required if "." not in fact.rpartition(" ")[2]} == set()
