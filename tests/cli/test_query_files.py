"""`query --out`, and output paths that are not regular files."""

import csv
import json
import os
import stat
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import omnigraph as package
from tests.cli.conftest import Program

QUERY = ("query", "g", "-e", "match { $p: Person } return { $p.name, $p.age } order { $p.name }")
ROWS = [{"p.name": "ada", "p.age": 36}, {"p.name": "bob", "p.age": None}]


@pytest.fixture(autouse=True)
def graph(omnigraph: Program) -> package.Graph:
    made = package.init("g", "node Person { name: String @key  age: I32?  photo: Blob? }")
    made.insert("Person", {"name": "ada", "age": 36, "photo": b"picture"}, {"name": "bob"})
    return made


def test_suffix_decides_the_format(omnigraph: Program) -> None:
    for suffix in ("arrow", "feather", "parquet", "csv", "ndjson", "jsonl", "json", "csv.gz"):
        ended = omnigraph(*QUERY, "--out", f"r.{suffix}")
        assert (ended.code, ended.out, ended.err) == (0, "", f"wrote 2 rows to r.{suffix}\n")
    assert pa.ipc.open_file("r.arrow").read_all().to_pylist() == ROWS
    assert pa.ipc.open_file("r.feather").read_all().to_pylist() == ROWS
    assert pyarrow.parquet.read_table("r.parquet").to_pylist() == ROWS
    assert [row["p.name"] for row in csv.DictReader(Path("r.csv").read_text().splitlines())] == ["ada", "bob"]
    assert [json.loads(line) for line in Path("r.ndjson").read_text().splitlines()] == ROWS
    assert Path("r.jsonl").read_bytes() == Path("r.ndjson").read_bytes()
    assert json.loads(Path("r.json").read_text())["row_count"] == 2
    assert pa.input_stream("r.csv.gz").read() == Path("r.csv").read_bytes()
    assert not list(Path().glob(".r.*"))


def test_format_option_overrides_the_suffix(omnigraph: Program) -> None:
    told = omnigraph(*QUERY, "--out", "data", "--format", "parquet", "--json")
    assert json.loads(told.out) == {
        "path": "data", "format": "parquet", "row_count": 2, "graph_commit_id": package.open("g").head.id,
    }  # fmt: skip
    assert pyarrow.parquet.read_table("data").num_rows == 2
    assert omnigraph("--quiet", *QUERY, "--out", "r.csv").err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--out", "data"), 2, "cannot determine the format of data"),
        (("--out", "r.parquet.gz"), 1, "omit the suffix .gz"),
        (("--out", "nowhere/r.csv"), 1, "cannot write nowhere/r.csv"),
        (("--out", "g", "--format", "parquet"), 1, "cannot write g"),
    ],
)
def test_wrong_files_are_refused(omnigraph: Program, arguments: tuple[str, ...], code: int, message: str) -> None:
    ended = omnigraph(*QUERY, *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err


COMMANDS = [
    (*QUERY, "--format", "parquet"),
    (*QUERY, "--format", "csv"),
    ("export", "g"),
    ("changes", "baseline", "g"),
    ("blob", "get", "g", "Person", "ada", "photo"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_symlink_is_written_through(omnigraph: Program, command: tuple[str, ...]) -> None:
    Path("real").write_text("old")
    Path("link").symlink_to("real")
    ended = omnigraph(*command, "--out", "link")
    assert ended.code == 0, ended.err
    assert Path("link").is_symlink()
    assert Path("real").read_bytes() not in (b"", b"old")
    Path("dangling").symlink_to("new")
    assert omnigraph(*command, "--out", "dangling").code == 0
    assert Path("dangling").is_symlink()
    assert Path("new").is_file()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_pipe_and_device_are_never_replaced(omnigraph: Program, command: tuple[str, ...]) -> None:
    os.mkfifo("pipe")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(Path("pipe").read_bytes()))
    reader.start()
    ended = omnigraph(*command, "--out", "pipe")
    if ended.code != 0:  # refused, so nothing was sent
        os.close(os.open("pipe", os.O_WRONLY))
    reader.join(30)
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
    assert ended.code != 0 or received[0]
    assert omnigraph(*command, "--out", "/dev/null").code in (0, 1)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_formatter_does_not_replace_a_pipe(omnigraph: Program) -> None:
    os.mkfifo("a.pg")
    writer = threading.Thread(target=lambda: Path("a.pg").write_text("node  A {}\n"))
    writer.start()
    ended = omnigraph("fmt", "a.pg")
    writer.join(30)
    assert (ended.code, "it is not a regular file" in ended.err) == (1, True)
    assert stat.S_ISFIFO(Path("a.pg").stat().st_mode)


def test_redirected_descriptor_is_not_truncated(omnigraph: Program) -> None:
    with Path("log").open("wb") as redirected:
        redirected.write(b"before\n")
        redirected.flush()
        assert omnigraph("export", "g", "--out", f"/dev/fd/{redirected.fileno()}").code == 0
    lines = Path("log").read_bytes().splitlines()
    assert lines[0] == b"before"
    assert len(lines) == 3


@pytest.mark.parametrize("marker", ["null", "", "NA"])
def test_csv_keeps_null_empty_and_marker_texts_apart(omnigraph: Program, marker: str) -> None:
    schema = "node Note { k: String @key  s: String? }"
    texts = ["null", None, "", "NA", ' "x" ', "a\r\nb", "'", "\\N"]
    stored = [{"k": str(number), "s": text} for number, text in enumerate(texts)]
    package.init("from.omni", schema).insert("Note", *stored)
    query = "match { $n: Note } return { $n.k as k, $n.s as s } order { $n.k }"
    assert omnigraph("query", "from.omni", "-e", query, "--csv-null", marker, "--out", "notes.csv").code == 0
    printed = omnigraph("query", "from.omni", "-e", query, "--csv-null", marker, "--format", "csv")
    assert printed.out == Path("notes.csv").read_bytes().decode()
    package.init("to.omni", schema)
    loaded = omnigraph("load", "to.omni", "--data", "Note=notes.csv", "--mode", "append", "--csv-null", marker)
    assert loaded.code == 0, loaded.err
    assert package.open("to.omni").query(query).to_dicts() == stored
