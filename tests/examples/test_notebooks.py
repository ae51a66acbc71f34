"""The example notebooks run, and every card that they display is balanced HTML without scripts."""

import ast
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebooks" / "first-look.ipynb"
_VOID_TAGS = ("br",)


class _TagBalance(HTMLParser):
    """Fails on an end tag that does not close the innermost open tag."""

    def __init__(self) -> None:
        super().__init__()
        self.open_tags: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in _VOID_TAGS:
            self.open_tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags.pop() == tag


def _run_cell(source: str, namespace: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last line, as a notebook does."""
    module = ast.parse(source)
    last = module.body.pop() if isinstance(module.body[-1], ast.Expr) else None
    exec(compile(module, "<cell>", "exec"), namespace)
    return (
        eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace) if isinstance(last, ast.Expr) else None
    )


def _check_card(card: str) -> set[str]:
    balance = _TagBalance()
    balance.feed(card)
    balance.close()
    assert not balance.open_tags
    assert not balance.tags & {"script", "link", "img", "iframe"}
    return balance.tags


def test_first_look_runs_and_displays_cards() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    namespace: dict[str, Any] = {}
    tags: dict[str, set[str]] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            shown = _run_cell("".join(cell["source"]), namespace)
            if hasattr(shown, "_repr_html_"):
                tags[cell["id"]] = _check_card(shown._repr_html_())
    assert {"query", "subgraph", "explain", "diff", "commit", "log", "create"} <= set(tags)
    assert all("svg" in tags[cell_id] for cell_id in ("query", "subgraph", "log", "create"))
