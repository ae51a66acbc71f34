"""CSV files of one type: cells, lines, dialects, nulls and problems."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph import CsvOptions
from omnigraph.errors import InputError, OmnigraphError, ResourceLimitExceeded, UsageError
from omnigraph.ingest import csv_reader, csv_records, text_cells
from omnigraph.ingest.csv_reader import CsvSource, read_csv
from omnigraph.ingest.csv_records import CsvDialect, cut_records
from omnigraph.ingest.load_limits import LoadLimits
from omnigraph.ingest.problem import ProblemCollector
from omnigraph.ingest.record_intake import Intake
from omnigraph.ingest.text_cells import parse_cells
from omnigraph.ingest.text_encoding import to_utf8
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity
from omnigraph.lang.schema.catalog import PropertyDefinition
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import resolve_type

SCHEMA = """
node A {
  k: String @key
  s: String?
  i: I32?
  u: U64?
  f: F32?
  d: F64?
  b: Bool?
  on: Date?
  at: DateTime?
  tags: [String]?
  v: Vector(2)?
  x: Blob?
  n: I64 @default(7)
}
node T { a: String?  b: String?  c: String? }
node Q { k: String @key  must: Bool  s: String? }
edge R: A -> A { w: F64? }
"""
IR: SchemaIR = new_identity(compile_schema(SCHEMA), "test")


def read(
    text: bytes | str,
    type_name: str = "A",
    piece_bytes: int = 1 << 20,
    limits: LoadLimits | None = None,
    **options: Any,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of a text with their lines, and its problems."""
    encoded = text.encode() if isinstance(text, str) else text
    intake = Intake(IR, ProblemCollector(), limits or LoadLimits())
    entity_type = resolve_type(IR.catalog, type_name)
    pieces = (encoded[start : start + piece_bytes] for start in range(0, len(encoded), piece_bytes))
    settings = CsvOptions(**options)
    for _ in read_csv(intake, entity_type, to_utf8(pieces, settings.encoding), CsvSource(settings, {}, "x.csv")):
        pass
    intake.flush()
    buffer = intake.buffer_for(entity_type)
    lines = buffer.line_positions().tolist()
    rows = [{"line": line, **row} for line, row in zip(lines, buffer.all_rows().to_pylist(), strict=True)]
    assert buffer.record_count == len(rows) + len({problem.line for problem in intake.problems.collected})
    return rows, [problem.reason for problem in intake.problems.in_input_order()]


def values(text: bytes | str, column: str, **options: Any) -> list[Any]:
    rows, problems = read(text, **options)
    assert problems == []
    return [row[column] for row in rows]


@pytest.mark.parametrize(
    ("column", "cells", "expected"),
    [
        ("s", ["a", '""', "", " b ", "5", "true"], ["a", "", None, " b ", "5", "true"]),
        ("i", ["1", " -2 ", "+3", "4.0", "", '""', '"5"'], [1, -2, 3, 4, None, None, 5]),
        ("u", ["18446744073709551615", ""], [2**64 - 1, None]),
        ("d", ["1", "1.5", "-2e3", ".5", "5.", "+1", ""], [1.0, 1.5, -2000.0, 0.5, 5.0, 1.0, None]),
        ("f", ["0.5", "16777217", ""], [0.5, 16777216.0, None]),
        ("b", ["true", "FALSE", "1", "0", "yes", "No", "T", ""], [True, False, True, False, True, False, True, None]),
        ("on", ["2024-02-29", "19782", "2024-02-29T23:00:00-02:00", ""], [19782, 19782, 19783, None]),
        ("at", ["1970-01-02T00:00:00Z", "1970-01-01 00:00:00.5Z", ""], [86_400_000, 500, None]),
        ("at", ["1970-01-02", "1", "1970-01-01T01:00:00.123456+01:00"], [86_400_000, 1, 123]),
        ("tags", ['"[""a"", ""b""]"', "[]", ""], [["a", "b"], [], None]),
        ("v", ['"[1, 2.5]"', ""], [[1.0, 2.5], None]),
        ("x", ["base64:aGk=", ""], [b"hi", None]),
    ],
)  # fmt: skip
def test_cells_are_read_by_the_type_of_their_property(column: str, cells: list[str], expected: list[Any]) -> None:
    for rows in (cells, *([cell] for cell in cells)):  # together and alone, since whole columns have a fast path
        text = f"k,{column}\n" + "".join(f"k{number},{cell}\n" for number, cell in enumerate(rows))
        actual = values(text, column)
        if column in ("on", "at"):
            epoch, unit = (
                (date(1970, 1, 1), "days") if column == "on" else (datetime(1970, 1, 1, tzinfo=UTC), "milliseconds")
            )
            actual = [None if value is None else (value - epoch) // timedelta(**{unit: 1}) for value in actual]
        assert actual == ([expected[cells.index(cell)] for cell in rows] if len(rows) == 1 else expected)


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("i", "x", "expected I32, got string 'x'"),
        ("i", "0x10", "expected I32, got string '0x10'"),
        ("i", "1.5", "expected I32, got string '1.5'"),
        ("i", "2147483648", "expected I32 (-2147483648 to 2147483647), got integer 2147483648"),
        ("d", "1,5", "expected F64, got string '1,5'"),
        ("d", "nan", "expected F64, got string 'nan'"),
        ("d", "1e999", "expected finite F64, got number inf"),
        ("f", "1e39", "expected finite F32"),
        ("b", "maybe", "expected Bool, got string 'maybe'"),
        ("on", "2024-02-30", "expected Date"),
        ("at", "2024-01-01T00:00:00", "expected DateTime"),
        ("at", "0000-01-01T00:00:00Z", "expected DateTime"),
        ("at", "2024-01-01T24:00:00Z", "expected DateTime"),
        ("tags", "a", "expected [String] (an array), got string 'a'"),
        ("tags", "[1]", "expected [String]"),
        ("v", "[1]", "expected Vector(2)"),
        ("x", "base64:@@", "expected Blob"),
        ("n", "", "expected I64, got null"),
        ("k", "", "expected String, got null"),
    ],
)
def test_only_the_line_of_a_bad_cell_is_blamed(column: str, cell: str, words: str) -> None:
    good = {"k": "a", "i": "1", "d": "1", "f": "1", "b": "1", "on": "1", "at": "1", "n": "1"}.get(column, "")
    names = "k" if column == "k" else f"k,{column}"
    bad_line = '"' + cell + '"' if "," in cell else cell
    first, second = (good, bad_line or '""') if column == "k" else (f"a,{good}", f"b,{bad_line}")
    if (column, cell) == ("k", ""):
        names, first, second = "k,s", "a,", ",x"
    rows, problems = read(f"{names}\n{first}\n{second}\n")
    assert [row["line"] for row in rows] == [2]
    assert len(problems) == 1
    assert problems[0].startswith("line 3: property 'A.")
    assert words in problems[0]


def test_lines_are_physical_lines() -> None:
    text = '\nk,s\r\na,"1\n2\n3"\r\n\nb,"x"\r\n"c\n",\n'
    rows, problems = read(text)
    assert problems == []
    assert [(row["line"], row["k"], row["s"]) for row in rows] == [(3, "a", "1\n2\n3"), (7, "b", "x"), (8, "c\n", None)]
    assert read(text, piece_bytes=1) == (rows, [])


def test_malformed_records_are_located() -> None:
    text = 'k,s\na,1\nb,2,3\nc\n"d"x,4\n"e,5\n'
    rows, problems = read(text)
    assert [row["k"] for row in rows] == ["a"]
    assert problems == [
        "line 3: expected 2 cells, got 3",
        "line 4: expected 2 cells, got 1",
        "line 5: quoted cell 1 has text after its closing quote",
        "line 6: quoted cell 1 is not closed",
    ]
    assert values('k,s\na,5" pipe\nb,"3"" pipe"\n', "s") == ['5" pipe', '3" pipe']


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_dialect_is_detected(delimiter: str, quote: str) -> None:
    header = delimiter.join(f"{quote}{name}{quote}" for name in ("k", "s"))
    assert values(f"{header}\n{quote}a{delimiter}b{quote}{delimiter}c\n", "k") == [f"a{delimiter}b"]
    assert values(f"k{delimiter}s\n{quote}a{delimiter}b{quote}{delimiter}c\n", "k") == [f"a{delimiter}b"]
    assert values(f"k{delimiter}s\n{quote}a{quote}{delimiter}c d\n", "k") == ["a"]


def test_text_with_other_delimiters_does_not_confuse_detection() -> None:
    assert values("k;s\na;1,2,3\nb;4,5,6\n", "s") == ["1,2,3", "4,5,6"]
    assert values("k\na;b\nc\n", "k") == ["a;b", "c"]
    assert values(" k , s \na, b\n", "s") == [" b"]


def test_nulls() -> None:
    text = 'k,s,i\na,NA,NA\nb,"NA","NA"\nc,,\n'
    rows, problems = read(text, null=["NA", ""])
    assert problems == []
    assert [(row["s"], row["i"]) for row in rows] == [(None, None), ("NA", None), (None, None)]
    rows, problems = read("k,s,i\na,,\nb,NA,NA\n", null="NA")
    assert problems == []
    assert [(row["s"], row["i"]) for row in rows] == [("", None), (None, None)]


def test_columns_of_files_without_a_header() -> None:
    assert values("a,1\nb,2\n", "i", columns=["k", "i"]) == [1, 2]
    assert values("a;1\n", "i", columns={"A": ["k", "i"]}) == [1]
    assert values("name,number\na,1\n", "i", columns=["k", "i"], header=True) == [1]
    with pytest.raises(InputError, match="line 1: the first line 'a,1' does not contain any A column") as refused:
        read("a,1\n")
    assert "--csv-columns" in (refused.value.hint or "")
    with pytest.raises(UsageError, match="requires `columns`"):
        CsvOptions(header=False)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("k,nick", "node:A has no property 'nick'"),
        ("k,s,s", "column 's' appears twice"),
        ("k,", "column 2 has no name"),
        ("y;z", "'y;z' does not contain any A column"),
    ],
)
def test_bad_headers_are_rejected(header: str, words: str) -> None:
    with pytest.raises(InputError, match=f"x.csv: line 2: .*{words}"):
        read(f"\n{header}\na,b\n")


def test_edges_accept_both_names_of_their_endpoints() -> None:
    for names in ("from,to", "src,dst", "from,dst"):
        rows, problems = read(f"{names},w\na,b,1\n7,8,\n", "R")
        assert problems == []
        assert [(row["src"], row["dst"], row["w"]) for row in rows] == [("a", "b", 1.0), ("7", "8", None)]
    with pytest.raises(InputError, match="'from' and 'src' name the same endpoint"):
        read("from,src,to\na,a,b\n", "R")
    assert read("from\na\n", "R")[1] == ["line 2: 'to' must be a string, got nothing"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-be", "cp1252"])
def test_encodings(encoding: str) -> None:
    option = encoding if encoding in ("utf-16-be", "cp1252") else None
    encoded = "k,s\nä,€\n".encode(encoding)
    for piece_bytes in (1, 1 << 20):
        assert values(encoded, "s", encoding=option, piece_bytes=piece_bytes) == ["€"]
    assert values("k,s\nä,€\n".encode("utf-8-sig"), "s", encoding="cp1252") == ["€"], "a mark takes precedence"


def test_invalid_bytes_are_located() -> None:
    rows, problems = read(b"k,s\na,1\nb,\xe4\n")
    assert [row["k"] for row in rows] == ["a"]
    assert problems == ["line 3: byte 0xe4 in column 's' is not valid UTF-8"]
    with pytest.raises(InputError, match=r"cannot read .* as utf-16"):
        read(b"\xff\xfea\0b", "T")
    with pytest.raises(UsageError, match="unknown encoding"):
        CsvOptions(encoding="klingon")


@pytest.mark.parametrize(
    "options", [{"delimiter": ",,"}, {"quote": "ä"}, {"delimiter": '"', "quote": '"'}, {"columns": "a"}]
)
def test_invalid_options_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        CsvOptions(**options)


def test_carriage_returns_alone_end_lines() -> None:
    assert values("k,i\ra,1\rb,2\r", "i") == [1, 2]


def test_empty_files_have_no_records() -> None:
    for text in ("", "\n\r\n", "k,s\n", "k,s"):
        assert read(text) == ([], [])


def test_record_that_never_ends_is_refused_before_it_fills_the_memory() -> None:
    endless = b'k,s\na,1\nb,"' + b"x\n" * 200_000
    with pytest.raises(ResourceLimitExceeded, match="line 3: a record is longer than 1000 bytes"):
        read(endless, limits=LoadLimits(line_bytes=1000))


# the two ways of splitting records -------------------------------------------------------------


def texts() -> st.SearchStrategy[str]:
    """Texts with cells of all kinds, not all of them well-formed."""
    cell = st.sampled_from(
        ["a", "", '""', '"b"', '"c,d"', '"e\nf"', '"g""h"', 'i"j', '"k"l', "é", '"\r\n"', "m\r", '"', "NA", '"NA"']
    )
    record = st.lists(cell, min_size=3, max_size=3).map(",".join) | st.lists(cell, min_size=1, max_size=4).map(",".join)
    return st.lists(record, max_size=6).map(lambda records: "a,b,c\n" + "\n".join(records))


def outcome(text: str, piece_bytes: int, **options: Any) -> Any:
    try:
        rows, problems = read(text, "T", piece_bytes, **options)
    except OmnigraphError as error:
        return str(error)
    return [{**row, "id": ""} for row in rows], problems


@given(texts(), st.sampled_from([1, 3, 1 << 20]))
def test_arrow_splits_records_as_the_exact_splitter_does(text: str, piece_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "_BLOCK_BYTES", piece_bytes)
        quick = outcome(text, piece_bytes, null=["", "NA"])
        patch.setattr(csv_reader, "_split_with_arrow", lambda *_: None)
        assert quick == outcome(text, 1 << 20, null=["", "NA"])


CELLS = st.text("ab,;\t|\"'\n\r é", max_size=5)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=8), st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]))
def test_files_of_another_writer_are_read_back(rows: list[tuple[str, str, str]], delimiter: str, line_end: str) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator=line_end)
    lines = []
    for row in [("a", "b", "c"), *rows]:
        lines.append(file.getvalue().count("\n") + 1)
        writer.writerow(row)
    found, problems = read(file.getvalue(), "T", 7)
    assert problems == []
    assert [(row["line"], row["a"], row["b"], row["c"]) for row in found] == [
        (line, *row) for line, row in zip(lines[1:], rows, strict=True)
    ]


def test_comparison_catches_a_splitter_that_counts_quotes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'a,b,c\ni"j,a,a\n"e\nf",a,a\ni"j,a,a\n'
    exact = outcome(text, 1 << 20)
    assert len(exact[0]) == 3
    monkeypatch.setattr(csv_records, "_are_quotes_regular", lambda *_: True)
    assert outcome(text, 1 << 20) != exact


def test_regular_records_are_never_split_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Iterator[Any]:
        raise AssertionError

    monkeypatch.setattr(csv_reader, "_split_one_by_one", refuse)
    text = "k,s,i,at\n" + "".join(f'k{n},"a ""b"", {n}\n",{n},2024-01-01T00:00:00.{n:03}Z\n' for n in range(900))
    monkeypatch.setattr(csv_records, "_BLOCK_BYTES", 1000)
    assert values(text, "i", piece_bytes=100) == list(range(900))


def test_blocks_hold_complete_records() -> None:
    text = b"".join(b'k%d,"a\nb"\n' % n for n in range(100))
    pieces = (text[start : start + 10] for start in range(0, len(text), 10))
    blocks = list(cut_records(pieces, CsvDialect(",", '"'), LoadLimits(), block_bytes=50))
    assert len(blocks) >= 10
    assert max(len(block.text) for block in blocks) < 200
    assert [line for block in blocks for line in block.line_numbers.tolist()] == list(range(1, 201, 2))


CELL_TEXTS = [
    "", " ", "1", "-1", "+1", " 7 ", "1.0", "1.", ".5", "1.5", "1e3", "-0", "0x10", "1_000", "1,5", "nan", "inf",
    "1e400", "1e39", "2147483648", "-2147483649", "18446744073709551616", "9007199254740993", "16777217", "true",
    "False", "yes", "NO", "y", "2", "2024-02-29", "2023-02-29", "0000-01-01", "9999-12-31", "2024-01-01T00:00:00Z",
    "2024-01-01 10:00:00.5Z", "2024-01-01t00:00:00z", "2024-01-01T00:00:00", "2024-01-01T24:00:00Z",
    "2024-01-01T00:00:60Z", "2024-01-01T00:00:00.1239Z", "0000-12-31T23:00:00Z", "2024-01-01T00:00:00+02:00",
    "1969-12-31T23:59:59.999Z", "[1]", "[1, 2]", '["a"]', "[", "{}", "base64:aGk=", "base64:@", "x", "é",
]  # fmt: skip
PROPERTIES = [prop for prop in resolve_type(IR.catalog, "A").properties if prop.name != "k"]


def parsed(prop: PropertyDefinition, cells: list[str]) -> Any:
    faults: list[tuple[int, str]] = []
    column = parse_cells(
        prop, pa.array(cells, pa.string()), [""], "A", lambda at, error: faults.append((at, str(error))), LoadLimits()
    )
    return column.type, repr(column.to_pylist()), faults


def assert_parsed_alike(prop: PropertyDefinition, cells: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        quick = parsed(prop, cells)
        patch.setattr(text_cells, "_parse_plain_cells", lambda *_: None)
        assert quick == parsed(prop, cells)


@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_whole_columns_are_parsed_as_single_cells_are(prop: PropertyDefinition) -> None:
    for cell in CELL_TEXTS:
        assert_parsed_alike(prop, [cell])
        assert_parsed_alike(prop, ["", cell, "1"])


@pytest.mark.full
@given(st.sampled_from(PROPERTIES), st.lists(st.sampled_from(CELL_TEXTS) | st.text("0123456789.-+eTZ: ", max_size=24)))
def test_random_columns_are_parsed_as_single_cells_are(prop: PropertyDefinition, cells: list[str]) -> None:
    assert_parsed_alike(prop, cells)


def test_decimal_commas() -> None:
    assert values("k;d\na;1,5\nb;-2,5e1\nc;7\nd;\n", "d", decimal=",") == [1.5, -25.0, 7.0, None]
    assert values('k,i,s\na,"4,0","1,5"\n', "i", decimal=",") == [4]
    rows, problems = read("k;d;s\na;1.5;x,y\nb;1.234,5;1.5\nc;1,5;1.5\n", decimal=",")
    assert [(row["line"], row["d"], row["s"]) for row in rows] == [(4, 1.5, "1.5")]
    assert [problem.partition(": ")[2] for problem in problems] == [
        "property 'A.d' of 'a': expected F64? with the decimal separator ',', got string '1.5'",
        "property 'A.d' of 'b': expected F64? with the decimal separator ',', got string '1.234,5'",
    ]
    assert read("k;i\na;12.0\n", decimal=",")[1][0].endswith(
        "property 'A.i' of 'a': expected I32? with the decimal separator ',', got string '12.0'"
    )
    with pytest.raises(UsageError, match=r"`decimal` must be '\.' or ','"):
        CsvOptions(decimal=";")


def hints(text: str, type_name: str = "A", **options: Any) -> list[str | None]:
    """Return the hints of a text's problems."""
    intake = Intake(IR, ProblemCollector(), LoadLimits())
    source = CsvSource(CsvOptions(**options), {}, "x.csv")
    list(read_csv(intake, resolve_type(IR.catalog, type_name), iter([text.encode()]), source))
    intake.flush()
    return [problem.error.hint for problem in intake.problems.in_input_order() if problem.error is not None]


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("d", '"1,5"', "--csv-decimal , or CsvOptions(decimal=',')"),
        ("f", '"-0,25"', "--csv-decimal ,"),
        ("d", "NA", "if 'NA' means null, pass --csv-null NA or CsvOptions(null='NA')"),
        ("i", "-", "if '-' means null, pass --csv-null -"),
        ("on", "NULL", "if 'NULL' means null"),
    ],
)
def test_hint_names_the_option_for_a_cell_that_does_not_fit(column: str, cell: str, words: str) -> None:
    (hint,) = hints(f"k,{column}\na,{cell}\n")
    assert words in (hint or "")


def test_cells_that_no_option_makes_valid_have_no_hint() -> None:
    (hint,) = hints("k,d\na,x\n")
    assert "--csv" not in (hint or "")


def test_hint_for_an_unknown_column_names_the_columns_and_the_mapping() -> None:
    with pytest.raises(InputError, match="has no property 'full name'") as refused:
        read("k,full name\na,b\n")
    assert "--mapping" in (refused.value.hint or "")
    with pytest.raises(InputError, match="does not contain any A column") as refused:
        read("k:s\na:b\n")
    assert "--csv-delimiter" in (refused.value.hint or "")


def test_hint_for_a_missing_column_names_the_mode_patch() -> None:
    assert "use mode 'patch'" in (hints("k,s\na,b\n", "Q")[0] or "")
    assert "use mode 'patch'" not in (hints("must,s\ntrue,b\n", "Q")[0] or "")
