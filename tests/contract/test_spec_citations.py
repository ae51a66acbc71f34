"""Every number of the specification that a case or a test cites is in docs/spec."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"
VOLUMES = {
    "query": "query-language",
    "schema": "schema-language",
    "mutations": "mutations-and-load",
    "branches": "branches-merge-changes",
    "python": "python-api",
    **{name: name for name in ("storage", "write-path", "maintenance", "errors", "cli", "server")},
}
# Lists of cases that belong to one volume, and so cite numbers only.
NUMBERED = {
    "maintenance/conformance.txt": "maintenance",
    "changes/conformance.txt": "branches",
    "server/conformance.txt": "server",
    "migrate/conformance.txt": "schema",
    "schema/check/conformance.txt": "schema",
    "query/check/conformance_reads.txt": "query",
    "query/check/conformance_writes.txt": "query",
}
NAMES = "|".join(sorted({*VOLUMES, *VOLUMES.values()}, key=len, reverse=True))
RULE = re.compile(rf"^# rule: ({NAMES}) (\d+(?:\.\d+)?|[TD]\d+)(?: beyond)?$", re.MULTILINE)
CASE = re.compile(rf"^(?:# case: )?({NAMES}) (\d+)(?= )", re.MULTILINE)
COMMENT = re.compile(rf"^# ({NAMES}) ((?:\d+, )*\d+)\b", re.MULTILINE)
NUMBER = re.compile(r"^(?:# case:? )?(\d+)\b(?= |$)", re.MULTILINE)
PROSE = re.compile(rf"\b({NAMES}) (\d+\.\d+)\b")
RULE_ID = re.compile(r"\b([SWBM]-\d{1,2}|I(?:[1-9]|1[0-4]))\b")


@cache
def volume(name: str) -> str:
    return (ROOT / "docs" / "spec" / f"{VOLUMES.get(name, name)}.md").read_text()


@cache
def section(name: str, number: str) -> str | None:
    """The text of a section; `4.2` is also the second item of a numbered list in section 4."""
    heading = re.search(rf"^#+ {re.escape(number)}\.? .*$", volume(name), re.MULTILINE)
    if heading:
        level = heading[0].partition(" ")[0]
        rest = volume(name)[heading.end() :]
        return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    outer, _, item = number.partition(".")
    text = section(name, outer) if item else None
    found = re.search(rf"^{item}\. .*$", text, re.MULTILINE) if text else None
    return found[0] if found else None


@cache
def case_numbers(name: str) -> frozenset[int]:
    cases = re.split(r"^## \d+\. Conformance cases$", volume(name), flags=re.MULTILINE)[1]
    return frozenset(int(number) for number in re.findall(r"^(\d+)\. ", cases, re.MULTILINE))


def rule_exists(name: str, rule: str) -> bool:
    if rule[0] in "TD":
        return re.search(rf"\b{rule}\b", volume(name)) is not None
    return section(name, rule) is not None


def rule_id_exists(rule: str) -> bool:
    texts = (volume(name) for name in ("storage", "write-path", "branches", "maintenance"))
    return any(re.search(rf"^(?:\* \*\*)?{rule}\b", text, re.MULTILINE) for text in texts)


def texts_of_cases() -> Iterator[tuple[str, str]]:
    for path in sorted(CASES.rglob("*.txt")):
        yield path.relative_to(CASES).as_posix(), path.read_text("utf-8")


def test_every_rule_that_a_case_cites_exists() -> None:
    cited = [(file, *match) for file, text in texts_of_cases() for match in RULE.findall(text)]
    assert len(cited) > 300
    assert [row for row in cited if not rule_exists(*row[1:])] == []


def test_every_rule_of_a_case_is_a_citation() -> None:
    others = {
        line
        for _, text in texts_of_cases()
        for line in re.findall(r"^# rule: .*$", text, re.MULTILINE)
        if not RULE.fullmatch(line)
    }
    assert others <= {"# rule: empty"}


def test_every_numbered_case_exists() -> None:
    cited = [(file, *match) for file, text in texts_of_cases() for match in CASE.findall(text)]
    for file, text in texts_of_cases():
        numbers = NUMBER.findall(text) if file in NUMBERED else []
        cited.extend((file, NUMBERED[file], number) for number in numbers)
        for name, listed in COMMENT.findall(text):
            cited.extend((file, name, number) for number in listed.split(", "))
    assert len(cited) > 400
    assert [row for row in cited if int(row[2]) not in case_numbers(row[1])] == []


@pytest.mark.parametrize("name", sorted(VOLUMES))
def test_cases_are_numbered_without_gaps(name: str) -> None:
    assert case_numbers(name) == set(range(1, len(case_numbers(name)) + 1))


def test_every_citation_in_a_docstring_of_a_test_exists() -> None:
    broken = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for text in docstrings(path.read_text()):
            broken += [(path.name, *cited) for cited in PROSE.findall(text) if not section(*cited)]
            broken += [(path.name, rule) for rule in RULE_ID.findall(text) if not rule_id_exists(rule)]
    assert broken == []


def docstrings(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def test_the_index_lists_every_volume() -> None:
    folder = ROOT / "docs" / "spec"
    index = (folder / "README.md").read_text()
    assert {path.name for path in folder.glob("*.md")} == {
        *re.findall(r"^\| \[[^]]*\]\(([\w-]+\.md)\)", index, re.MULTILINE),
        "README.md",
    }


@pytest.mark.parametrize("cited", [("query", "7.9"), ("mutations", "4.9"), ("schema", "99")])
def test_a_citation_that_leads_nowhere_is_noticed(cited: tuple[str, str]) -> None:
    assert not rule_exists(*cited)
    assert not rule_id_exists("S-99")
