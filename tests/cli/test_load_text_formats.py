"""Text files as people have them, loaded with the command line: CSV dialects, byte order marks, mixed formats."""

import json
from pathlib import Path

import pytest

import omnigraph as library
from tests.cli.conftest import Program

SCHEMA = """
node Person { name: String @key  age: I32?  note: String? }
edge Knows: Person -> Person { since: Date? }
"""


@pytest.fixture
def graph(omnigraph: Program) -> str:
    """An empty graph `g`."""
    library.init("g", SCHEMA, durability="os").close()
    return "g"


def people() -> list[tuple[object, ...]]:
    with library.open("g") as graph:
        result = graph.query("match { $p: Person } return { $p.name, $p.age, $p.note } order { $p.name }")
        return [tuple(row.values()) for row in result.to_dicts()]


def ties() -> list[tuple[object, ...]]:
    with library.open("g") as graph:
        return sorted((row["from"], row["to"]) for row in graph.edges("Knows").select("from", "to").to_dicts())


def test_csv_error_names_the_line_of_the_bad_value_only(omnigraph: Program, graph: str) -> None:
    Path("p.csv").write_text('name,age,note\nann,1,"two\nlines"\nbob,x,\ncyd,3,\n')
    ended = omnigraph("load", "g", "--data", "Person=p.csv", "--mode", "append")
    assert ended.code == 1
    assert "p.csv: line 4: property 'Person.age' of 'bob': expected I32, got string 'x'" in ended.err
    assert ended.err.count("expected I32") == 1
    assert people() == []


def test_delimiter_is_detected(omnigraph: Program, graph: str) -> None:
    for number, delimiter in enumerate(";\t|,"):
        Path("p.csv").write_text(f"name{delimiter}age\np{number}{delimiter}{number}\n")
        ended = omnigraph("load", "g", "--data", "Person=p.csv", "--mode", "append")
        assert ended.code == 0, ended.err
    assert people() == [(f"p{number}", number, None) for number in range(4)]


def test_wrong_delimiter_gets_a_hint(omnigraph: Program, graph: str) -> None:
    Path("p.csv").write_text("name;age\nann;1\n")
    ended = omnigraph("load", "g", "--data", "Person=p.csv", "--mode", "append", "--csv-delimiter", ",")
    assert ended.code == 1
    assert "p.csv: line 1: " in ended.err
    assert "';'" in ended.err
    assert "--csv-delimiter" in ended.err


def test_csv_options(omnigraph: Program, graph: str) -> None:
    Path("p.csv").write_bytes("'j\xfcrg'~7~NA\n'o''neill'~-~'NA'\n".encode("cp1252"))
    words = ["--csv-delimiter", "~", "--csv-quote", "'", "--csv-null", "NA", "--csv-null", "-"]
    words += ["--csv-columns", "name,age,note"]
    refused = omnigraph("load", "g", "--data", "Person=p.csv", "--mode", "append", *words)
    assert "line 1: byte 0xfc in column 'name' is not valid UTF-8" in refused.err
    assert "--csv-encoding" in refused.err
    words += ["--csv-encoding", "cp1252"]
    ended = omnigraph("load", "g", "--data", "Person=p.csv", "--mode", "append", *words)
    assert ended.code == 0, ended.err
    assert people() == [("jürg", 7, None), ("o'neill", None, "NA")]


def test_typed_and_untyped_files_of_all_formats_are_one_commit(omnigraph: Program, graph: str) -> None:
    Path("p.csv").write_text("name,age\nann,1\n")
    Path("rest.ndjson").write_text('{"type": "Person", "data": {"name": "cyd"}}\n')
    Path("more.ndjson").write_text('{"name": "bob", "age": 2}\n')
    Path("knows.ndjson").write_text('{"src": "ann", "dst": "bob"}\n{"from": "bob", "to": "cyd"}\n')
    data = ["Person=p.csv", "rest.ndjson", "Person=more.ndjson", "Knows=knows.ndjson"]
    words = [word for path in data for word in ("--data", path)]
    ended = omnigraph("load", "g", *words, "--mode", "append")
    assert (ended.code, ended.out) == (0, "loaded into main (mode: append): 3 Person, 2 Knows\n"), ended.err
    assert ties() == [("ann", "bob"), ("bob", "cyd")]
    with library.open("g") as opened:
        assert len(list(opened.log())) == 2


def test_mixed_load_is_all_or_nothing(omnigraph: Program, graph: str) -> None:
    Path("p.csv").write_text("name,age\nann,1\n")
    Path("rest.ndjson").write_text('{"type": "Person", "data": {"name": "cyd", "age": "x"}}\n')
    ended = omnigraph("load", "g", "--data", "Person=p.csv", "--data", "rest.ndjson", "--mode", "append")
    assert ended.code == 1
    assert "rest.ndjson: line 1: " in ended.err
    assert people() == []


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_accepted_in_every_file(omnigraph: Program, encoding: str) -> None:
    files = {
        "s.pg": SCHEMA,
        "q.gq": "query all() { match { $p: Person } return { $p.name } order { $p.name } }",
        "p.csv": "full;age\r\nä;1\r\n",
        "d.ndjson": '{"type": "Person", "data": {"name": "é"}}\n',
        "m.json": '{"Person": {"full": "name"}}',
    }
    for name, text in files.items():
        Path(name).write_bytes(text.encode(encoding))
    assert omnigraph("init", "--schema", "s.pg", "g").code == 0
    data = ("--data", "Person=p.csv", "--data", "d.ndjson", "--mapping", "m.json")
    ended = omnigraph("load", "g", *data, "--mode", "append")
    assert ended.code == 0, ended.err
    ended = omnigraph("query", "all", "--query", "q.gq", "--store", "g", "--format", "jsonl")
    assert '"ä"' in ended.out, ended.err
    assert '"é"' in ended.out


def test_standard_input_may_have_a_type(omnigraph: Program, graph: str) -> None:
    words = ("load", "g", "--data", "Person=-", "--format", "csv", "--mode", "append")
    ended = omnigraph(*words, stdin=b"name\tage\nann\t1\n")
    assert ended.code == 0, ended.err
    refused = omnigraph(*words, stdin=b"name\tage\nbob\tx\n")
    assert "line 2: property 'Person.age'" in refused.err
    assert people() == [("ann", 1, None)]


def test_patch_and_delete_report_what_they_did(omnigraph: Program, graph: str) -> None:
    Path("p.json").write_text('[{"name": "ann", "age": 1, "note": "x"}, {"name": "bob", "age": 2, "note": "y"}]')
    assert omnigraph("load", "g", "--data", "Person=p.json", "--mode", "append").code == 0
    Path("age.csv").write_text("name,age\nann,5\nbob,2\n")
    load = ("load", "g", "--data", "Person=age.csv", "--mode")
    checked = omnigraph(*load, "merge", "--dry-run")
    assert "would load into main (mode: merge): 2 Person\nthe merge would remove the values" in checked.out
    assert omnigraph(*load, "patch").out == "loaded into main (mode: patch): 2 Person\n"
    assert "all of these values were already stored, so nothing changed" in omnigraph(*load, "patch").out
    assert people() == [("ann", 5, "x"), ("bob", 2, "y")]
    merged = omnigraph(*load, "merge")
    assert merged.out.endswith("the merge removed the values of properties missing from the input: Person.note (2)\n")
    assert "hint: use --mode patch" in merged.err
    Path("gone.csv").write_text("name\nann\nzoe\n")
    gone = omnigraph("load", "g", "--data", "Person=gone.csv", "--mode", "delete", "--json")
    document = json.loads(gone.out)
    assert document["nodes"] == [{"name": "Person", "entities_deleted": 1}]
    assert document["missing"] == [{"name": "Person", "entities": 1}]
    again = omnigraph("load", "g", "--data", "Person=gone.csv", "--mode", "delete")
    assert again.out == "nothing to delete from main (mode: delete); not found: 2 Person\n"
    refused = omnigraph("load", "g", "--data", "Person=gone.csv", "--mode", "patch", "--rejects", "bad")
    assert (refused.code, refused.err.count("has the id")) == (1, 2)
    assert len(Path("bad/rejects.ndjson").read_text().splitlines()) == 2


def test_mapping_may_be_json_text(omnigraph: Program, graph: str) -> None:
    Path("p.csv").write_text("full;years\nann;1\n")
    words = ("load", "g", "--data", "Person=p.csv", "--mode", "append", "--mapping")
    ended = omnigraph(*words, '{"Person": {"full": "name", "years": "age"}}')
    assert ended.code == 0, ended.err
    assert people() == [("ann", 1, None)]
    refused = omnigraph(*words, '{"Person": "x"}')
    assert (refused.code, 'expected {"Type": {"column": "property"}}' in refused.err) == (1, True)
    assert "not valid JSON" in omnigraph(*words, "{oops").err
