"""Reads the text fixtures of the query parser and formatter, and prints trees as short text.

A file of blocks has `== title`, the query text, then `-- kind` and what is expected; further
`-- kind` sections may follow. A file of lines has `text => expected` on each line. Lines that
begin with `#` before the first block or anywhere in a file of lines are comments.
"""

from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path

from omnigraph.errors.diagnostics import Span
from omnigraph.values import PropertyType

CASES = Path(__file__).parent.parent.parent / "cases" / "query"


@dataclass(frozen=True)
class Block:
    """One case: its text and the sections that say what is expected of it."""

    title: str
    text: str
    expected: dict[str, str]


def blocks(name: str) -> list[Block]:
    """The cases of a file of blocks."""
    content = (CASES / name).read_text("utf-8")
    found = []
    for part in f"\n{content}".split("\n== ")[1:]:
        head, *sections = part.split("\n-- ")
        title, _, text = head.partition("\n")
        pairs = (section.partition("\n") for section in sections)
        expected = {kind.strip(): said.strip("\n") for kind, _, said in pairs}
        found.append(Block(title.strip(), text, expected))
    assert found, f"no cases in {name}"
    return found


def lines(name: str) -> list[tuple[str, str]]:
    """The cases of a file of lines: text and expectation."""
    content = (CASES / name).read_text("utf-8")
    rows = [row for row in content.splitlines() if row.strip() and not row.startswith("#")]
    pairs = [row.partition(" => ") for row in rows]
    assert pairs, f"no cases in {name}"
    return [(text.strip(), said.strip()) for text, _, said in pairs]


def outline(node: object) -> str:
    """A tree as one line: class names, fields that are not at their default, no spans."""
    if isinstance(node, PropertyType):
        return node.display()
    if isinstance(node, tuple):
        return f"[{' '.join(outline(one) for one in node)}]"
    if not is_dataclass(node):
        return repr(node)
    shown = []
    for one in fields(node):
        value = getattr(node, one.name)
        if not isinstance(value, Span) and (one.default is MISSING or value != one.default):
            shown.append(outline(value))
    return f"{type(node).__name__}({' '.join(shown)})"
