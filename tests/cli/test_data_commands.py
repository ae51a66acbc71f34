"""Commands on data: query, mutate, load, export, explain, schema show."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as library
from tests.cli.conftest import Outcome, Program
from tests.rig.plugin import S3
from tests.rig.timeouts import PATIENCE

SCHEMA = """
node Person { name: String @key  age: I32?  tags: [String]? }
edge Knows: Person -> Person { since: Date? }
"""
DATA = """\
{"type": "Person", "data": {"name": "ann", "age": 30, "tags": ["x", "y"]}}
{"type": "Person", "data": {"name": "bob", "age": 25}}
{"edge": "Knows", "from": "ann", "to": "bob", "data": {"since": "2020-01-01"}}
"""
QUERIES = """
query older($min: I32) { match { $p: Person  $p.age > $min } return { $p.name, $p.age } }
query all() { match { $p: Person } return { $p.name } order { $p.name } }
query add($name: String) { insert Person { name: $name } }
"""
ALL = "match { $p: Person } return { $p.name } order { $p.name }"


@pytest.fixture
def graph(omnigraph: Program) -> str:
    """A graph of two people, `g`, beside its schema, data and queries."""
    for name, text in (("g.pg", SCHEMA), ("d.ndjson", DATA), ("q.gq", QUERIES)):
        Path(name).write_text(text)
    with library.init("g", SCHEMA, durability="os") as made:
        made.load("d.ndjson", mode="append")
    return "g"


def document(ended: Outcome) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def people(omnigraph: Program) -> list[str]:
    return [row["p.name"] for row in document(omnigraph("query", "-e", ALL, "--store", "g", "--json"))["rows"]]


# query -----------------------------------------------------------------------------------------


def test_query_from_a_file_prints_rows(omnigraph: Program, graph: str) -> None:
    ended = omnigraph("query", "older", "--query", "q.gq", "--params", '{"min": 26}', "--store", "g")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == ("1 row from branch main via older\np.name | p.age\n-------+------\nann    | 30\n")
    Path("p.json").write_text('{"min": 20}')
    both = omnigraph("query", "older", "--query", "q.gq", "--params-file", "p.json", "--store", "g")
    assert both.out.startswith("2 rows")


def test_query_prints_a_json_document(omnigraph: Program, graph: str) -> None:
    head = library.open("g").head.id
    told = document(omnigraph("query", "-e", ALL, "--store", "g", "--json"))
    assert told == {
        "query_name": "anonymous",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
        "columns": ["p.name"],
        "graph_commit_id": head,
        "rows": [{"p.name": "ann"}, {"p.name": "bob"}],
    }
    past = document(omnigraph("query", "-e", ALL, "--store", "g", "--json", "--snapshot", head))
    assert past["target"] == {"branch": None, "snapshot": head}
    assert document(omnigraph("query", "-e", ALL, "--store", "g", "--json", "--snapshot", "HEAD~1"))["rows"] == []


def test_groups_unions_and_matched_writes(omnigraph: Program, graph: str) -> None:
    counted = "match { $p: Person } return { count(*) as n } having { n > 1 }"
    union = "match { $p: Person } return { $p.age as n } union match { $p: Person  $p knows $q } return { $q.age as n }"
    assert document(omnigraph("query", "-e", counted, "--store", "g", "--json"))["rows"] == [{"n": 2}]
    rows = document(omnigraph("query", "-e", f"{union} order {{ n }}", "--store", "g", "--json"))["rows"]
    assert rows == [{"n": 25}, {"n": 30}]
    text = "match { $p: Person  $p knows $q } update $q set { age: $p.age }"
    ended = omnigraph("mutate", "-e", text, "--store", "g")
    assert (ended.code, ended.out) == (0, "changed main: 1 node, 0 edges\n")
    cypher = omnigraph("query", "-e", "MATCH (p:Person) RETURN p.name", "--store", "g")
    assert cypher.code == 1
    assert "this is Cypher; write `query name() { match { $p: Person } return { $p.name } }`" in cypher.err


FORMATS = {
    "table": ('2 rows from branch main via q\nn   | t\n----+----------\nann | ["x","y"]\nbob | null\n'),
    "kv": '2 rows from branch main via q\nrow 1\nn: ann\nt: ["x","y"]\n\nrow 2\nn: bob\nt: null\n',
    "csv": 'n,t\nann,"[""x"",""y""]"\nbob,null\n',
    "md": '| n | t |\n| --- | --- |\n| ann | ["x","y"] |\n| bob | null |\n',
}


@pytest.mark.parametrize("form", FORMATS)
def test_formats(omnigraph: Program, graph: str, form: str) -> None:
    text = "query q() { match { $p: Person } return { $p.name as n, $p.tags as t } order { n } }"
    ended = omnigraph("query", "-e", text, "--store", "g", "--format", form)
    assert (ended.code, ended.out) == (0, FORMATS[form])


def test_jsonl_output_starts_with_metadata(omnigraph: Program, graph: str) -> None:
    ended = omnigraph("query", "-e", ALL, "--store", "g", "--format", "jsonl")
    first, *rows = [json.loads(line) for line in ended.out.splitlines()]
    assert (first["kind"], first["row_count"], first["columns"]) == ("metadata", 2, ["p.name"])
    assert rows == [{"p.name": "ann"}, {"p.name": "bob"}]
    help_text = " ".join(omnigraph("query", "--help").out.split())
    assert "jsonl starts with a metadata line" in help_text
    empty = 'match { $p: Person { name: "zed" } } return { $p.name }'
    assert omnigraph("query", "-e", empty, "--store", "g", "--format", "kv").out.endswith("(no rows)\n")
    assert omnigraph("query", "-e", empty, "--store", "g", "--format", "csv", "--csv-null", "").out == "p.name\n"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("query --store g", 2, "no query specified"),
        ("query older --store g", 2, "to run a query that is stored on a server, use `omnigraph alias`"),
        ("query lint q.gq", 2, "use `omnigraph lint --schema FILE --query FILE`"),
        ("query check q.gq", 2, "use `omnigraph lint --schema FILE --query FILE`"),
        ("query lint --query q.gq", 2, "use `omnigraph lint --schema FILE --query FILE`"),
        ("query check --query q.gq --store g", 1, "no query named 'check'"),
        ("query -e '' --store g", 2, "-e is empty"),
        ("query -e x --query q.gq --store g", 2, "--query and -e"),
        ("query --query q.gq --store g", 2, "older, all, add"),
        ("query nope --query q.gq --store g", 1, "no query named 'nope'"),
        ("query --query gone.gq --store g", 1, "cannot read gone.gq"),
        ('query add --query q.gq --store g --params {"name":"x"}', 1, "changes the graph"),
        ("mutate all --query q.gq --store g", 1, "is a read query"),
        ("query older --query q.gq --store g", 1, "$min"),
        ("query older --query q.gq --store g --params 3", 1, "JSON object"),
        ("query older --query q.gq --store g --params {", 1, "not valid JSON"),
        ("query older --query q.gq --store g --params min=26", 1, """hint: use --params '{"min": 26}'"""),
        ("query older --query q.gq --store g --params min=x", 1, """hint: use --params '{"min": "x"}'"""),
        ('query older --query q.gq --store g --params {"min":NaN}', 1, "NaN"),
        ('query older --query q.gq --store g --params {"min":1,"min":2}', 1, "specified twice"),
        ("query older --query q.gq --store g --params {} --params-file p", 2, "--params-file"),
        ("query all --query q.gq", 2, "no graph specified"),
        ("query missing.omni --query q.gq", 1, "no graph at"),
        ("mutate missing.omni -e x", 1, "no graph at"),
        ("query all --query q.gq --store gone", 1, "no graph at"),
        ("query all --query q.gq --store g --branch b", 1, "b"),
        ("query all --query q.gq --store g --branch b --snapshot c", 2, "--snapshot"),
        ("query all --query q.gq --store g --snapshot nonsense", 1, "HEAD~3"),
        ("query all --query q.gq --store http://127.0.0.1:1/g", 1, "cannot reach the server"),
        ("query all --query q.gq --store g --as ada", 2, "--as"),
        ('mutate add --query q.gq --store g --params {"name":"x"} --branch b', 1, "b"),
        ("load g --data d.ndjson", 2, "--mode"),
        ("load g --mode append", 2, "--data"),
        ("load g --data d.ndjson --mode upsert", 2, "upsert"),
        ("load g --data gone --mode append", 1, "cannot read gone"),
        ("load g --data d.ndjson --mode merge --branch b", 1, "b"),
        ("export g --type Nope", 1, "Nope"),
        ("export g --branch main --snapshot x", 2, "--snapshot"),
    ],
)
def test_invalid_requests_are_explained(omnigraph: Program, graph: str, words: str, code: int, told: str) -> None:
    import shlex

    before = library.open("g").head.id
    ended = omnigraph(*shlex.split(words.replace('"', '\\"')))
    assert (ended.code, ended.out) == (code, "")
    assert told in ended.err
    assert library.open("g").head.id == before
    assert library.open("g").branches.names() == ["main"]


def test_query_error_is_shown_at_its_position(omnigraph: Program, graph: str) -> None:
    Path("w.gq").write_text("query w() { match { $p: Persn } return { $p.name } }")
    ended = omnigraph("query", "--query", "w.gq", "--store", "g")
    assert ended.code == 1
    assert ended.err.startswith("w.gq:1:25: error[T1]: unknown node type `Persn`\n")


# mutate ----------------------------------------------------------------------------------------


def test_mutation_prints_its_effects(omnigraph: Program, graph: str) -> None:
    words = ("mutate", "add", "--query", "q.gq", "--store", "g")
    ended = omnigraph(*words, "--params", '{"name": "cyd"}', "--as", "ada", "-m", "why")
    assert (ended.code, ended.out) == (0, "changed main via add: 1 node, 0 edges as ada\n")
    assert ended.err == f"mutate {Path('g').absolute()} (direct, local)\n"
    assert library.open("g").head.message == "why"
    told = omnigraph(*words, "--params", '{"name": "dee"}', "--json", "--quiet")
    assert told.err == ""
    facts = document(told)
    commit = facts.pop("commit")
    assert commit["graph_commit_id"] == library.open("g").head.id
    assert facts.pop("ids") == {"Person": ["dee"]}
    assert facts == {"branch": "main", "query_name": "add", "affected_nodes": 1, "affected_edges": 0, "actor_id": None}
    nothing = omnigraph("mutate", "-e", "delete Person where age > 140", "--store", "g", "--json", "--quiet")
    assert document(nothing)["commit"] is None
    assert people(omnigraph) == ["ann", "bob", "cyd", "dee"]


def test_failed_condition_exits_with_4(omnigraph: Program, graph: str) -> None:
    head = library.open("g").head.id
    words = ("mutate", "add", "--query", "q.gq", "--store", "g", "--if-commit", head)
    assert omnigraph(*words, "--params", '{"name": "cyd"}').code == 0
    lost = omnigraph(*words, "--params", '{"name": "dee"}')
    assert (lost.code, lost.out) == (4, "")
    assert "precondition failed" in lost.err
    told = omnigraph(*words, "--params", '{"name": "dee"}', "--json", "--quiet")
    assert told.code == 4
    failure = json.loads(told.out)["precondition_failure"]
    assert failure == {"expected": head, "actual": library.open("g").head.id}
    assert people(omnigraph) == ["ann", "bob", "cyd"]


# load and export -------------------------------------------------------------------------------


def test_load_reads_files_standard_input_and_compressed_files(omnigraph: Program, graph: str) -> None:
    line = '{"type": "Person", "data": {"name": "%s"}}\n'
    Path("a.ndjson").write_text(line % "a")
    with gzip.open("b.ndjson.gz", "wt") as file:
        file.write(line % "b")
    ended = omnigraph("load", "g", "--data", "a.ndjson", "--mode", "append")
    assert (ended.code, ended.out) == (0, "loaded into main (mode: append): 1 Person\n")
    assert ended.err == f"load into {Path('g').absolute()} (direct, local)\n"
    assert omnigraph("load", "g", "--data", "b.ndjson.gz", "--mode", "append").code == 0
    fed = omnigraph("load", "--store", "g", "--data", "-", "--mode", "append", stdin=(line % "c").encode())
    assert fed.code == 0, fed.err
    assert people(omnigraph) == ["a", "ann", "b", "bob", "c"]
    again = omnigraph("load", "g", "--data", "a.ndjson", "--mode", "append")
    assert again.code == 1
    assert "already has an entity with id 'a'" in again.err
    empty = omnigraph("load", "g", "--data", "-", "--mode", "append", "--json", "--quiet")
    assert document(empty)["commit"] is None


def test_load_prints_a_json_document(omnigraph: Program, graph: str) -> None:
    told = document(
        omnigraph(
            *("load", "g", "--data", "d.ndjson", "--mode", "merge", "--json", "--quiet"),
            *("--branch", "review/a", "--from", "main", "--as", "ada"),
        )
    )
    commit = told.pop("commit")
    assert commit["graph_branch"] == "review/a"
    assert told.pop("engine_reason")
    assert told == {
        "uri": str(Path("g").absolute()),
        "branch": "review/a",
        "mode": "merge",
        "base_branch": "main",
        "branch_created": True,
        "nodes": [{"name": "Person", "entities_loaded": 2}],
        "edges": [{"name": "Knows", "entities_loaded": 1}],
        "total_entities": 3,
        "engine": "local",
        "actor_id": "ada",
    }


def test_bad_lines_are_reported(omnigraph: Program, graph: str) -> None:
    good = b'{"type": "Person", "data": {"name": "x"}}\n'
    bad = b'{"type": "Person", "data": {"nme": 1}}\n{broken\n' + good
    first = omnigraph("load", "g", "--data", "-", "--mode", "append", stdin=bad)
    assert first.code == 1
    assert "line 1" in first.err
    assert "line 2" in first.err
    few = omnigraph("load", "g", "--data", "-", "--mode", "append", "--max-errors", "1", stdin=bad)
    assert "line 2" not in few.err
    assert "2 more" in few.err
    alone = omnigraph("load", "g", "--data", "-", "--mode", "append", stdin=b"{broken\n")
    assert "problem" not in alone.err, "one problem is told as an error of its own"
    every = omnigraph("load", "g", "--data", "-", "--mode", "append", "--report", stdin=bad)
    assert every.code == 1
    assert "line 1" in every.err
    assert "line 2" in every.err
    assert "3 problems in <stdin>; nothing was written" in every.err
    told = omnigraph("load", "g", "--data", "-", "--mode", "append", "--report", "--json", stdin=bad)
    assert told.code == 1
    assert [one["line"] for one in json.loads(told.out)["problems"]] == [1, 1, 2]
    assert people(omnigraph) == ["ann", "bob"]


def test_export_can_be_loaded(omnigraph: Program, graph: str) -> None:
    ended = omnigraph("export", "g")
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert ["edge" in one for one in lines] == [False, False, True]
    done = omnigraph("export", "g", "--out", "all.ndjson", "--type", "Person")
    assert (done.code, done.out) == (0, "")
    assert done.err == "exported 2 entities to all.ndjson\n"
    assert Path("all.ndjson").read_text() == "".join(ended.out.splitlines(keepends=True)[:2])
    assert omnigraph("init", "--schema", "g.pg", "h").code == 0
    assert omnigraph("load", "h", "--data", "-", "--mode", "overwrite", stdin=ended.out.encode()).code == 0
    assert omnigraph("export", "h").out == ended.out


def test_export_chooses_the_format_by_the_suffix(omnigraph: Program, graph: str) -> None:
    done = omnigraph("export", "g", "--out", "people.parquet", "--type", "Person")
    assert (done.code, done.err) == (0, "exported 2 entities to people.parquet\n")
    assert pq.read_table("people.parquet")["name"].to_pylist() == ["ann", "bob"]
    written = document(omnigraph("export", "g", "--out", "people.csv", "--type", "Person", "--json"))
    assert (written["path"], written["entities"]) == ("people.csv", 2)
    assert Path("people.csv").read_text().splitlines()[1].startswith("ann,")
    assert omnigraph("export", "g", "--out", "x.parquet", "--format", "ndjson").code == 0
    assert Path("x.parquet").read_text() == omnigraph("export", "g").out
    assert omnigraph("export", "g", "--format", "ndjson").out == omnigraph("export", "g").out
    for words, message in (
        (("--out", "all.parquet"), "a parquet file can contain only one type, but"),
        (("--out", "all.xlsx"), "cannot export to all.xlsx: .xlsx files are not supported"),
        (("--format", "csv"), "an export as csv requires a path"),
        (("--out", "folder", "--format", "parquet", "--since", "HEAD"), "--since cannot be combined with a folder"),
        (("--format", "parquet"), "--format parquet requires --out"),
    ):
        refused = omnigraph("export", "g", *words)
        assert (refused.code in (1, 2), message in refused.err) == (True, True), refused.err
    assert not Path("all.parquet").exists()


def test_export_since_a_revision(omnigraph: Program, graph: str) -> None:
    assert omnigraph("export", "g", "--since", "HEAD").out == ""
    omnigraph("mutate", "g", "-e", 'query q() { insert Person { name: "cyd" } }')
    omnigraph("mutate", "g", "-e", 'query q() { delete Person where name = "ann" }')
    lines = omnigraph("export", "g", "--since", "HEAD~2").out.splitlines()
    assert [json.loads(line)["data"]["name"] for line in lines] == ["cyd"]
    unknown = omnigraph("export", "g", "--since", "nowhere")
    assert (unknown.code, "unknown revision 'nowhere'" in unknown.err) == (1, True)


def test_overwrite_on_a_remote_store_needs_confirmation(omnigraph: Program, s3: S3) -> None:
    library.init(s3.url, SCHEMA)
    Path("d.ndjson").write_text(DATA)
    words = ("load", s3.url, "--data", "d.ndjson", "--mode", "overwrite")
    refused = omnigraph(*words)
    assert (refused.code, refused.out) == (1, "")
    assert "requires confirmation" in refused.err
    assert library.open(s3.url).nodes("Person").count() == 0
    done = omnigraph(*words, "--yes")
    assert done.code == 0, done.err
    assert done.err == f"load into {s3.url} (direct, remote)\n"
    assert library.open(s3.url).nodes("Person").count() == 2


# the rest --------------------------------------------------------------------------------------


def test_the_schema_of_a_graph(omnigraph: Program, graph: str) -> None:
    assert omnigraph("schema", "show", "g").out == SCHEMA
    assert document(omnigraph("schema", "show", "--store", "g", "--json")) == {"schema_source": SCHEMA}


def test_operations_are_logged_to_standard_error(
    omnigraph: Program, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("query", "-e", ALL, "--store", "g", "--format", "csv")
    told = omnigraph(*words, "-v")
    assert told.out == "p.name\nann\nbob\n"
    assert told.err.startswith("INFO query id=")
    assert "rows=2" in told.err
    monkeypatch.setenv("OMNIGRAPH_LOG", "json")
    event = json.loads(omnigraph(*words).err)
    assert (event["operation"], event["branch"], event["rows"]) == ("query", "main", 2)


def test_closed_pipe_prints_no_traceback(omnigraph: Program, graph: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "omnigraph", "export", "g"], stdout=writer, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_ctrl_c_ends_a_query_with_130(omnigraph: Program, graph: str) -> None:
    """The query runs again and again until the signal meets it, wherever that is."""
    library.open("g").insert("Person", [{"name": f"p{n}", "age": 1} for n in range(50)])
    code = (
        "import sys, threading, os, signal, omnigraph.cli.main as m, omnigraph.engine.run_query as r\n"
        "real = r.run_operators\n"
        "def execute(*a):\n"
        "    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    while True: real(*a)\n"
        "r.run_operators = execute\n"
        "sys.exit(m.run(sys.argv[1:]))"
    )
    text = "match { $a: Person $b: Person $c: Person $a.age > $c.age } return { count($a) as n }"
    ended = subprocess.run(
        [sys.executable, "-c", code, "query", "-e", text, "--store", "g"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 130, ended.stderr
    assert "interrupted" in ended.stderr


def test_load_with_a_repeated_key_runs_once(omnigraph: Program, graph: str) -> None:
    tie = '{"edge": "Knows", "from": "bob", "to": "ann"}\n'
    Path("e.ndjson").write_text(tie)
    call = ("load", "g", "--data", "e.ndjson", "--mode", "merge", "-m", "why")
    for _ in range(2):
        ended = omnigraph(*call, "--idempotency-key", "k")
        assert ended.code == 0
    assert "already used this idempotency key" in ended.out
    head = document(omnigraph("commit", "list", "g", "--json"))["commits"][0]
    assert head["message"] == "why"
    assert library.open("g").edges("Knows").count() == 2
    assert omnigraph(*call, "--if-commit", head["graph_commit_id"]).code == 0  # without a key
    assert library.open("g").edges("Knows").count() == 3
    assert "idempotency-key" in omnigraph("load", "--help").out
    same = omnigraph("load", "g", "--data", "d.ndjson", "--mode", "append")
    assert same.code == 1
    assert same.err.endswith("nothing was written\n")
    assert same.err.count("hint: use mode `merge`") == 1
    assert "line 1: node type 'Person'" in same.err


def test_named_query_runs_beside_invalid_queries_in_the_file(omnigraph: Program, graph: str) -> None:
    Path("q.gq").write_text(QUERIES + "query bad() { match { $p: Persn } return { $p.name } }")
    good = omnigraph("query", "all", "--query", "q.gq", "--store", "g", "--format", "csv")
    assert (good.code, good.out) == (0, "p.name\nann\nbob\n")
    bad = omnigraph("query", "bad", "--query", "q.gq", "--store", "g")
    assert bad.code == 1
    assert "in query `bad`" in bad.err
    assert omnigraph("lint", "--schema", "g.pg", "--query", "q.gq").code == 1


def test_failed_mutation_reports_no_effect(omnigraph: Program, graph: str) -> None:
    ended = omnigraph("mutate", "-e", "insert Person { nme: 1 }", "--store", "g")
    assert (ended.code, ended.err.splitlines()[-1]) == (1, "nothing was written")
    asked = omnigraph("query", "-e", "match { $p: Nobody } return { $p.x }", "--store", "g")
    assert "nothing was written" not in asked.err


def test_load_takes_one_file_per_type(omnigraph: Program, graph: str) -> None:
    Path("rows.csv").write_text("name\ndora\n")
    pq.write_table(pa.table({"name": ["emil"]}), "rows.parquet")
    for file in ("rows.csv", "rows.parquet"):
        done = omnigraph("load", "g", "--data", f"Person={file}", "--mode", "append")
        assert done.code == 0, done.err
    assert people(omnigraph) == ["ann", "bob", "dora", "emil"]


@pytest.mark.parametrize("condition", ['$t.kind = "taks"', '$t.kind != "taks"', '$t.kind in ["taks"]'])
def test_query_warns_about_a_value_that_an_enum_does_not_contain(omnigraph: Program, condition: str) -> None:
    library.init("t.omni", "node Ticket { name: String @key  kind: enum(task, epic) }")
    query = ("query", "t.omni", "-e", f"match {{ $t: Ticket  {condition} }} return {{ $t.kind }} limit 3")
    ended = omnigraph(*query, "--format", "csv")
    warning = 'warning: "taks" is not one of epic, task; did you mean `task`?\n'
    assert (ended.code, ended.out, ended.err) == (0, "t.kind\n", warning)
    assert omnigraph("--quiet", *query).err == ""
