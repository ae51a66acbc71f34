"""`Schema.infer`: proposals from tables, records and files, which the same data can be loaded with."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph import Schema, testing
from omnigraph.errors import InputError, ResourceLimitExceeded


def types_of(data: Any, type_name: str = "T", **options: Any) -> dict[str, str]:
    """The properties of an inferred type, with `@key` where it is."""
    schema = Schema.infer(data, **options)
    return {
        declared.name: str(declared).partition(": ")[2] + (" @key" if "key" in declared.annotations else "")
        for declared in schema[type_name].properties.values()
    }


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_arrow_types() -> None:
    table = pa.table(
        {
            "small": pa.array([1, 2], pa.int8()),
            "big": pa.array([1, None], pa.int64()),
            "unsigned": pa.array([1, 2], pa.uint64()),
            "half": pa.array([1.0, 2.0], pa.float32()),
            "double": [1.5, 1.5],
            "yes": [True, False],
            "day": [date(2020, 1, 1)] * 2,
            "instant": [datetime(2020, 1, 1, tzinfo=UTC)] * 2,
            "naive": [datetime(2020, 1, 1)] * 2,
            "money": [Decimal("1.50")] * 2,
            "raw": [b"x", None],
            "words": [["a"], []],
            "vector": pa.array([[1.0, 2.0]] * 2, pa.list_(pa.float32(), 2)),
            "long_list": [[0.5] * 8] * 2,
            "nothing": pa.nulls(2),
            "color": pa.array(["red", "red"]).dictionary_encode(),
        }
    )
    assert types_of({"T": table}) == {
        "small": "I32 @key",
        "big": "I64?",
        "unsigned": "U64",
        "half": "F32",
        "double": "F64",
        "yes": "Bool",
        "day": "Date",
        "instant": "DateTime",
        "naive": "DateTime",
        "money": "F64",
        "raw": "Blob?",
        "words": "[String]",
        "vector": "Vector(2)",
        "long_list": "Vector(8)",
        "nothing": "String?",
        "color": "String",
    }
    source = Schema.infer({"T": table}).source
    remarks = ("without a time zone", "may lose digits", "assumed to be vectors", "no values: the type is a guess")
    for remark in remarks:
        assert remark in source


def test_frames_are_read_through_their_arrow_interface() -> None:
    class Frame:
        """What a pandas or polars frame has."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"name": ["a", "b"], "n": [1, None]}).__arrow_c_stream__(requested_schema)

    assert types_of({"T": Frame()}) == {"name": "String @key", "n": "I64?"}


def test_text_of_a_csv_file_is_typed_only_if_every_cell_fits(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv",
        "whole;real;flag;day;instant;zip;mixed;quoted;empty;huge\n"
        '1;1.5;true;2020-02-29;2020-01-01T10:00:00Z;01234;1;"a; b";;18446744073709551615\n'
        '-2;2;False;2020-01-01;2020-01-01T10:00:00+02:00;99999;x;"";;1\n',
    )
    assert types_of({"T": path}) == {
        "whole": "I64",
        "real": "F64",
        "flag": "Bool",
        "day": "Date",
        "instant": "DateTime",
        "zip": "String @key",
        "mixed": "String",
        "quoted": "String",
        "empty": "String?",
        "huge": "U64",
    }


def test_json_text_is_a_date_but_never_a_number(tmp_path: Path) -> None:
    records = [
        {
            "day": "2020-01-01",
            "number": "1",
            "at": "2020-01-01T00:00:00Z",
            "tags": ["a"],
            "deep": {"x": 1},
            "either": 1,
        },
        {"day": "2020-01-01", "number": "1", "tags": [], "either": "x"},
    ]
    path = write(tmp_path / "t.ndjson", "\n".join(map(json.dumps, records)))
    for data in ({"T": records}, {"T": path}):
        assert types_of(data) == {
            "day": "Date",
            "number": "String",
            "at": "DateTime?",
            "tags": "[String]",
            "either": "String @key",
        }
        source = Schema.infer(data).source
        assert "mixed value types" in source
        assert 'the column "deep" is omitted' in source


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ({"age": [3, 4], "name": ["a", "b"]}, "name"),
        ({"title": ["a", "b"], "t_id": [1, 2]}, "t_id"),
        ({"name": ["a", "b"], "code": ["x", "y"]}, "code"),
        ({"number": [1, 2], "text": ["a", "a"]}, "number"),
        ({"text": ["a", "a"], "number": [1, 2]}, None),
        ({"name": ["a", None]}, None),
        ({"score": [1.5, 2.5]}, None),
        ({"anything": ["once"]}, None),
        ({"name": ["once"]}, "name"),
        ({"name": []}, None),
    ],
)
def test_the_key_is_the_unique_column_that_looks_like_one(columns: dict[str, list[Any]], key: str | None) -> None:
    assert Schema.infer({"T": pa.table(columns)})["T"].key == (() if key is None else (key,))


def test_a_text_column_named_id_is_the_id_of_the_nodes() -> None:
    data = {"T": pa.table({"id": ["x", "y"], "n": [1, 1]}), "E": pa.table({"from": ["x"], "to": ["y"]})}
    schema = Schema.infer(data)
    assert (list(schema["T"].properties), schema["T"].key) == (["n"], ())
    with testing.graph(schema, data) as graph:
        assert graph.edges("E").select("from", "to").to_records() == [("x", "y")]
    assert list(Schema.infer({"Order": pa.table({"id": [1, 2]})})["Order"].properties) == ["order_id"]


def test_endpoints_are_the_types_whose_keys_they_contain() -> None:
    data = {
        "Person": [{"name": name} for name in ("ada", "bob")],
        "City": [{"name": name} for name in ("oslo", "rome")],
        "LivesIn": [{"from": "ada", "to": "oslo", "since": "2020-01-01"}, {"from": "bob", "to": "ghost"}],
        "Knows": pa.table({"src": ["ada", "ada"], "dst": ["bob", "bob"]}),
        "Note": [{"from": "nobody", "to": "nowhere"}],
    }
    schema = Schema.infer(data)
    ends = {edge.name: (edge.source_type, edge.target_type, edge.key) for edge in schema.edges.values()}
    assert ends == {"LivesIn": ("Person", "City", ("dst", "src")), "Knows": ("Person", "Person", ())}
    assert "to: 1 of 2 values are City keys" in schema.source
    assert list(schema["Note"].properties) == ["from", "to"]


def test_names_are_made_valid_and_mapped() -> None:
    data = {"T": pa.table({"First Name": ["a"], "first_name": ["b"], "2nd": [1], "ÄÖ": [1]})}
    schema = Schema.infer(data)
    assert list(schema["T"].properties) == ["first_name", "first_name_2", "_2nd", "column"]
    assert 'map the column "First Name" to this property' in schema.source


def test_only_the_first_rows_are_read(tmp_path: Path) -> None:
    rows = [{"n": number % 3, "late": None if number < 5 else "x"} for number in range(10)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    csv_text = "n,late\n" + "".join(f"{row['n']},{row['late'] or ''}\n" for row in rows)
    for data in (rows, pa.Table.from_pylist(rows), tmp_path / "a.parquet", write(tmp_path / "a.csv", csv_text)):
        schema = Schema.infer({"T": data}, sample_rows=3)
        assert "based only on the first 3 rows" in schema.source
        assert schema["T"].key == ("n",)
        assert Schema.infer({"T": data})["T"].key == ()


def test_files_name_their_types(tmp_path: Path) -> None:
    write(tmp_path / "order-items.csv", "code,n\na,1\nb,1\n")
    envelopes = [
        {"type": "Person", "data": {"name": "ada"}},
        {"type": "Person", "data": {"name": "bob", "age": 3}},
        {"edge": "Knows", "from": "ada", "to": "bob", "data": {"since": "2020-01-01"}},
    ]
    write(tmp_path / "export.ndjson", "\n".join(map(json.dumps, envelopes)))
    write(tmp_path / "plain.jsonl", '{"a": 1}\n')
    schema = Schema.infer(tmp_path)
    assert (sorted(schema.types), list(schema.edges)) == (["OrderItems", "Person", "Plain"], ["Knows"])
    with testing.graph(schema) as graph:
        graph.load(tmp_path / "export.ndjson", mode="append")
        assert graph.nodes("Person").count() == 2


def test_several_files_of_a_type_are_joined(tmp_path: Path) -> None:
    (tmp_path / "T").mkdir()
    write(tmp_path / "T" / "part-1.csv", "name,a\nx,1\n")
    write(tmp_path / "T" / "part-2.csv", "name,b\ny,2\n")
    assert types_of({"T": tmp_path / "T"}) == {"name": "String @key", "a": "I64?", "b": "I64?"}


def test_the_same_data_can_be_loaded(tmp_path: Path) -> None:
    write(tmp_path / "Person.csv", "name,born,vip,score,zip\nada,1815-12-10,true,1.5,0123\nbob,,false,2,9999\n")
    pq.write_table(pa.table({"from": ["ada"], "to": ["bob"], "w": [1.5]}), tmp_path / "Knows.parquet")
    data = {"Person": tmp_path / "Person.csv", "Knows": tmp_path / "Knows.parquet"}
    with testing.graph(Schema.infer(data)) as graph:
        graph.load(data, mode="append")
        assert (graph.nodes("Person").count(), graph.edges("Knows").count()) == (2, 1)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "a,b\n1\n", "expected 2 cells, got 1"),
        ("t.csv", "a,a\n1,2\n", "name every column exactly once"),
        ("t.ndjson", "{oops\n", "line 1"),
        ("t.ndjson", "[1]\n[2]\n", "expected a JSON object"),
        ("t.parquet", "no parquet", "cannot read"),
        ("t.txt", "x", "unknown format"),
    ],
)
def test_a_malformed_file_is_an_input_error(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Schema.infer({"T": write(tmp_path / name, text)})


@pytest.mark.parametrize("data", [pa.table({"a": [1]}), [{"a": 1}], 7])
def test_data_without_type_names_is_refused(data: Any) -> None:
    with pytest.raises(InputError):
        Schema.infer(data)


def test_long_line_names_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "docs.ndjson", json.dumps({"type": "Doc", "data": {"note": "x" * 3000}}))
    assert "Doc" in Schema.infer(file)
    monkeypatch.setenv("OMNIGRAPH_MAX_ROW_BYTES", "2000")
    with pytest.raises(ResourceLimitExceeded) as caught:
        Schema.infer(file)
    assert (caught.value.actual, caught.value.limit) == (2001, 2000)
    assert caught.value.hint == "set OMNIGRAPH_MAX_ROW_BYTES"
