"""Exports to Parquet, Arrow and CSV files, and exports of the entities that changed after a revision."""

import asyncio
import csv
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InputError
from tests.rig.graph_hosts import GraphHost
from tests.rig.plugin import S3

SCHEMA = """
node All {
    k: String @key  s: String?  b: Bool?  i: I32?  l: I64?  u: U32?  w: U64?  f: F32?  d: F64?  day: Date?
    at: DateTime?  v: Vector(2)?  blob: Blob?  many: [String]?  days: [Date]?  e: enum(x, y)?
}
node Bare { k: String @key }
edge To: All -> Bare { n: I32? }
edge Near: Bare -> Bare
"""
FULL = {
    "k": "full", "s": 'a,"b"\nc', "b": True, "i": -1, "l": 2**62, "u": 2**32 - 1, "w": 2**64 - 1, "f": 0.1, "d": 1e-300,
    "day": date(2024, 2, 29), "at": datetime(1969, 12, 31, 23, 59, 59, 999000, UTC), "v": [0.5, -1], "blob": b"\0\xff",
    "many": ["", "x,y"], "days": [date(1970, 1, 1)], "e": "y",
}  # fmt: skip
RECORDS = [FULL, {"k": "empty", "s": "", "many": [], "blob": b""}, {"k": "null"}]


@pytest.fixture
def graph(graphs: GraphHost) -> Graph:
    graph = graphs.init(SCHEMA)
    graph.insert("All", *RECORDS)
    graph.insert("Bare", {"k": "a"}, {"k": "b"})
    graph.insert("To", {"from": "full", "to": "a", "n": 1}, {"from": "null", "to": "b"})
    graph.insert("Near", {"from": "a", "to": "b"})
    return graph


def loaded_copy(graph: Graph, tmp_path: Path, suffix: str) -> list[bytes]:
    """Export each type to a file, load the files into a new graph, and return its export."""
    counts = {}
    for name in ("All", "Bare", "To", "Near"):
        counts[name] = graph.export(tmp_path / f"{name}{suffix}", types=[name])
    assert counts == {"All": 3, "Bare": 2, "To": 2, "Near": 1}
    copy = omnigraph.init(tmp_path / "copy", SCHEMA, durability="os")
    copy.load({name: str(tmp_path / f"{name}{suffix}") for name in counts}, mode="append")
    return list(copy.export())


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
def test_exported_files_can_be_loaded(graph: Graph, tmp_path: Path, suffix: str) -> None:
    assert loaded_copy(graph, tmp_path, suffix) == list(graph.export())


def test_a_csv_file_spells_32_bit_floats_with_as_few_digits_as_identify_them(graph: Graph, tmp_path: Path) -> None:
    graph.export(tmp_path / "all.csv", types=["All"])
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = {row["k"]: row for row in csv.DictReader(file)}
    assert (rows["full"]["f"], rows["full"]["v"], rows["null"]["f"]) == ("0.1", "[0.5,-1.0]", "")


def test_an_arrow_file_has_the_columns_of_the_type(graph: Graph, tmp_path: Path) -> None:
    assert graph.export(tmp_path / "to.arrow", types=["To"]) == 2
    with pa.OSFile(str(tmp_path / "to.arrow")) as file:
        table = pa.ipc.open_file(file).read_all()
    assert table.column_names == ["id", "from", "to", "n"]
    assert sorted(table.drop_columns("id").to_pylist(), key=str) == [
        {"from": "full", "to": "a", "n": 1},
        {"from": "null", "to": "b", "n": None},
    ]
    copy = omnigraph.init(tmp_path / "copy", SCHEMA, durability="os")
    copy.load({"All": RECORDS, "Bare": [{"k": "a"}, {"k": "b"}], "To": table}, mode="append")
    assert list(copy.export(types=["To"])) == list(graph.export(types=["To"]))


def test_the_format_takes_precedence_over_the_suffix(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "bare.parquet"
    assert graph.export(path, types=["Bare"], format="csv") == 2
    assert path.read_text() == "id,k\na,a\nb,b\n"
    assert graph.export(path, format="ndjson") == 8
    assert [json.loads(line) for line in path.read_bytes().splitlines()][3] == {
        "type": "Bare",
        "data": {"id": "a", "k": "a"},
    }
    assert graph.export(tmp_path / "bare", types=["Bare"], format="parquet") == 2
    assert pq.read_table(tmp_path / "bare")["k"].to_pylist() == ["a", "b"]
    assert graph.export(tmp_path / "all.json") == 8


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.parquet", {}, "a parquet file can contain only one type, but 4 are selected: All, Bare, Near, …"),
        ("a.csv", {"types": ["All", "Bare"]}, "a csv file can contain only one type, but 2 are selected: All, Bare"),
        ("a.parquet", {"types": ["Nope"]}, "unknown type 'Nope'"),
        ("a.tsv", {"types": ["Bare"]}, ".tsv files are not supported"),
        ("a.parquet.gz", {"types": ["Bare"]}, "parquet files are already compressed; omit the suffix .gz"),
        ("a", {"format": "xml"}, "unknown format 'xml'; expected one of ndjson, parquet, arrow, csv"),
        (None, {"types": ["Bare"], "format": "parquet"}, "an export as parquet requires a path"),
        ("nowhere/a.parquet", {"types": ["Bare"]}, "cannot write"),
    ],
)
def test_impossible_exports_are_refused(
    graph: Graph, tmp_path: Path, name: str | None, options: dict[str, Any], message: str
) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError) as caught:
        graph.export(None if name is None else tmp_path / name, **options)
    assert message in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before, "no file appears"


def test_a_type_without_entities_has_its_columns(graph: Graph, tmp_path: Path) -> None:
    graph.delete("Near", where="from = 'a'")
    assert graph.export(tmp_path / "near.parquet", types=["Near"]) == 0
    assert pq.read_table(tmp_path / "near.parquet").column_names == ["id", "from", "to"]
    assert graph.export(tmp_path / "near.csv", types=["Near"]) == 0
    assert (tmp_path / "near.csv").read_text() == "id,from,to\n"


def test_since_exports_added_and_changed_entities(graph: Graph, tmp_path: Path) -> None:
    copy = omnigraph.init(tmp_path / "copy", SCHEMA, durability="os")
    copy.load(b"".join(graph.export()), mode="append")
    old = graph.head.id
    assert list(graph.export(since=old)) == []
    graph.update("All", where="k = 'null'", set={"i": 7})
    graph.insert("Bare", {"k": "c"})
    graph.insert("Near", {"from": "b", "to": "c"})
    graph.insert("Bare", {"k": "gone"})
    graph.delete("Bare", where="k = 'gone'")
    graph.delete("To", where="from = 'full'")
    lines = list(graph.export(since=old))
    records = [json.loads(line) for line in lines]
    assert [record["data"].get("k") for record in records] == ["null", "c", None]
    assert records[0]["data"]["i"] == 7
    assert list(graph.export(since="HEAD~6")) == lines
    assert list(graph.export(since=old, types=["Bare"])) == lines[1:2]
    assert list(graph.export(since=old, at="HEAD~5")) == lines[:1]
    assert graph.export(tmp_path / "changed.parquet", since=old, types=["Bare"]) == 1
    assert pq.read_table(tmp_path / "changed.parquet")["k"].to_pylist() == ["c"]
    copy.load(b"".join(lines), mode="merge")
    deleted_edge = {line for line in copy.export() if line not in set(graph.export())}
    assert [json.loads(line)["from"] for line in deleted_edge] == ["full"], "deletions are not part of the export"
    assert set(graph.export()) <= set(copy.export())
    with pytest.raises(InputError, match="unknown revision 'nowhere'"):
        graph.export(since="nowhere")


def test_asynchronous_exports_have_the_same_options(graph: Graph, tmp_path: Path) -> None:
    async def run() -> tuple[int, list[bytes]]:
        shared = omnigraph.AsyncGraph(graph)
        count = await shared.export(tmp_path / "bare.parquet", types=["Bare"])
        return count, [line async for line in shared.export(since="HEAD^")]

    count, lines = asyncio.run(run())
    assert (count, len(lines)) == (2, 1)
    assert pq.read_table(tmp_path / "bare.parquet").num_rows == 2


def test_a_parquet_object_on_s3(graph: Graph, s3: S3, tmp_path: Path) -> None:
    target = f"{s3.url}/out/all.parquet"
    assert graph.export(target, types=["All"]) == 3
    copy = omnigraph.init(tmp_path / "copy", SCHEMA, durability="os")
    copy.load({"All": target}, mode="append")
    assert list(copy.export(types=["All"])) == list(graph.export(types=["All"]))
