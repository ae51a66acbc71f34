"""The documentation is up to date: generated pages are fresh and links have targets."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import omnigraph
from omnigraph import errors, testing
from omnigraph.api.facet import Facet
from omnigraph.api.graph import Graph
from omnigraph.api.stored_queries import StoredQueries
from scripts import make_docs

MODULE = re.compile(r"`(omnigraph(?:\.[a-z_]+)+)`")


def test_the_generated_pages_are_fresh() -> None:
    assert make_docs.stale_pages() == []


def test_every_relative_link_has_a_target() -> None:
    assert make_docs.broken_links() == []


def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    assert set(make_docs.stale_pages(tmp_path)) == set(make_docs.PAGES)


def test_no_page_is_left_of_a_class_that_is_not_public() -> None:
    assert make_docs.leftover_pages() == []


def test_every_public_class_and_facet_has_a_page() -> None:
    classes = [name for name in omnigraph.__all__ if isinstance(getattr(omnigraph, name), type)]
    with testing.graph("node Person { name: String @key }") as opened:
        properties = [name for name, member in vars(Graph).items() if isinstance(member, property)]
        facets = [
            type(value).__name__
            for name in properties
            if isinstance(value := getattr(opened, name), Facet | StoredQueries)
        ]
    assert {"Branches", "Maintenance", "Spark"} <= set(facets)
    wanted = {f"docs/reference/api/{name}.md" for name in (*classes, *facets)}
    assert wanted - set(make_docs.PAGES) == set()


def test_a_page_shows_delegated_inherited_and_unpacked_signatures() -> None:
    text = make_docs.PAGES["docs/reference/api/Graph.md"]()
    assert "    *records: Any,\n    branch: str | None = None,\n" in text
    assert "handle" not in re.findall(r"^def \w+\((?:\n    )?(\w*)", text, re.MULTILINE)
    assert "def to_pandas(" in make_docs.PAGES["docs/reference/api/NodeSet.md"]()
    assert "async def cleanup(" in make_docs.PAGES["docs/reference/api/AsyncGraph.md"]()


def test_only_codes_that_nothing_reports_are_marked_as_reserved() -> None:
    marked = [line for line in make_docs.codes_page().splitlines() if "` *reserved* |" in line]
    assert [line.split("`")[1] for line in marked] == ["OG-DS-101"]


def test_every_page_of_the_reference_is_in_its_index(checkout: Path) -> None:
    folder = checkout / "docs" / "reference"
    index = (folder / "README.md").read_text()
    pages = {page.name for page in folder.glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"({page})" not in index} == set()


def test_the_public_modules_of_the_stability_page_say_what_is_public(checkout: Path) -> None:
    page = (checkout / "docs" / "reference" / "stability.md").read_text()
    (modules,) = re.findall(r"^\| Python \| the names in `__all__` of (.*?); from", page, re.MULTILINE)
    named = re.findall(r"`(omnigraph[\w.]*)`", modules)
    assert "omnigraph.lang.schema.migrate" in named
    assert [name for name in named if not hasattr(import_module(name), "__all__")] == []
    without = re.search(r"; from `omnigraph.errors.diagnostics` (.*?):", page)
    assert without is not None
    diagnostics = import_module("omnigraph.errors.diagnostics")
    assert all(hasattr(diagnostics, name) for name in re.findall(r"`(\w+)`", without[1]))


def test_the_spark_names_of_the_stability_page_exist(checkout: Path) -> None:
    pytest.importorskip("pyspark")
    page = (checkout / "docs" / "reference" / "stability.md").read_text()
    (row,) = re.findall(r"^\| Spark \| (.*) \|$", page, re.MULTILINE)
    for module, name in (("omnigraph.spark.session", "spark_session"), ("omnigraph.spark.source", "register")):
        assert f"`{module}`" in row
        assert f"`{name}`" in row
        assert callable(getattr(import_module(module), name))


def test_every_file_module_and_test_that_a_page_names_exists(checkout: Path) -> None:
    pages = (page for page in make_docs.markdown_files(checkout) if page.parent.name != "spec")
    missing = [f"{page.name}: {name}" for page in pages for name in missing_names(checkout, page)]
    assert missing == []


def missing_names(checkout: Path, page: Path) -> Iterator[str]:
    text = page.read_text()
    roots = (checkout, checkout / "omnigraph", page.parent)
    for path, test in re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|txt|lark))(?:::(\w+))?`", text):
        files = [root / path for root in roots if (root / path).is_file()]
        if page.name != "modules.md" and not (files and test in files[0].read_text()):
            yield f"{path}::{test}"
    yield from (name for name in MODULE.findall(text) if not _is_built(checkout, name))


def _is_built(checkout: Path, name: str) -> bool:
    """Whether a dotted name is a module, a name in one, or a layer that is not built yet."""
    path, _, last = name.rpartition(".")
    places = (checkout / name.replace(".", "/"), checkout / path.replace(".", "/"))
    if places[0].is_dir() or places[0].with_suffix(".py").is_file() or name == "omnigraph.server":
        return True
    owner = places[1] / "__init__.py" if places[1].is_dir() else places[1].with_suffix(".py")
    return owner.is_file() and re.search(rf"\b{last}\b", owner.read_text()) is not None


@pytest.mark.parametrize("link", ["gone.md", "there.md#gone", "#gone", "dir/gone/"])
def test_a_broken_link_is_noticed(tmp_path: Path, link: str) -> None:
    (tmp_path / "there.md").write_text("# A heading, with `code`\n")
    (tmp_path / "page.md").write_text(f"See [this]({link}).\n")
    assert make_docs.broken_links(tmp_path) == [f"page.md: {link}"]


@pytest.mark.parametrize("link", ["there.md", "there.md#a-heading-with-code", "https://x.example"])
def test_valid_link_is_accepted(tmp_path: Path, link: str) -> None:
    (tmp_path / "there.md").write_text("# A heading, with `code`\n")
    (tmp_path / "page.md").write_text(f"See [this]({link}).\n\n```text\n[not](a-link)\n```\n")
    assert make_docs.broken_links(tmp_path) == []


@pytest.mark.parametrize("folder", ["tutorial", "how-to", "reference", "explanation", "decisions", "spec"])
def test_every_part_of_the_docs_has_an_index(checkout: Path, folder: str) -> None:
    assert (checkout / "docs" / folder / "README.md").is_file()


def test_the_readme_is_short(checkout: Path) -> None:
    assert len((checkout / "README.md").read_text().splitlines()) <= 140


def test_the_reserved_errors_are_those_that_nothing_raises(checkout: Path) -> None:
    reserved = sorted(name for names in make_docs.RESERVED_ERRORS.values() for name in names)
    created = set().union(*map(_created_names, (checkout / "omnigraph").rglob("*.py")))
    classes = [getattr(errors, name) for name in errors.__all__]
    classes = [item for item in classes if isinstance(item, type)]
    assert reserved == sorted(
        parent.__name__
        for parent in classes
        if issubclass(parent, errors.OmnigraphError)
        and not any(issubclass(child, parent) and child.__name__ in created for child in classes)
    )


def _created_names(module: Path) -> set[str]:
    """What a module may create: names that it calls, or selects by a condition or from a table."""
    selected: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call):
            selected.append(node.func)
        elif isinstance(node, ast.IfExp):
            selected += [node.body, node.orelse]
        elif isinstance(node, ast.Dict):
            selected += node.values
    return {
        item.id if isinstance(item, ast.Name) else item.attr
        for item in selected
        if isinstance(item, ast.Name | ast.Attribute)
    }
