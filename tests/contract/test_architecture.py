"""ARCHITECTURE.md names every file of the package, and only files and codes that are there."""

import re
from pathlib import Path

import pytest

from omnigraph.lang.query.codes import LINT_CODES, TYPE_CODES
from omnigraph.lang.schema.codes import CODES

CODE = re.compile(r"\b(?:T\d+|D2|L\d{3}|Q\d{3}|OG-[A-Z]{2}-\d{3})\b")
RANGE = re.compile(r"(OG-[A-Z]{2}-)(\d{3}) to \1(\d{3})")


def listed(page: str) -> dict[str, str]:
    """The files of the trees, each with its line of text."""
    found, folder = {}, ""
    for block in re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if re.fullmatch(r"omnigraph/[\w/]*", line):
                folder = line
            elif folder and line.startswith("  "):
                name, _, text = line.strip().partition(" ")
                found[folder + name] = RANGE.sub(spread, text)
    return found


def spread(span: re.Match[str]) -> str:
    """`OG-NM-101 to OG-NM-103` as three codes."""
    return ", ".join(f"{span[1]}{number}" for number in range(int(span[2]), int(span[3]) + 1))


@pytest.fixture(scope="module")
def files(checkout: Path) -> dict[str, str]:
    return listed((checkout / "ARCHITECTURE.md").read_text())


def test_every_file_of_the_package_is_named_and_no_other(
    checkout: Path, files: dict[str, str]
) -> None:
    package = [p for p in (checkout / "omnigraph").rglob("*") if p.is_file()]
    names = {str(p.relative_to(checkout)) for p in package if "__pycache__" not in p.parts}
    assert set(files) == names


def test_every_code_stands_beside_a_file_that_reports_it(
    checkout: Path, files: dict[str, str]
) -> None:
    wrong = [
        f"{name}: {code}"
        for name, text in files.items()
        for code in CODE.findall(text)
        if code not in CODE.findall((checkout / name).read_text())
    ]
    assert wrong == []


def test_every_code_that_is_reported_has_a_place(checkout: Path, files: dict[str, str]) -> None:
    sources = "".join(
        (checkout / name).read_text() for name in files if not name.endswith("/codes.py")
    )
    reported = {f'"{code}"' for code in (*TYPE_CODES, *LINT_CODES, *CODES)}
    reported = {code.strip('"') for code in reported if code in sources}
    placed = {code for text in files.values() for code in CODE.findall(text)}
    assert reported - placed == set()


def test_every_path_in_the_text_exists(checkout: Path) -> None:
    page = (checkout / "ARCHITECTURE.md").read_text()
    package = checkout / "omnigraph"
    roots = (checkout, package, package / "lang/schema", package / "lang/query")
    paths = re.findall(r"`([\w./]+/[\w./]*\w\.(?:py|sh|lark|txt))`", page)
    assert len(paths) > 20
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []
