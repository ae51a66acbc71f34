"""The page about the example library matches the example."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.contract.page_examples import run_page
from tests.examples.library_rules import Contents


@pytest.fixture(scope="module")
def library(checkout: Path) -> Path:
    return checkout / "examples" / "library"


@pytest.fixture(scope="module")
def page(library: Path) -> str:
    return (library / "README.md").read_text()


@pytest.fixture(scope="module")
def rows(library: Path) -> Contents:
    files = sorted((library / "data").iterdir())
    return Contents(line for file in files for line in file.read_text().splitlines(keepends=True))


def asked(page: str) -> dict[str, str]:
    """The queries of the tables, with what the page suggests as parameters."""
    found = re.findall(r"^\| `(\w+)` \|[^|]*\|(?: ([^|]*)\|)?", page, re.MULTILINE)
    return {name: hint.strip() for name, hint in found}


def test_readme_commands_print_the_documented_output(library: Path, page: str, tmp_path: Path) -> None:
    copy = tmp_path / "library"
    shutil.copytree(library, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert run_page(page, Path(sys.executable).parent, copy) == 2


def test_readme_lists_every_query_in_order(library: Path, page: str) -> None:
    queries = re.findall(r"^query (\w+)\(", (library / "queries.gq").read_text(), re.MULTILINE)
    assert list(asked(page)) == queries


def test_readme_suggestions_exist(page: str, rows: Contents) -> None:
    kinds = {"doi": "Paper", "orcid": "Author", "slug": "Topic"}
    hints = re.findall(r"`(doi|orcid|slug)` (\S+)", " ".join(asked(page).values()))
    keys = [(kinds[name], value) for name, value in hints]
    assert len(keys) > 8
    assert [key for kind, key in keys if key not in rows.nodes[kind]] == []


def test_example_vector_is_nearest_to_its_topic(page: str, rows: Contents) -> None:
    (text,) = re.findall(r"```json\n(.*?)\n```", page, re.DOTALL)
    direction = json.loads(text)
    assert len(direction) == 8
    papers = [row for row in rows.nodes["Paper"].values() if "abstract_vec" in row]
    papers.sort(key=lambda p: -sum(x * y for x, y in zip(direction, p["abstract_vec"], strict=True)))
    assert all("graph databases" in paper["keywords"] for paper in papers[:8])


def test_example_search_terms_have_matches(page: str, rows: Contents) -> None:
    papers = rows.nodes["Paper"].values()
    text = " ".join(paper["abstract"].lower() for paper in papers)
    keywords = {word for paper in papers for word in paper["keywords"]}
    for hint in asked(page).values():
        if found := re.search(r"`(words|phrase)` ([a-z -]+)$", hint):
            assert found[2] in text
        if found := re.search(r"`word` (.+)$", hint):
            assert found[1] in keywords
