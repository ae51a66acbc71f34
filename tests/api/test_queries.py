"""Queries through the handle: accepted forms, parameters, caching and rejections."""

import logging
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.api.builders import prepared_queries
from omnigraph.errors import (
    BranchNotFound,
    InputError,
    LanguageError,
    ParameterError,
    ParseError,
    SnapshotNotFound,
    TypeCheckError,
    UsageError,
)
from omnigraph.lang.query import compile_queries
from tests.rig.graph_hosts import GraphHost, open_again

ADULTS = """
query adults($min: I32) {
    match { $p: Person  $p.age >= $min } return { $p.name } order { $p.name }
}
query all() { match { $p: Person } return { $p.name } order { $p.name } }
query rename($from: String, $to: String) { update Person set { team: $to } where name = $from }
"""


def names(found: Any) -> list[str]:
    return [row[0] for row in found]


def test_a_query_is_text_a_path_or_a_bare_body(people: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.gq"
    path.write_text(ADULTS)
    for source in (ADULTS, path):
        assert names(people.query(source, name="adults", min=26)) == ["ann", "dee"]
    bare = "// who\nmatch { $p: Person  $p.age > $min } return { $p.name } // done"
    found = people.query(bare, min=26)
    assert names(found) == ["ann", "dee"]
    assert found.query_name == "anonymous"


def test_text_is_never_opened_as_a_file(people: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.gq"
    path.write_text(ADULTS)
    for call in (people.query, people.prepare, people.explain, people.stream):
        with pytest.raises(InputError, match=r"people\.gq' is not a query") as refused:
            call(str(path))
        assert "pathlib.Path" in (refused.value.hint or "")


def test_ambiguous_query_name_is_rejected(people: Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="adults, all, rename"):
        people.query(ADULTS)
    with pytest.raises(InputError, match="no query named 'adult'") as error:
        people.query(ADULTS, name="adult")
    assert error.value.hint == "did you mean `adults`?"
    with pytest.raises(InputError, match="no query named 'x'") as error:
        people.query(ADULTS, name="x")
    assert "available queries: adults" in (error.value.hint or "")
    with pytest.raises(UsageError, match="the text contains no query"):
        people.query("// nothing")
    with pytest.raises(InputError, match="cannot read"):
        people.query(tmp_path / "gone.gq")


def test_query_and_mutate_reject_each_others_text(graph: Graph) -> None:
    head = graph.head.id
    for source in ("delete Person where age > 3", 'insert Person { name: "x" }'):
        with pytest.raises(TypeCheckError, match="this query changes the graph"):
            graph.query(source)
    with pytest.raises(TypeCheckError, match="this query is a read query, not a mutation"):
        graph.mutate("match { $p: Person } return { $p.name }")
    assert graph.refresh().head.id == head


def test_diagnostics_of_a_bare_body_use_its_positions(people: Graph) -> None:
    with pytest.raises(TypeCheckError) as error:
        people.query("match {\n  $p: Persn } return { $p.name }")
    (found,) = error.value.diagnostics
    assert (found.line, found.column) == (2, 7)
    assert "$p: Persn }" in str(error.value)
    assert "anonymous" not in str(error.value)
    with pytest.raises(ParseError) as wrong:
        people.query("match { $p: Person } retrn { $p.name }")
    assert wrong.value.diagnostics[0].line == 1


def test_parameters_named_like_options_are_passed_by_params(people: Graph) -> None:
    text = "match { $p: Person  $p.name = $name  $p.team = $branch } return { $p.age }"
    assert people.query(text, params={"name": "ann", "branch": "core"}).scalar() == 30
    with pytest.raises(InputError, match="specified twice"):
        people.query("match { $p: Person  $p.name = $x } return { $p.age }", params={"x": 1}, x=2)


def test_all_parameter_problems_are_reported(people: Graph) -> None:
    with pytest.raises(ParameterError, match=r"\$mn.*no such.*\$min.*no value was given"):
        people.query(ADULTS, name="adults", mn=3)
    with pytest.raises(ParameterError, match="I32"):
        people.query(ADULTS, name="adults", min="old")


def test_a_text_is_compiled_once_per_schema(people: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = compile_queries

    def counting(text: str, *more: Any) -> Any:
        made.append(text)
        return real(text, *more)

    monkeypatch.setattr(prepared_queries, "compile_queries", counting)
    text = "query fresh_text($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
    call = people.prepare(text)
    assert [call(n=name).scalar() for name in ("ann", "bob", "cyd")] == [30, 25, None]
    assert people.query(text, n="dee").scalar() == 30
    assert len(made) == 1


def test_prepared_query_describes_its_parameters(graph: Graph) -> None:
    call = graph.prepare(ADULTS, name="adults")
    assert (call.name, call.kind, dict(call.params)) == ("adults", "read", {"min": "I32"})
    assert repr(call) == "<Prepared read: adults($min: I32)>"
    change = graph.prepare(ADULTS, name="rename")
    assert change(**{"from": "ann", "to": "web"}).affected_nodes == 1
    assert graph["Person", "ann"].team == "web"
    with pytest.raises(TypeCheckError):
        graph.prepare("match { $p: Nobody } return { $p.name }")


class Team(Enum):
    CORE = "core"


TYPES = """
node Thing {
    k: String @key
    s: String?  b: Bool?  i: I32?  l: I64?  u: U32?  v: U64?  f: F32?  d: F64?
    day: Date?  at: DateTime?  e: enum(core, web)?  x: [I64]?  vec: Vector(2)?
}
"""
VALUES: list[tuple[str, str, list[Any]]] = [
    ("s", "String", ["", "'\"\\%_\n\x00", "שלום", "🙂", "x" * 65536, "'; drop table --"]),
    ("b", "Bool", [True, False]),
    ("i", "I32", [-(2**31), 2**31 - 1, np.int32(7)]),
    ("l", "I64", [-(2**63), 2**63 - 1]),
    ("u", "U32", [0, 2**32 - 1]),
    ("v", "U64", [0, 2**64 - 1]),
    ("f", "F32", [0.5, -1.25]),
    ("d", "F64", [0.1, -1e300, 5]),
    ("day", "Date", [date(1, 1, 1), date(9999, 12, 31)]),
    ("at", "DateTime", [datetime(2024, 1, 1, 12, tzinfo=UTC)]),
    ("x", "[I64]", [[], [1, 2**62]]),
]


@pytest.fixture(scope="module")
def things(graphs: GraphHost) -> Graph:
    return graphs.init(TYPES)


@pytest.mark.parametrize(("name", "kind", "values"), VALUES, ids=[v[1] for v in VALUES])
def test_every_type_round_trips_as_a_parameter(things: Graph, name: str, kind: str, values: list[Any]) -> None:
    put = things.prepare(f"query put($k: String, $v: {kind}?) {{ upsert Thing {{ k: $k, {name}: $v }} }}")
    for value in [*values, None]:
        put(k="one", v=value)
        found = things["Thing", "one"][name]
        assert found == value
        assert type(found) is type(value) or isinstance(value, int | np.integer)
    if not kind.startswith("["):
        put(k="one", v=values[-1])
        text = f"query q($v: {kind}) {{ match {{ $t: Thing  $t.{name} = $v }} return {{ $t.k }} }}"
        assert things.query(text, v=values[-1]).scalars() == ["one"]


def test_datetime_parameter_keeps_its_instant(things: Graph) -> None:
    from zoneinfo import ZoneInfo

    here = datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    things.upsert("Thing", {"k": "z", "at": here})
    found = things["Thing", "z"].at
    assert found == here
    assert found.utcoffset() == timedelta(0)


@pytest.mark.parametrize("vector", [np.array([1.0, 2.0]), pa.array([1.0, 2.0]), [1, 2], (1.0, 2.0)])
def test_arrays_are_accepted_as_vectors(things: Graph, vector: Any) -> None:
    things.mutate('query v($v: Vector(2)) { upsert Thing { k: "v", vec: $v } }', v=vector)
    assert things["Thing", "v"].vec == [1.0, 2.0]


def test_python_enum_is_passed_as_its_value(things: Graph) -> None:
    things.mutate('query e($e: String) { insert Thing { k: "e", e: $e } }', e=Team.CORE)
    assert things["Thing", "e"].e == "core"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("DateTime", datetime(2024, 1, 1)),
        ("F64", Decimal("1.5")),
        ("F64", float("nan")),
        ("F64", float("inf")),
        ("I32", 2**31),
        ("I64", 1.0),
        ("U64", -1),
        ("Bool", 1),
        ("String", "\ud800"),
        ("Vector(2)", np.array([1.0])),
        ("Date", "2024-13-01"),
    ],
)
def test_values_of_the_wrong_type_are_rejected(things: Graph, kind: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=r"\$v"):
        things.query(f"query q($v: {kind}) {{ match {{ $t: Thing }} return {{ $t.k }} }}", v=value)


def test_a_read_sees_the_newest_state_unless_it_is_pinned(graph: Graph) -> None:
    other = open_again(graph)
    count = "match { $p: Person } return { count($p) as n }"
    before = graph.head.id
    with graph.revisions.pin() as fixed:
        other.insert("Person", {"name": "eve"})
        assert graph.query(count).scalar() == 5
        assert fixed.query(count).scalar() == fixed.nodes("Person").count() == 4
        assert fixed.query(count).target == {"branch": None, "snapshot": before}
    assert graph.head.id == other.head.id
    assert graph.query(count, at=before).scalar() == 4
    assert graph.query(count, at="HEAD~1").scalar() == 4
    assert graph.query(count).target == {"branch": "main", "snapshot": None}


def test_query_reads_other_branches_and_times(graph: Graph) -> None:
    count = "match { $p: Person } return { count($p) as n }"
    graph.branches.create("b")
    graph.insert("Person", {"name": "eve"}, branch="b")
    assert [graph.query(count).scalar(), graph.query(count, branch="b").scalar()] == [4, 5]
    assert graph.query(count, branch="b", at="HEAD~1").scalar() == 4
    with pytest.raises(BranchNotFound):
        graph.query(count, branch="c")
    with pytest.raises(SnapshotNotFound):
        graph.query(count, at=datetime(2000, 1, 1, tzinfo=UTC))


def test_at_a_moment_exactly_just_before_and_just_after(graph: Graph) -> None:
    third, second = graph.log()[:2]
    step = timedelta(microseconds=1)
    assert graph.at(third.published).head.id == third.id
    assert graph.at(third.published + step).head.id == third.id
    assert graph.at(third.published - step).head.id == second.id
    assert graph.at(third.manifest_version).head.id == third.id
    assert graph.at("HEAD~1").head.id == second.id
    with pytest.raises(SnapshotNotFound):
        graph.at(graph.log()[-1].published - step)


def test_one_event_is_emitted_per_operation(graph: Graph, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "omnigraph"):
        graph.query("match { $p: Person } return { $p.name }")
        graph.insert("Person", {"name": "secret"})
        with pytest.raises(TypeCheckError):
            graph.query("match { $p: Nobody } return { $p.name }")
    events = [record.event for record in caplog.records]  # type: ignore[attr-defined]
    assert [one["operation"] for one in events] == ["query", "load", "query"]
    assert [one["outcome"] for one in events] == ["ok", "ok", "TypeCheckError"]
    assert [one.get("rows") for one in events] == [4, 1, None]
    assert {"state", "compile", "run"} == set(events[0]["phases"])
    assert events[1]["requests"] > 0
    assert len({one["id"] for one in events}) == 3
    assert "secret" not in caplog.text


def test_stream_returns_the_rows_of_the_query(people: Graph) -> None:
    text = "match { $p: Person  $p.age >= $min } return { $p.name, $p.age }"
    with people.stream(text, min=25) as stream:
        assert stream.columns == ("p.name", "p.age")
        rows = [tuple(row.values()) for row in stream.iter_rows()]
    assert sorted(rows) == sorted(people.query(text, min=25).to_records())
    with people.query(text, lazy=True, min=25) as lazy:
        assert pa.table(lazy).num_rows == 3
    with pytest.raises(TypeCheckError), people.stream('insert Person { name: "x" }'):
        pass


def test_stream_reads_one_snapshot(graph: Graph) -> None:
    with graph.stream("match { $p: Person } return { $p.name }") as stream:
        graph.insert("Person", {"name": "zed"})
        assert sorted(row.name for row in stream.iter_rows()) == ["ann", "bob", "cyd", "dee"]
        assert stream.commit_id != graph.head.id


def test_a_plan_is_explained_and_measured(people: Graph) -> None:
    text = "match { $p: Person  $p knows $q  $p.age > $min } return { $q.name }"
    plan = people.explain(text, min=26)
    assert "Knows" in str(plan)
    measured = people.explain(text, min=26, analyze=True)
    assert measured.to_json()["row_count"] == people.query(text, min=26).num_rows
    again = people.prepare("query q() { match { $p: Person } return { $p.name } }")
    assert again.explain(analyze=True).to_json()["row_count"] == 4


def test_a_plan_is_readable_and_its_estimate_respects_the_bounds(people: Graph) -> None:
    def rows(text: str, **values: Any) -> list[int]:
        steps = people.explain(text, **values).to_json()["plan"]
        return [step["estimated_rows"] for step in steps if "limit" in step["operator"] or "offset" in step["operator"]]

    names = "match { $p: Person } return { $p.name }"
    assert rows(f"{names} limit 3") == [3]
    assert rows(f"{names} limit 9") == [4]
    assert rows(f"{names} limit 2 offset 3") == [1, 1]
    assert rows(f"{names} limit $n", n=1, analyze=True) == [1]
    assert rows(f"{names} union all {names} limit 5") == [5]
    plan = people.explain(f"{names} limit 3")
    assert repr(plan).endswith(f"\n{plan}")
    assert str(plan).splitlines()[0].split() == ["operator", "estimated", "rows"]


STREAMED = """
import sys, omnigraph, pyarrow as pa
graph = omnigraph.init(sys.argv[1], "node N { k: I64 @key  t: String }", durability="os")
table = pa.table({"k": pa.array(range(5_000_000)), "t": pa.array(["x" * 100] * 5_000_000)})
graph.load({"N": table}, mode="append")
"""
READ = """
import sys, omnigraph
graph = omnigraph.open(sys.argv[1], read_only=True)
rows = 0
with graph.stream("match { $n: N } return { $n.k, $n.t }") as stream:
    for batch in stream:
        rows += batch.num_rows
# Not `ru_maxrss`: a child inherits the peak of the process that started it.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(rows, int(peak.split()[1]) // 1024)
"""


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_stream_of_millions_needs_little_memory(tmp_path: Path) -> None:
    import subprocess
    import sys

    where = str(tmp_path / "g")
    subprocess.run([sys.executable, "-c", STREAMED, where], check=True)
    shown = subprocess.check_output([sys.executable, "-c", READ, where], text=True)
    rows, megabytes = map(int, shown.split())
    assert rows == 5_000_000
    assert megabytes < 450  # the texts of the answer alone have 500


def test_named_query_runs_beside_invalid_queries_in_the_file(people: Graph) -> None:
    text = """
query good() { match { $p: Person } return { count($p) as n } }
query bad() { match { $p: Persn } return { $p.name } }
query worse( { match }
"""
    assert people.query(text, name="good").scalar() == 4
    with pytest.raises(TypeCheckError, match=r"in query `bad`: .*Persn"):
        people.query(text, name="bad")
    with pytest.raises(LanguageError):
        people.query(text, name="worse")
    with pytest.raises(LanguageError):
        people.query(text)


def test_missing_parameter_and_missing_file_are_reported(people: Graph) -> None:
    with pytest.raises(TypeCheckError, match=r'is a parameter, pass `params=\{"name": …\}`'):
        people.query("match { $p: Person { name: $name } } return { $p.name }")
    with pytest.raises(TypeCheckError, match="is a parameter, pass `n=…`"):
        people.query("match { $p: Person $p.name = $n } return { $p.name }")
    for path in ("x.gqq", "queries/people"):
        with pytest.raises(InputError, match="is not a query") as wrong:
            people.query(path)
        assert "pathlib.Path" in (wrong.value.hint or "")


def test_repr_of_handles_is_short(people: Graph) -> None:
    assert repr(people.schema).startswith("<Schema of Firm, Note, Person")
    assert len(repr(people.head)) < 150
    assert people.revisions.commit("HEAD").id == people.head.id
    assert people.log()[-1].message == "created"
    assert "verified" in (people.log()[-1].note or "")
    with pytest.raises(InputError, match="unknown revision") as unknown:
        people.at("nope")
    assert "HEAD~3" in (unknown.value.hint or "")


def test_edges_are_counted_by_their_ids(people: Graph) -> None:
    ties = "match { $p: Person $p $e:knows $q } return { %s as n }"
    assert people.query(ties % "count($e)").scalar() == 6
    assert people.query(ties % "count($e.id)").scalar() == 6
