"""Trees are printed and parsed unchanged, with any text between tokens."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang import coarse_scan
from omnigraph.lang.query import model as m
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.parse import parse_queries
from omnigraph.lang.query.print_syntax import Speller
from tests.lang.query_strategies import queries, query_files

FILLERS = st.sampled_from(["\n", "\n\n\n", "\t", "\r\n", '// a "b\n', "/* c */", "/*\n} */", "\n//\n"])


def spelled(file: m.QueryFile) -> str:
    return "\n".join(Speller().query(query) for query in file.queries)


def comments(text: str) -> list[str]:
    return [text[x.start : x.end].rstrip() for x in coarse_scan.find_comments(text)]


@st.composite
def noisy(draw: st.DrawFn) -> str:
    """A valid text with white space and comments of all kinds between its pieces."""
    text = spelled(draw(query_files()))
    pieces = list(coarse_scan.lexemes(text, 0, len(text)))
    out, at = [], 0
    for before, after in pairwise(pieces):
        out.append(text[at : before.end])
        at = before.end
        apart = before.end < after.start or "open" in (before.kind, after.kind)
        if apart and draw(st.integers(0, 5)) == 0:
            out.append(f" {draw(FILLERS)}")
    return "".join([*out, text[at:]])


@given(query_files())
def test_a_printed_tree_reads_back_equal(file: m.QueryFile) -> None:
    assert parse_queries(spelled(file)) == file


@given(noisy())
def test_format_keeps_tree_and_comments_and_is_idempotent(text: str) -> None:
    formatted = format_queries(text)
    assert parse_queries(formatted) == parse_queries(text)
    assert comments(formatted) == comments(text)
    assert format_queries(formatted) == formatted
    assert "\n\n\n" not in formatted or '"' in formatted


@given(queries())
def test_no_line_of_a_layout_ends_in_white_space(query: m.Query) -> None:
    lines = format_queries(Speller().query(query)).splitlines()
    assert [line for line in lines if line != line.rstrip() and '"' not in line] == []
