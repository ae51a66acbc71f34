"""Where the formatter puts comments and blank lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors.diagnostics import Span
from omnigraph.lang import coarse_scan
from omnigraph.lang.comment_layout import BlankLinePolicy, Layout


def laid(text: str, *items: str, blank: BlankLinePolicy = "keep") -> str:
    """The text with each item, found in it and in order, printed on a line of its own."""
    layout, at = Layout(text), 0
    for item in items:
        start = text.index(item, at)
        at = start + len(item)
        layout.add_item(0, item, Span(start, at), blank_line=blank)
    return layout.finish()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ""),
        ("a", "a\n"),
        ("a b", "a\nb\n"),
        ("a\n\n\n\nb", "a\n\nb\n"),
        ("\n\n\na", "a\n"),
        ("a\r\n\t\r\n  b", "a\n\nb\n"),
        ("a // x\nb", "a  // x\nb\n"),
        ("a, // x\nb", "a  // x\nb\n"),
        ("a\n// x\nb", "a\n// x\nb\n"),
        ("a\n\n// x\nb", "a\n\n// x\nb\n"),
        ("a\n// x\n\nb", "a\n// x\n\nb\n"),
        ("a /* x */ b", "a  /* x */\nb\n"),
        ("a /* x\n  y */ b", "a  /* x\n  y */\nb\n"),
        ("a /* x */ /* y */ b", "a  /* x */\n/* y */\nb\n"),
        ("// x   \na", "// x\na\n"),
        ("a\n// x\n// y", "a\n// x\n// y\n"),
        ("a\n\n// x\n\n\n// y\n\n", "a\n\n// x\n\n// y\n"),
        ("// x", "// x\n"),
        ("a // x\r\nb", "a  // x\nb\n"),
    ],
)
def test_comments_and_blank_lines_are_kept(text: str, wanted: str) -> None:
    items = [x for x in ("a", "b") if x in text]
    assert laid(text, *items) == wanted


def test_comment_inside_an_item_is_moved_before_it() -> None:
    layout = Layout("before\na /* x */ b")
    layout.add_item(0, "before", Span(0, 6))
    layout.add_item(0, "a b", Span(7, 18))
    assert layout.finish() == "before\n/* x */\na b\n"


def test_a_blank_line_stays_before_an_item_and_its_comments() -> None:
    layout = Layout("before\n\na /* x */ /* y */ b")
    layout.add_item(0, "before", Span(0, 6))
    layout.add_item(0, "a b", Span(8, 27))
    assert layout.finish() == "before\n\n/* x */\n/* y */\na b\n"


def test_blank_line_policy_inserts_or_removes_blank_lines() -> None:
    assert laid("a b", "a", "b", blank="always") == "a\n\nb\n"
    assert laid("a\n\n\nb", "a", "b", blank="never") == "a\nb\n"
    assert laid("a\n// x\nb", "a", "b", blank="always") == "a\n\n// x\nb\n"


def test_comments_of_a_block_stay_in_it() -> None:
    text = "{ a // x\n // y\n } // z"
    layout = Layout(text)
    layout.add_item(0, "{", Span(0, 1))
    layout.add_item(1, "a", Span(2, 3), blank_line="never")
    at = text.index("}")
    layout.add_item(0, "}", Span(at, at + 1), blank_line="never", closes_block=True)
    assert layout.finish() == "{\n    a  // x\n    // y\n}  // z\n"


PIECES = st.sampled_from(["a", "// x\n", "/* y */", "/* z\n */", "\n", "\n\n", " ", ", "])


@given(st.lists(PIECES, max_size=12).map(" ".join))
def test_no_comment_is_lost_or_moved_past_another(text: str) -> None:
    layout = Layout(text)
    items = [x for x in coarse_scan.lexemes(text, 0, len(text)) if x.kind == "word"]
    for item in items:
        layout.add_item(0, "a", Span(item.start, item.end))
    made = layout.finish()

    def comments(of: str) -> list[str]:
        return [of[x.start : x.end].rstrip() for x in coarse_scan.find_comments(of)]

    assert comments(made) == comments(text)
    assert [x.kind for x in coarse_scan.lexemes(made, 0, len(made))].count("word") == len(items)
    assert "\n\n\n" not in made
    assert not made.startswith("\n")
    assert made == "" or (made.endswith("\n") and not made.endswith("\n\n"))
