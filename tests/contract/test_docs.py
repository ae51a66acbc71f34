"""The documentation keeps its promises: fresh pages, links that lead somewhere."""

from pathlib import Path

import pytest

from scripts import make_docs


def test_the_generated_pages_are_fresh() -> None:
    assert make_docs.stale_pages() == []


def test_every_relative_link_leads_somewhere() -> None:
    assert make_docs.broken_links() == []


def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    assert set(make_docs.stale_pages(tmp_path)) == set(make_docs.PAGES)


@pytest.mark.parametrize("link", ["gone.md", "there.md#gone", "#gone", "dir/gone/"])
def test_a_broken_link_is_noticed(tmp_path: Path, link: str) -> None:
    (tmp_path / "there.md").write_text("# A heading, with `code`\n")
    (tmp_path / "page.md").write_text(f"See [this]({link}).\n")
    assert make_docs.broken_links(tmp_path) == [f"page.md: {link}"]


@pytest.mark.parametrize("link", ["there.md", "there.md#a-heading-with-code", "https://x.example"])
def test_a_good_link_is_left_alone(tmp_path: Path, link: str) -> None:
    (tmp_path / "there.md").write_text("# A heading, with `code`\n")
    (tmp_path / "page.md").write_text(f"See [this]({link}).\n\n```text\n[not](a-link)\n```\n")
    assert make_docs.broken_links(tmp_path) == []


@pytest.mark.parametrize("folder", ["tutorial", "how-to", "reference", "explanation", "decisions"])
def test_every_part_of_the_docs_has_an_index(checkout: Path, folder: str) -> None:
    assert (checkout / "docs" / folder / "README.md").is_file()


def test_the_readme_is_short(checkout: Path) -> None:
    assert len((checkout / "README.md").read_text().splitlines()) <= 120
