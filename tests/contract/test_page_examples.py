"""The examples of the README and the guides run and print what they show."""

import sys
from pathlib import Path

import pytest

from tests.contract.page_examples import run_page, steps

BINARIES = Path(sys.executable).parent
PAGES = (
    "README.md",
    "docs/tutorial/README.md",
    "docs/how-to/README.md",
    "docs/how-to/configuration.md",
    "docs/how-to/shell.md",
    "docs/how-to/conflicts.md",
    "docs/how-to/merge.md",
    "docs/how-to/undo.md",
    "docs/how-to/change-a-schema.md",
    "docs/how-to/schemas.md",
    "docs/how-to/back-up-and-restore.md",
    "docs/how-to/operate.md",
    "docs/how-to/erase.md",
    "docs/how-to/follow-changes.md",
    "docs/how-to/load-files.md",
    "docs/how-to/blobs.md",
    "docs/how-to/serve.md",
    "docs/how-to/use-a-server-from-python.md",
    "docs/how-to/use-a-server-from-the-command-line.md",
    "docs/how-to/secure-a-server.md",
    "docs/how-to/deploy-a-server.md",
    "docs/reference/json.md",
    "docs/reference/python.md",
)


@pytest.mark.timeout(600)  # a page starts up to thirty programs
@pytest.mark.parametrize("page", PAGES)
def test_examples_of_a_page_run_as_written(checkout: Path, tmp_path: Path, page: str) -> None:
    assert run_page((checkout / page).read_text(), BINARIES, tmp_path) >= 2


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="printed"):
        run_page("```sh\necho one\n```\n\n```text\ntwo\n```\n", BINARIES, tmp_path)


@pytest.mark.parametrize("said", ['{"a": 2}', '{"a": 1, "b": "…"}', '{"b": "…"}', '[{"a": 1}]'])
def test_a_wrong_document_is_noticed(tmp_path: Path, said: str) -> None:
    page = "```sh\necho '{{\"a\": 1}}'\n```\n\n```json\n{}\n```\n"
    assert run_page(page.format('{"a": "…"}'), BINARIES, tmp_path) == 1
    with pytest.raises(AssertionError, match="printed"):
        run_page(page.format(said), BINARIES, tmp_path)


def test_a_failing_block_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="exit 1"):
        run_page("```sh\nfalse\n```\n", BINARIES, tmp_path)


def test_blocks_that_are_only_shown_are_not_run() -> None:
    assert steps("```console\nmake demo\n```\n\n```text\nx\n```\n") == []
