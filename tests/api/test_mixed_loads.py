"""Loads that combine files of several formats and types, tables and records, as one commit."""

import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph import CsvOptions, Graph, LoadReport, Receipt
from omnigraph.errors import InputError, PropertyValueError, UsageError


def names(graph: Graph) -> list[str]:
    return sorted(graph.refresh().nodes("Person").ids())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of all formats."""
    (tmp_path / "p.csv").write_text("name;age\neve;1\nfay;\n")
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(b"name,age\ngil,2\n"))
    (tmp_path / "typed.ndjson").write_text('{"name": "hal", "age": 3}\n')
    (tmp_path / "rest.ndjson").write_text('{"type": "Person", "data": {"name": "ivy"}}\n')
    (tmp_path / "Knows.tsv").write_text("from\tto\tsince\neve\tivy\t2020-01-01\n")
    pq.write_table(pa.table({"name": ["jan"], "age": [4]}), tmp_path / "p.parquet")
    return tmp_path


def test_all_formats_are_loaded_as_one_commit(graph: Graph, folder: Path) -> None:
    before = len(list(graph.log()))
    data: list[Any] = [
        {"Person": [folder / "p.csv", folder / "p.csv.gz", folder / "p.parquet"]},
        folder / "rest.ndjson",
        str(folder / "Knows.tsv"),
        {"Person": folder / "typed.ndjson", "Firm": [{"name": "mixed", "size": 1}]},
    ]
    done = graph.load(data, mode="append")
    assert isinstance(done, Receipt)
    assert (done.nodes, done.edges) == ({"Firm": 1, "Person": 6}, {"Knows": 1})
    assert len(list(graph.log())) == before + 1
    assert {"eve", "fay", "gil", "hal", "ivy", "jan"} <= set(names(graph))
    assert graph.edges("Knows").where(src="eve").select("to").result().scalars("to") == ["ivy"]


def test_mapping_may_hold_files_tables_and_open_files(graph: Graph, folder: Path) -> None:
    with (folder / "p.csv").open("rb") as file:
        data = {"Person": file, "Knows": pa.table({"src": ["eve"], "dst": ["ann"]}), "Firm": b"name,size\nx,5\n"}
        done = graph.load(data, mode="append", format="csv")
        assert not file.closed
    assert isinstance(done, Receipt)
    assert (done.nodes, done.edges) == ({"Firm": 1, "Person": 2}, {"Knows": 1})
    text = io.StringIO('{"name": "kim"}\n')
    assert graph.load({"Person": text}, mode="append")
    assert "kim" in names(graph)


def test_one_bad_part_prevents_the_whole_load(graph: Graph, folder: Path) -> None:
    (folder / "bad.ndjson").write_text('{"name": "leo"}\n{"name": "max", "age": "x"}\n')
    before, head = names(graph), graph.head.id
    data = [{"Person": [folder / "p.csv", folder / "bad.ndjson"]}, folder / "rest.ndjson"]
    with pytest.raises(PropertyValueError, match=r"bad\.ndjson: line 2: property 'Person\.age'") as refused:
        graph.load(data, mode="append")
    assert refused.value.details["file"] == str(folder / "bad.ndjson")
    assert (refused.value.details["line"], refused.value.details["property"]) == (2, "age")
    report = graph.load(data, mode="append", on_error="report")
    assert isinstance(report, LoadReport)
    assert [(row.line, row.type, row.property) for row in report] == [(2, "Person", "age")]
    assert (names(graph), graph.head.id) == (before, head)


def test_problem_in_memory_has_no_file(graph: Graph, folder: Path) -> None:
    data = [{"Firm": [{"name": "a"}, {"name": "b", "size": "x"}]}, folder / "rest.ndjson"]
    report = graph.load(data, mode="append", on_error="report")
    assert isinstance(report, LoadReport)
    assert [(problem.file, problem.line) for problem in report.problems] == [(None, 2)]


def test_records_with_an_envelope_do_not_fit_a_typed_file(graph: Graph, folder: Path) -> None:
    with pytest.raises(InputError, match="the file was passed as Person, but the record specifies its own type"):
        graph.load({"Person": folder / "rest.ndjson"}, mode="append")


def test_mapping_renames_members_of_typed_records(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "k.ndjson").write_text('{"who": "ann", "whom": "cyd"}\n')
    graph.load({"Knows": tmp_path / "k.ndjson"}, mode="append", mapping={"Knows": {"who": "from", "whom": "dst"}})
    assert graph.edges("Knows").filter("src = 'ann' and dst = $d", d="cyd").count() == 1


def test_renamed_column_is_named_by_the_error(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("name,years\nzoe,old\n")
    with pytest.raises(PropertyValueError, match=r"line 2: property 'Person\.age' of 'zoe': .*'old'") as refused:
        graph.load({"Person": tmp_path / "p.csv"}, mode="append", mapping={"Person": {"years": "age"}})
    assert refused.value.hint == "the value is in file column 'years'"


def test_list_of_records_is_not_a_list_of_files(graph: Graph) -> None:
    graph.load(
        [{"type": "Person", "data": {"name": "nina"}}, {"edge": "Knows", "src": "nina", "dst": "ann"}], mode="append"
    )
    assert "nina" in names(graph)
    with pytest.raises(InputError, match="'to' and 'dst' name the same endpoint"):
        graph.insert("Knows", {"from": "ann", "to": "bob", "dst": "bob"})
    with pytest.raises(InputError, match="'from' and 'src' name the same endpoint"):
        graph.load([{"edge": "Knows", "from": "ann", "src": "ann", "to": "bob"}], mode="append")


def test_overwrite_of_typed_files_replaces_these_types_only(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "k.csv").write_text("src,dst\nann,dee\n")
    graph.load({"Knows": tmp_path / "k.csv"}, mode="overwrite")
    assert graph.refresh().edges("Knows").count() == 1
    assert len(names(graph)) == 4


def test_csv_options_are_checked(graph: Graph, folder: Path) -> None:
    (folder / "odd.csv").write_text("oto^5\n")
    graph.load({"Person": folder / "odd.csv"}, mode="append", csv=CsvOptions(delimiter="^", columns=["name", "age"]))
    assert graph["Person", "oto"].age == 5
    with pytest.raises(UsageError, match="`csv` must be a CsvOptions object, not dict"):
        graph.load({"Person": folder / "p.csv"}, mode="append", csv={"delimiter": ";"})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"p\.csv: line 1: .*'name;age'.*") as refused:
        graph.load({"Person": folder / "p.csv"}, mode="append", csv=CsvOptions(delimiter=","))
    assert "the delimiter appears to be ';'" in (refused.value.hint or "")


def test_unmatched_pattern_is_named_as_a_pattern(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no files match the pattern"):
        graph.load(str(tmp_path / "no*.ndjson"), mode="append")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_schema_file_may_begin_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    import omnigraph

    (tmp_path / "s.pg").write_bytes("node Ä { k: String @key }".replace("Ä", "A").encode(encoding))
    with omnigraph.init(tmp_path / "g", tmp_path / "s.pg", durability="os") as graph:
        assert graph.load('{"type": "A", "data": {"k": "ä"}}\n'.encode(encoding), mode="append")
        assert graph.nodes("A").ids() == ["ä"]
