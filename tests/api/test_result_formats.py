"""Text formats of results: exact output, without characters that control a terminal."""

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.api.results.formats import PrintableResult, ResultFormat, TextStyle, display_width, render

TEXTS = ["plain", "日本語テキスト", "👩‍🚀 ok", "two\nlines", "a\r\tb", "\x1b[31mred", "\u202ertl", 'q"uo,te']


def shown(form: ResultFormat, style: TextStyle | None = None, **columns: Any) -> str:
    return "\n".join(render(PrintableResult(pa.table(columns), "q"), form, style))


def test_table_aligns_by_terminal_width_and_escapes_control_characters() -> None:
    assert shown("table", n=[1, 2, 3, 4], t=["plain", "日本語", "two\nlines", None]) == (
        "4 rows from branch main via q\nn | t\n--+-----------\n1 | plain\n2 | 日本語\n3 | two\\nlines\n4 | null"
    )
    assert shown("table", t=["日本語", "x"], n=[1, 2]).splitlines()[3:] == ["日本語 | 1", "x      | 2"]


def test_long_cells_are_cut_or_wrapped() -> None:
    long = {"t": ["abcdefghijkl", "日本語日本語"], "n": [1, 2]}
    assert shown("table", TextStyle(max_column_width=8), **long).splitlines()[1:] == [
        "t        | n",
        "---------+--",
        "abcdefg… | 1",
        "日本語…  | 2",
    ]
    assert shown("table", TextStyle(max_column_width=8, layout="wrap"), **long).splitlines()[3:] == [
        "abcdefgh | 1",
        "ijkl     |",
        "日本語日 | 2",
        "本語     |",
    ]
    assert "abcdefg…" in shown("table", TextStyle(max_column_width=1), **long)  # eight is the least


def test_csv_quotes_only_fields_that_need_it() -> None:
    text = shown("csv", a=["x,y", 'say "hi"', "cr\rlf\n", None], b=[[1], [], None, [None]])
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[1:] == [["x,y", "[1]"], ['say "hi"', "[]"], ["cr\rlf\n", "null"], ["null", "[null]"]]
    assert shown("csv", TextStyle(csv_null=""), a=[None]) == "a\n"


def test_csv_spells_32_bit_floats_with_as_few_digits_as_identify_them() -> None:
    short = pa.array([24.1, 1e-7, None, float("nan"), -0.0], pa.float32())
    lists = pa.array([[0.1, None], None, [], [float("-inf")], [2.5]], pa.list_(pa.float32()))
    vectors = pa.array([[0.1, 0.2], None, None, None, None], pa.list_(pa.float32(), 2))
    structs = pa.array([{"a": 0.1, "b": 0.1}] + [None] * 4, pa.struct({"a": pa.float32(), "b": pa.float64()}))
    text = shown("csv", TextStyle(csv_null=""), f=short, d=[24.1] * 5, l=lists, v=vectors, s=structs)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["f", "d", "l", "v", "s"],
        ["24.1", "24.1", "[0.1,null]", "[0.1,0.2]", '{"a":0.1,"b":0.1}'],
        ["1e-07", "24.1", "", "", ""],
        ["", "24.1", "[]", "", ""],
        ["NaN", "24.1", '["-Infinity"]', "", ""],
        ["-0.0", "24.1", "[2.5]", "", ""],
    ]


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_csv_keeps_every_32_bit_float(floats: list[float]) -> None:
    text = shown("csv", f=pa.array(floats, pa.float32()))
    assert pa.array(map(float, text.splitlines()[1:]), pa.float32()).to_pylist() == floats


def test_json_widens_32_bit_floats() -> None:
    assert shown("ndjson", f=pa.array([24.1], pa.float32())) == '{"f":24.100000381469727}'


def test_csv_quotes_texts_that_would_read_as_null() -> None:
    assert shown("csv", a=["null", None, "", "Null"]) == 'a\n"null"\nnull\n""\nNull'
    assert shown("csv", TextStyle(csv_null="NA"), a=["null", "NA", None]) == 'a\nnull\n"NA"\nNA'


def test_empty_result_is_rendered_without_rows() -> None:
    empty = pa.array([], pa.string())
    assert shown("kv", a=empty) == "0 rows from branch main via q\n(no rows)"
    assert shown("table", a=empty) == "0 rows from branch main via q\na\n-"
    assert json.loads(shown("json", a=empty))["rows"] == []


def test_non_finite_numbers_are_rendered_in_json() -> None:
    column = pa.array([float("nan"), float("inf"), -float("inf"), 0.5])
    vector = pa.array([[float("nan"), 1.0]] * 4, pa.list_(pa.float32(), 2))
    rows = json.loads(shown("json", a=column, v=vector))["rows"]
    assert [row["a"] for row in rows] == ["NaN", "Infinity", "-Infinity", 0.5]
    assert rows[0]["v"] == [None, 1.0]


@given(texts=st.lists(st.text() | st.sampled_from(TEXTS), min_size=1, max_size=5))
def test_machine_formats_round_trip_and_tables_keep_one_line_per_row(texts: list[str]) -> None:
    assert [row["t"] for row in json.loads(shown("json", t=texts))["rows"]] == texts
    lines = shown("jsonl", t=texts).split("\n")
    assert [json.loads(line)["t"] for line in lines[1:]] == texts
    table = shown("table", TextStyle(max_column_width=40), t=texts).split("\n")
    assert len(table) == 3 + len(texts)
    assert all(display_width(line) <= 40 for line in table[1:])
    for form in ("table", "kv", "md"):
        picture = shown(form, t=texts)
        assert not any(mark in picture for mark in "\r\x1b\x07\u202e\u2028\x85\x00")


@pytest.mark.parametrize(
    ("text", "columns"), [("日本", 4), ("e\u0301", 1), ("👨\u200d👩\u200d👧", 2), ("👍🏽", 2), ("می\u200cخواهم", 7)]
)
def test_the_width_of_a_text_on_a_terminal(text: str, columns: int) -> None:
    assert display_width(text) == columns


@pytest.mark.parametrize("form", ["table", "kv", "csv", "jsonl", "json", "md"])
def test_no_format_prints_empty_lines(form: ResultFormat) -> None:
    assert "" not in shown(form, a=[1]).split("\n")
