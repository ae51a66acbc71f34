"""Positions in a text, and rendered diagnostics."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors.diagnostics import Diagnostic, SourceText, Span, render

# Text, what is marked in it, and the two lines of the picture.
PICTURES: dict[str, tuple[str, str, str, str]] = {
    "plain": ("node lamp {}", "lamp", "  1 | node lamp {}", "    |      ^^^^"),
    "second line": ("// one\n  two", "two", "  2 |   two", "    |   ^^^"),
    "wide characters before": ('"日本語" x', "x", '  1 | "日本語" x', "    |          ^"),
    "wide characters inside": ("a 日本 b", "日本", "  1 | a 日本 b", "    |   ^^^^"),
    "a wide picture": ("🎉🎉 x", "x", "  1 | 🎉🎉 x", "    |      ^"),
    "full width": ("ＡＢ x", "x", "  1 | ＡＢ x", "    |      ^"),
    "combining marks": ("e\u0301e\u0301 x", "x", "  1 | e\u0301e\u0301 x", "    |    ^"),
    "marks that enclose and select": ("1\ufe0f\u20e3 x", "x", "  1 | 1\ufe0f\u20e3 x", "    |   ^"),
    "nothing but a mark": ("e\u0301 x", "\u0301", "  1 | e\u0301 x", "    |  ^"),
    "tabs": ("\t\tx\ty", "y", "  1 |   x y", "    |     ^"),
    "windows line end": ("one\r\ntwo\r\n", "two", "  2 | two", "    | ^^^"),
    "a lone carriage return": ("one\rtwo x", "x", "  1 | one\ufffdtwo x", "    |         ^"),
    "control characters": ("\x1b[31m\x07 x", "x", "  1 | \ufffd[31m\ufffd x", "    |        ^"),
    "direction marks": ("\u202ea x", "x", "  1 | \ufffda x", "    |    ^"),
    "over several lines": ("a {\n  b\n}", "{\n  b\n}", "  1 | a {", "    |   ^"),
    "over several windows lines": ("a {\r\n}", "{\r\n}", "  1 | a {", "    |   ^"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_diagnostics_are_rendered(name: str) -> None:
    text, marked, *picture = PICTURES[name]
    source = SourceText("a.pg", text)
    start = text.index(marked)
    one = Diagnostic.at_span(source, Span(start, start + len(marked)), "no")
    place = f"a.pg:{text.count(chr(10), 0, start) + 1}:{one.column}"
    assert render(one, source).split("\n") == [f"{place}: error: no", *picture]


def picture(text: str, start: int, end: int) -> list[str]:
    source = SourceText("a.pg", text)
    return render(Diagnostic.at_span(source, Span(start, end), "no"), source).split("\n")


def test_diagnostic_at_the_end_of_the_text_is_rendered() -> None:
    assert picture("node", 4, 4) == ["a.pg:1:5: error: no", "  1 | node", "    |     ^"]
    assert picture("node\n", 5, 5) == ["a.pg:2:1: error: no", "  2 | ", "    | ^"]
    assert picture("", 0, 0) == ["a.pg:1:1: error: no", "  1 | ", "    | ^"]
    assert picture("日本", 2, 2) == ["a.pg:1:3: error: no", "  1 | 日本", "    |     ^"]


LONG = "".join(f"{i:09}_" for i in range(30))  # 300 characters


def test_a_long_line_is_cut_on_both_sides() -> None:
    head, line, caret = picture(LONG, 150, 155)
    assert head == "a.pg:1:151: error: no"
    assert line == f"  1 | …{LONG[102:198]}…"
    assert caret == "    | " + " " * 49 + "^^^^^"
    assert line[caret.index("^") :][:5] == LONG[150:155]


def test_a_long_line_is_cut_on_the_right() -> None:
    _, line, caret = picture(LONG, 10, 20)
    assert line == f"  1 | {LONG[:96]}…"
    assert caret == "    | " + " " * 10 + "^" * 10


def test_a_long_line_is_cut_on_the_left() -> None:
    _, line, caret = picture(LONG, 295, 300)
    assert line == f"  1 | …{LONG[247:]}"
    assert line[caret.index("^") :] == LONG[295:]
    assert caret.count("^") == 5


def test_marker_ends_with_the_visible_text() -> None:
    _, line, caret = picture(LONG, 150, 300)
    assert len(caret) == len(line) - 1  # the line goes on with an ellipsis


def test_diagnostic_at_the_end_of_a_long_line_is_rendered() -> None:
    _, line, caret = picture(LONG, 300, 300)
    assert line == f"  1 | …{LONG[252:]}"
    assert caret == "    | " + " " * 49 + "^"


@pytest.mark.parametrize(("line", "gutter"), [(9, "  9 |"), (999, "999 |"), (12345, "12345 |")])
def test_gutter_fits_the_line_number(line: int, gutter: str) -> None:
    text = "\n" * (line - 1) + "x"
    _, shown, caret = picture(text, line - 1, line)
    assert (shown, caret) == (f"{gutter} x", " " * (len(gutter) - 1) + "| ^")


def test_all_parts_of_a_diagnostic_are_rendered() -> None:
    source = SourceText("a.pg", "lamp")
    one = Diagnostic.at_span(source, Span(0, 4), "no", code="T1", kind="type", severity="warning", hint="try")
    assert render(one, source) == ("a.pg:1:1: warning[T1]: no\n  1 | lamp\n    | ^^^^\n  hint: try")


def test_control_characters_are_escaped() -> None:
    source = SourceText("a\x1b[2J.pg", "x")
    one = Diagnostic.at_span(source, Span(0, 1), "found `\x1b[31m\n\u202e`", hint="a\rb")
    head, *_, hint = render(one, source).split("\n")
    assert head == r"a\x1b[2J.pg:1:1: error: found `\x1b[31m\n\u202e`"
    assert hint == r"  hint: a\rb"


# Places -----------------------------------------------------------------------------------------

TEXTS = st.text(st.sampled_from("ab\n\r\té日🎉\u2028\u0301"), max_size=30)


def naive(text: str, offset: int) -> tuple[int, int]:
    line, column = 1, 1
    for char in text[:offset]:
        line, column = (line + 1, 1) if char == "\n" else (line, column + 1)
    return line, column


@given(TEXTS, st.integers(-3, 33))
def test_position_equals_a_count_of_lines_and_columns(text: str, offset: int) -> None:
    assert SourceText("x", text).locate(offset) == naive(text, max(0, offset))


@given(TEXTS)
def test_line_text_equals_the_split_text(text: str) -> None:
    source = SourceText("x", text)
    lines = text.split("\n")
    assert [source.line_text(n) for n in range(1, len(lines) + 1)] == [x.rstrip("\r") for x in lines]


@given(TEXTS, st.integers(0, 30), st.integers(0, 30))
def test_every_rendering_has_a_marker(text: str, start: int, length: int) -> None:
    start = min(start, len(text))
    head, line, caret = picture(text, start, min(len(text), start + length))
    found = naive(text, start)
    assert head == f"a.pg:{found[0]}:{found[1]}: error: no"
    assert line.startswith(f"{found[0]:3} | ")
    assert caret[:6] == "    | "
    assert set(caret[6:].lstrip(" ")) == {"^"}
    assert line.isprintable()


def test_two_sources_with_the_same_text_are_equal() -> None:
    used = SourceText("x", "a\nb")
    used.locate(2)
    assert used == SourceText("x", "a\nb")
    assert "starts" not in repr(used)


def test_diagnostic_has_a_json_form() -> None:
    one = Diagnostic.at_span(SourceText("x", "a\nbc"), Span(2, 4), "no", code="T1", hint="try")
    assert json.loads(json.dumps(one.to_json())) == {
        "message": "no",
        "code": "T1",
        "kind": "parse",
        "severity": "error",
        "start": 2,
        "end": 4,
        "line": 2,
        "column": 1,
        "hint": "try",
    }
    assert "hint" not in Diagnostic("no").to_json()


def test_spans_are_validated_and_joined() -> None:
    assert Span(1, 2).to(Span(5, 9)) == Span(1, 9)
    assert Span(1, 2).shifted(-1) == Span(0, 1)
    assert Diagnostic.at_span(SourceText("x", "ab"), Span(1, 1), "no").end == 2
