"""ARCHITECTURE.md and the page of modules say what the tree and the layer contract say."""

import re
import tomllib
from pathlib import Path

import pytest

from omnigraph.lang.query.codes import LINT_CODES, TYPE_CODES
from omnigraph.lang.schema.codes import CODES
from scripts import module_pages

LINK = re.compile(r"\]\(\.\./\.\./(omnigraph/[\w./]+)\)")
PATH = re.compile(r"`([\w./]+/[\w./]*\w\.(?:py|sh|lark|txt))`")
IDENTIFIER = re.compile(r"`([A-Za-z_]\w*)`")


@pytest.fixture(scope="module")
def page(checkout: Path) -> str:
    return (checkout / "ARCHITECTURE.md").read_text()


@pytest.fixture(scope="module")
def modules(checkout: Path) -> str:
    return (checkout / "docs" / "reference" / "modules.md").read_text()


def test_every_file_of_the_package_is_listed_and_no_other(checkout: Path, modules: str) -> None:
    folders = re.findall(r"^## `(omnigraph[\w/]*)`$", modules, re.MULTILINE)
    listed = {*LINK.findall(modules), *(f"{folder}/__init__.py" for folder in folders)}
    files = (path for path in (checkout / "omnigraph").rglob("*") if path.is_file())
    sources = {str(p.relative_to(checkout)) for p in files if "__pycache__" not in p.parts}
    assert listed == sources


def test_every_reported_code_is_listed_beside_its_module(checkout: Path, modules: str) -> None:
    rows = {match[1]: line for line in modules.splitlines() if (match := LINK.search(line))}
    package = sorted((checkout / "omnigraph").rglob("*.py"))
    for path in (path for path in package if path.name != "codes.py"):
        source, row = path.read_text(), rows.get(str(path.relative_to(checkout)), "")
        listed = set(re.findall(r"`([A-Z]\d+|OG-[A-Z]{2}-\d{3})`", row.partition("Reports ")[2]))
        assert all(f'"{code}"' in source for code in listed), path


def test_every_code_has_a_module_that_reports_it(modules: str) -> None:
    reports = "".join(line.partition(" Reports ")[2] for line in modules.splitlines())
    missing = [code for code in (*TYPE_CODES, *LINT_CODES, *CODES) if f"`{code}`" not in reports]
    assert missing == ["OG-DS-101"]


def test_a_module_without_a_docstring_is_refused(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""A package."""\n')
    (tmp_path / "silent.py").write_text("VALUE = 1\n")
    with pytest.raises(ValueError, match=r"silent\.py has no docstring"):
        module_pages.modules_page("", tmp_path)


def test_the_page_shows_the_layers_of_the_contract(checkout: Path, page: str) -> None:
    settings = tomllib.loads((checkout / "pyproject.toml").read_text())
    contract = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    block = page.partition("```text\n")[2].partition("```")[0]
    shown = [re.split(r" {2,}", line)[0] for line in block.splitlines()]
    assert shown == [re.sub("[()]", "", layer) for layer in contract]


def test_every_package_has_a_layer(checkout: Path, page: str) -> None:
    block = page.partition("```text\n")[2].partition("```")[0]
    layers = {name for line in block.splitlines() for name in re.split(r" {2,}", line)[0].split()}
    assert set(module_pages.folder_names(checkout / "omnigraph")) <= layers


def test_every_path_in_the_text_exists(checkout: Path, page: str) -> None:
    paths = PATH.findall(page)
    assert len(paths) > 50
    roots = (checkout, checkout / "omnigraph")
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []


def test_every_name_beside_a_path_is_in_one_of_the_files(checkout: Path, page: str) -> None:
    section = page.partition("## Where to find\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        location = line.rpartition(" | ")[2]
        files = [checkout / "omnigraph" / path for path in PATH.findall(location)]
        text = "".join(path.read_text() for path in files if path.is_file())
        assert [name for name in IDENTIFIER.findall(location) if name not in text] == [], line
