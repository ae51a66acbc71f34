"""Every load is equal in this process and on Spark: same graphs, same rejects."""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import CsvOptions
from omnigraph.errors import VersionConflict
from omnigraph.ingest.load_limits import LoadLimits
from omnigraph.spark import rejected_records, source
from omnigraph.spark.session import parallelism
from omnigraph.spark.task_reports import TaskReport, read_reports
from omnigraph.storage import patch_columns
from omnigraph.values.table_key import TableKey
from tests.engine.writes.conftest import DATA, SCHEMA
from tests.model import random_writes
from tests.model.engine_cases import Case, all_cases
from tests.model.oracle import Oracle
from tests.model.write_oracle import Refused
from tests.rig.depth import repeats, stride
from tests.spark.both_engines import Engines

LOADS = [one for one in all_cases() if one.file.startswith("load/")]
SMALL = 200  # bytes of a piece, so that every file is cut


def applied(case: Case, both: Engines) -> Iterator[Any]:
    for action, _ in case.steps:
        if action.word == "load" and not action.condition:
            yield both.text(action.text, action.rest, piece_bytes=SMALL)
        elif action.word == "mutate" and not action.condition:
            for graph in both.graphs.values():
                graph.mutate(action.source, params=action.given)


@pytest.mark.full
@pytest.mark.parametrize("case", LOADS[:: stride(3)], ids=str)
def test_load_case_is_equal_on_both_engines(case: Case, tmp_path: Path, spark: Any) -> None:
    if "sideways" in case.steps[0][0].rest:
        pytest.skip("no such mode")
    both = Engines(tmp_path, spark, case.schema, case.data)
    for _ in applied(case, both):
        pass


def test_all_rejected_lines_are_equal_on_both_engines(tmp_path: Path, spark: Any) -> None:
    cases = [one for one in LOADS if one.file == "load/refused" and one.graph == "M U"]
    texts = [
        action.text for one in cases for action, wanted in one.steps
        if (action.word, action.rest, wanted.word) == ("load", "append", "error")
    ]  # fmt: skip
    assert len(texts) > 20
    both = Engines(tmp_path, spark, cases[0].schema, cases[0].data)
    found = both.text("".join(texts), "append", piece_bytes=SMALL)
    assert isinstance(found, Counter)
    assert found.total() >= len(texts) - 2  # ends are not judged beside lines that are unread


def lines(*records: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in records)


def user(login: str, **data: Any) -> dict[str, Any]:
    return {"type": "User", "data": {"login": login, **data}}


def edge(name: str, src: str, dst: str, **data: Any) -> dict[str, Any]:
    return {"edge": name, "from": src, "to": dst, "data": data}


def event(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Event", "data": {"id": name, "title": name, "at": 0, **data}}


def test_violations_of_each_rule_are_equal_on_both_engines(tmp_path: Path, spark: Any) -> None:
    both = Engines(tmp_path, spark, SCHEMA, DATA.decode())
    found = both.text(
        lines(
            user("kim", age=151),
            user("lea", role="root", mail="m@x"),
            user("Max"),
            user("ann"),
            user("zed", mail="a@x"),
            user("kim"),
            user("ned", mail="m@x"),
            event("e1"),
            event("e1"),
            edge("Follows", "ann", "nobody"),
            edge("Follows", "ann", "bob"),
            edge("Owns", "kim", "e1"),
            edge("Owns", "kim", "e1"),
            edge("Owns", "kim", "e1", id="o"),
            edge("Owns", "nemo", "e1", id="o"),
            *(edge("Owns", "lea", "e1") for _ in range(3)),
        ),
        "append",
        piece_bytes=SMALL,
    )
    codes = Counter(one[-1] for one in found.elements())
    assert codes == {"ConstraintViolation": 6, "KeyConflict": 3, "UniqueViolation": 3}
    assert ("input-1.ndjson", 6, "User", "kim", "UniqueViolation") in found


def test_successive_load_modes_are_equal_on_both_engines(tmp_path: Path, spark: Any) -> None:
    both = Engines(tmp_path, spark, SCHEMA, DATA.decode())
    people = [user(f"p{chr(97 + at)}", age=at, mail=f"{at}@y") for at in range(20)]
    ties = [edge("Follows", f"p{chr(97 + at)}", "ann", id=f"f{at}") for at in range(20)]
    nodes, edges, wrote = both.text(lines(*people, *ties), "append", piece_bytes=SMALL)
    assert (nodes, edges, wrote) == ({"User": 20}, {"Follows": 20}, True)
    before = {name: row_ids(graph) for name, graph in both.graphs.items()}
    changed = [user("pa", age=99, mail="1@y"), user("pb", mail="0@y"), user("new")]
    moved = [edge("Follows", "pc", "bob", id="f0"), event("e"), event("e", title="last")]
    nodes, edges, wrote = both.text(lines(*changed, *moved), "merge", piece_bytes=SMALL)
    assert (nodes, edges, wrote) == ({"Event": 2, "User": 3}, {"Follows": 1}, True)
    for name, graph in both.graphs.items():
        now = row_ids(graph)
        assert {one: now[one] for one in before[name]} == before[name]
    everybody = [user(name) for name in ("ann", "bob", "pa")]
    found = both.text(lines(*everybody), "overwrite")
    assert {one[2:] for one in found} >= {("Follows", "f1", "ConstraintViolation")}
    nodes, edges, wrote = both.text(lines(*everybody, edge("Follows", "pa", "bob", id="g")), "overwrite")
    assert (nodes, edges, wrote) == ({"User": 3}, {"Follows": 1}, True)
    assert both.text("", "append") == ({}, {}, False)
    assert both.text('{"edge":"Follows","truncate":true}\n', "overwrite") == ({}, {"Follows": 0}, True)


def row_ids(graph: Any) -> dict[str, int]:
    graph.refresh()
    found = graph.table("User").to_table(columns=["id"], with_row_id=True)
    return dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))


def test_cardinality_counts_stored_and_loaded_edges(tmp_path: Path, spark: Any) -> None:
    start = lines(*(event(one) for one in ("e1", "e2", "e3")))
    start += lines(edge("Owns", "ann", "e1", id="o1"), edge("Owns", "ann", "e2", id="o2"))
    slot = {"type": "Slot", "data": {"room": "r", "day": 1}}
    place = '["1","r"]'
    start += lines(slot, edge("Hosts", "ann", place, id="h1"))
    both = Engines(tmp_path, spark, SCHEMA, DATA.decode() + start)
    found = both.text(lines(edge("Owns", "ann", "e3", id="o3")), "append")
    assert list(found) == [("input-1.ndjson", 1, "Owns", "ann", "ConstraintViolation")]
    assert both.text(lines(edge("Owns", "ann", "e3", id="o2")), "merge")[2]
    found = both.text(lines(edge("Hosts", "bob", place, id="h1")), "merge")
    assert list(found) == [(None, None, "Hosts", "ann", "ConstraintViolation")]


def test_parquet_csv_folders_and_patterns_are_loaded(tmp_path: Path, spark: Any) -> None:
    both = Engines(tmp_path, spark, SCHEMA, DATA.decode())
    folder = tmp_path / "in"
    (folder / "User").mkdir(parents=True)
    for part, names in enumerate((["ca", "cb"], ["cc", "cd"])):
        table = pa.table({"name": names, "age": pa.array([1, 2], pa.int64())})
        pq.write_table(table, folder / "User" / f"part-{part}.parquet", row_group_size=1)
    (folder / "Follows.csv").write_text("from,to\nca,cb\ncc,cd\n")
    (folder / "more.ndjson").write_text(lines(user("ce"), edge("Follows", "ce", "ann")))
    mapping = {"User": {"name": "login"}}
    done = both.load(str(folder), "append", mapping=mapping, piece_bytes=10)
    assert done == ({"User": 5}, {"Follows": 3}, True)
    pattern = {"User": str(folder / "User" / "*.parquet")}
    found = both.load(pattern, "append", mapping=mapping, piece_bytes=10)
    assert found == {
        (f"part-{part}.parquet", row, "User", f"c{'abcd'[2 * part + row - 1]}", "KeyConflict"): 1
        for part in (0, 1) for row in (1, 2)
    }  # fmt: skip
    pq.write_table(pa.table({"login": ["x"], "nick": ["y"]}), folder / "bad.parquet")
    assert both.load({"User": str(folder / "bad.parquet")}, "append")[0] == "InputError"
    assert both.load({"Ghost": str(folder / "bad.parquet")}, "append")[0] == "InputError"


def test_text_formats_are_equal_on_both_engines(tmp_path: Path, spark: Any) -> None:
    both = Engines(tmp_path, spark, SCHEMA, DATA.decode())
    csv, typed, rest = (str(tmp_path / name) for name in ("u.csv", "f.ndjson", "rest.ndjson"))
    Path(csv).write_text('login;age;bio\r\nda;1;"two\nlines"\r\ndb;;\r\n', encoding="utf-16")
    Path(typed).write_text('{"src": "da", "dst": "db"}\n{"from": "db", "to": "dc"}\n', encoding="utf-8-sig")
    Path(rest).write_text(lines(*(user(f"d{chr(97 + at)}") for at in range(2, 20))), encoding="utf-8-sig")
    mixed = [{"User": csv, "Follows": typed}, rest]
    assert both.load(mixed, "append", piece_bytes=SMALL) == ({"User": 20}, {"Follows": 2}, True)
    bad = tmp_path / "bad.csv"
    bad.write_bytes(
        b'login,age,joined\nea,1,2024-01-01T00:00:00Z\neb,x,\n"e\nc",2,3,4\ned,\xff,\nee,151,\n"ef,1,\n',
    )
    Path(typed).write_text(
        '{"from": "ann", "src": "ann", "to": "bob"}\n{"edge": "Follows", "from": "ann", "to": "bob"}\n'
    )
    assert both.load({"User": str(bad), "Follows": typed}, "append") == {
        ("bad.csv", 3, "User", "eb", "PropertyValueError"): 1,
        ("bad.csv", 4, "User", None, "InputError"): 1,
        ("bad.csv", 6, "User", None, "InputError"): 1,
        ("bad.csv", 7, "User", "ee", "ConstraintViolation"): 1,
        ("bad.csv", 8, "User", None, "InputError"): 1,
        ("f.ndjson", 1, "Follows", None, "InputError"): 1,
        ("f.ndjson", 2, "Follows", None, "InputError"): 1,
    }
    bad.write_text("login;age\nx;1\n")
    name, message = both.load({"User": str(bad)}, "append", csv=CsvOptions(delimiter=","))
    assert (name, f"{bad}: line 1: " in message) == ("InputError", True)


def test_a_dry_run_writes_nothing(tmp_path: Path, spark: Any) -> None:
    both = Engines(tmp_path, spark, SCHEMA, DATA.decode())
    assert both.text(lines(user("kim")), "append", dry_run=True) == ({"User": 1}, {}, False)
    assert both.text(lines(user("ann")), "append", dry_run=True) == {
        ("input-2.ndjson", 1, "User", "ann", "KeyConflict"): 1
    }


def test_rejects_are_written(tmp_path: Path, spark: Any) -> None:
    both = Engines(tmp_path, spark, SCHEMA, DATA.decode())
    found = {}
    for name in ("local", "spark"):
        file = tmp_path / "bad.ndjson"
        file.write_text(lines(user("kim", age=151)) + "{\n" + lines(user("ann")))
        both.on(name, str(file), "append", rejects=tmp_path / name / "rejects")
        table = pq.read_table(tmp_path / name / "rejects" / "rejects.parquet").to_pylist()
        text = (tmp_path / name / "rejects" / "rejects.ndjson").read_text()
        assert [json.loads(line) for line in text.splitlines()] == table
        found[name] = table
    assert found["local"] == found["spark"]
    assert [one["line"] for one in found["spark"]] == [1, 2, 3]
    assert found["spark"][1]["reason"].startswith("line 2: malformed")


def read_rejects(folder: Path) -> Counter[str]:
    """The rejects in a folder, after comparing both formats of each file."""
    rejects: Counter[str] = Counter()
    for file in folder.glob("*.parquet"):
        rows = pq.read_table(file).to_pylist()
        assert [json.loads(line) for line in file.with_suffix(".ndjson").read_text().splitlines()] == rows
        assert [row["line"] for row in rows] == sorted(row["line"] for row in rows)
        rejects.update(json.dumps(row) for row in rows)
    return rejects


def test_tasks_write_many_rejects(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver collects only the first rejected records; the files are those of a load in this process."""
    monkeypatch.setattr(rejected_records, "MAX_COLLECTED", 10)
    reports: list[TaskReport] = []

    def count(table: pa.Table) -> list[TaskReport]:
        found = read_reports(table)
        reports.extend(found)
        return found

    monkeypatch.setattr(rejected_records, "read_reports", count)
    both = Engines(tmp_path, spark, SCHEMA, DATA.decode())
    old = [user(f"p{chr(97 + at // 26)}{chr(97 + at % 26)}", age=at + 100) for at in range(100)]
    unread = ["{\n", '{"type": "User", "data": {"login": 7}}\n', '{"type": "User", "data": {"login": "zoe"}, "x": 1}\n']
    broken = [
        user("ann"),
        edge("Follows", "ann", "nobody", id="f1"),
        edge("Follows", "ann", "zoe"),
        user("dup"),
        user("dup"),
    ]
    known = [user("bob"), user("bob"), *(user(name) for name in ("ann", "bob")), *(user("ann") for _ in range(3))]
    text = lines(*old) + "".join(unread) + lines(*broken, *known)
    (tmp_path / "bad.ndjson").write_text(text)
    for name in ("local", "spark"):
        (tmp_path / name / "rejects").mkdir(parents=True)
        (tmp_path / name / "rejects" / "rejects-00001.ndjson").write_text("of an earlier load")
        how: dict[str, Any] = {"piece_bytes": SMALL} if name == "spark" else {}
        both.on(name, str(tmp_path / "bad.ndjson"), "append", rejects=tmp_path / name / "rejects", **how)
    found = {name: read_rejects(tmp_path / name / "rejects") for name in ("local", "spark")}
    assert found["local"] == found["spark"]
    assert found["local"].total() == 49 + 3 + 3 + 7  # the edge to zoe may only be dangling because of an unread line
    assert len(reports) == 10
    files = sorted(file.stem for file in (tmp_path / "spark" / "rejects").glob("*.parquet"))
    assert len(files) > 3
    report: Any = both.graphs["spark"].load(
        str(tmp_path / "bad.ndjson"),
        mode="append",
        engine="spark",
        spark=spark,
        on_error="report",
        rejects=tmp_path / "again",
    )
    assert (len(report), report.left_out) == (10, 52)
    assert sorted(f"{name}.parquet" for name in report.reject_files) == sorted(
        file.name for file in (tmp_path / "again").glob("*.parquet")
    )
    assert [problem.line for problem in report] == list(range(52, 62))


def random_loads(both: Engines, seed: int, count: int) -> Iterator[Any]:
    """Loads by chance: every other has only records that break no rule together, some a bad line.

    The oracle knows what is stored, and which loads must be refused.
    """
    oracle, dice = Oracle.of(random_writes.SCHEMA, ""), Random(seed)
    for at in range(count):
        scribe = random_writes.Scribe(dice, oracle.world)
        records = [scribe.record() for _ in range(dice.choice([3, 6, 12]))]
        mode = "append" if at == 0 else dice.choice(["append", "merge", "overwrite"])
        if at % 2 == 0:
            records = sound(oracle, records, mode) or records
        good, text = accepted(oracle, records, mode), lines(*records)
        if at % 4 == 3:
            good, text = False, damaged(text, dice)
        done = both.text(text, mode, piece_bytes=SMALL, fragment_rows=4)
        assert isinstance(done, Counter) is not good
        if good:
            oracle.load(text, mode)
        yield done


def damaged(text: str, dice: Random) -> str:
    """One line is cut off, or has a property that its type does not know."""
    rows = text.splitlines(keepends=True)
    at = dice.randrange(len(rows))
    extra = rows[at].replace('"data": {', '"data": {"nick": 1, ')
    rows[at] = dice.choice([rows[at][:-3] + "\n", extra])
    return "".join(rows)


def sound(oracle: Oracle, records: list[dict[str, Any]], mode: str) -> list[dict[str, Any]]:
    """Those of the records that can be loaded together, taken in their order."""
    found: list[dict[str, Any]] = []
    for one in records:
        if accepted(oracle, [*found, one], mode):
            found.append(one)
    return found


def accepted(oracle: Oracle, records: list[dict[str, Any]], mode: str) -> bool:
    try:
        Oracle(oracle.world).load(lines(*records), mode)
    except Refused:
        return False
    return True


def test_random_loads_are_equal_on_both_engines(tmp_path: Path, spark: Any) -> None:
    both = Engines(tmp_path, spark, random_writes.SCHEMA)
    # With this seed, an edge type has records in fragments and records that are only reported.
    assert len(list(random_loads(both, 2, 4))) == 4


@pytest.mark.full
@pytest.mark.parametrize("seed", range(repeats(3)))
def test_many_random_loads_are_equal_on_both_engines(tmp_path: Path, spark: Any, seed: int) -> None:
    both = Engines(tmp_path, spark, random_writes.SCHEMA)
    done = list(random_loads(both, seed, 25))
    assert {isinstance(one, Counter) for one in done} == {True, False}


@pytest.mark.full
def test_keyed_edges_are_equal_on_both_engines(tmp_path: Path, spark: Any) -> None:
    schema = """
    node Person { name: String @key }
    edge Knows: Person -> Person @card(0..3) { day: Date  kind: String  n: I32?  @key(src, dst, kind, day) }
    edge Badge: Person -> Person { number: I64 @key }
    """
    people = [{"type": "Person", "data": {"name": name}} for name in ("a", "b", 'c"')]
    both = Engines(tmp_path, spark, schema, lines(*people))
    day = {"day": "2020-01-01"}
    ties = [edge("Knows", "a", name, kind="x", n=1, **day) for name in ("a", "b", 'c"')]
    ties += [edge("Badge", "a", "b", number=number) for number in range(12)]
    assert both.text(lines(*ties), "append", piece_bytes=SMALL)[1:] == ({"Badge": 12, "Knows": 3}, True)
    rows = both.graphs["spark"].refresh().edges("Knows").ids()
    assert rows == ['["a","a","18262","x"]', '["a","b","18262","x"]', '["a","c\\"","18262","x"]']
    assert both.text(lines(*ties), "merge", piece_bytes=SMALL)[2] is False
    again = both.text(lines(*ties), "append", piece_bytes=SMALL)
    assert {one[-1] for one in again} == {"KeyConflict"}
    twice = both.text(lines(ties[0], ties[3], ties[0], edge("Badge", "b", "b", number=0)), "merge", piece_bytes=SMALL)
    assert {(one[1], one[3], one[-1]) for one in twice} == {
        (3, '["a","a","18262","x"]', "UniqueViolation"),
        (4, "0", "UniqueViolation"),
    }
    wrong = both.text(lines(edge("Badge", "a", "b", number=1, id="one")), "merge")
    assert {one[-1] for one in wrong} == {"InputError"}
    moved = [edge("Knows", "a", "b", kind="x", n=2, **day), edge("Badge", "b", 'c"', number=3)]
    assert both.text(lines(*moved), "merge", piece_bytes=SMALL)[1:] == ({"Badge": 1, "Knows": 1}, True)
    assert both.text(lines(*moved), "overwrite", piece_bytes=SMALL)[1:] == ({"Badge": 1, "Knows": 1}, True)
    write_badges(spark, both.graphs["spark"])


def write_badges(spark: Any, graph: Any) -> None:
    """A DataFrame of keyed edges: the ids come from the key, and equal rows make no commit."""
    source.register(spark)
    frame = spark.sql("select 'b' src, 'c\"' dst, 3L number union all select 'a', 'b', 4L")
    writer = frame.write.format("omnigraph").option("graph", graph.uri).mode("append")
    with pytest.raises(Exception, match="already has an entity with id '3'"):
        writer.options(type="Badge").save()
    heads = []
    for _ in range(2):
        writer.options(type="Badge", loadMode="merge").save()
        heads.append(graph.refresh().head.id)
    assert heads[0] == heads[1]
    assert sorted(graph.edges("Badge").result().to_records()) == [("3", "b", 'c"', 3), ("4", "a", "b", 4)]


PARTIAL_SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  mail: String? @unique  tags: [String]?  @range(age, 0..150) }
node Note { text: String?  n: I32? }
edge Knows: Person -> Person { since: I32?  weight: F64? }
edge Owns: Person -> Note @card(1..2)
"""


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def partial_engines(folder: Path, spark: Any) -> Engines:
    people = [person(f"p{i}", age=i, city="x", mail=f"m{i}", tags=["a"]) for i in range(8)]
    notes = [{"type": "Note", "data": {"id": f"n{i}", "text": "t"}} for i in range(2)]
    knows = [edge("Knows", f"p{i}", f"p{(i + 1) % 8}", id=f"k{i}", since=i) for i in range(8)]
    others = [edge("Knows", "p0", "p1", id="k9"), edge("Owns", "p0", "n0", id="o1")]
    return Engines(folder, spark, PARTIAL_SCHEMA, lines(*people, *notes, *knows, *others))


def test_patches_and_deletes_are_equal_on_both_engines(tmp_path: Path, spark: Any) -> None:
    both = partial_engines(tmp_path, spark)
    patches = [person("p0", age=99), {"type": "Person", "data": {"id": "p1", "city": None, "tags": []}}]
    edges = [{"edge": "Knows", "data": {"id": "k0", "weight": 1.5}}, person("p2", age=2)]
    assert both.text(lines(*patches, *edges), "patch", piece_bytes=SMALL) == ({"Person": 3}, {"Knows": 1}, True)
    gone = lines(
        edge("Knows", "p3", "p4"), person("p2"), person("p2"), person("none"), {"edge": "Knows", "data": {"id": "?"}}
    )
    assert both.text(gone, "delete", piece_bytes=SMALL) == ({"Person": 1}, {"Knows": 3}, True)


@pytest.mark.full
def test_rejected_patches_and_deletes_are_equal_on_both_engines(tmp_path: Path, spark: Any) -> None:
    both = partial_engines(tmp_path, spark)
    patches = [
        person("zoe", age=9),
        {"type": "Person", "data": {"age": 9}},
        person("p2", age=900),
        person("p3", mail="m4"),
        {"edge": "Knows", "from": "p3", "data": {"id": "k1"}},
        person("p5", age=1),
        person("p5", age=2),
        person("p6", mail="new"),
        person("p7", mail="new"),
        person("p4", id="p3"),
    ]
    found = both.text(lines(*patches), "patch", piece_bytes=SMALL)
    assert isinstance(found, Counter)
    assert sorted(line for _, line, *_ in found) == [1, 2, 3, 4, 5, 7, 9, 10]
    assert both.text(lines(person("p3", mail="m4"), person("p4", mail="m3")), "patch", piece_bytes=SMALL)[2]
    assert not both.text(lines(person("p3", mail="m4")), "patch")[2]
    held = both.text(lines(person("p3", mail="m5"), person("p5", age=7)), "patch", piece_bytes=SMALL)
    assert isinstance(held, Counter)
    deletes = [edge("Knows", "p0", "p1"), {"type": "Note", "data": {}}, {"type": "Note", "data": {"id": "n0"}}]
    found = both.text(lines(*deletes), "delete", piece_bytes=SMALL)
    assert isinstance(found, Counter)
    assert found.total() == 3


@pytest.mark.full
def test_partial_loads_of_frames_and_nulled_values_are_equal_on_both_engines(tmp_path: Path, spark: Any) -> None:
    both = partial_engines(tmp_path, spark)
    local, bulk = both.graphs["local"], both.graphs["spark"]
    rows = [("p4", 5), ("p5", None)]
    frame = spark.createDataFrame(rows, "name string, age int")
    records = [{"name": name, "age": age} for name, age in rows]
    modes: tuple[Any, ...] = ("patch", "merge", "delete")
    for mode in modes:
        done: Any = bulk.refresh().load({"Person": frame}, mode=mode, spark=spark)
        wanted: Any = local.refresh().load({"Person": records}, mode=mode)
        assert (done.nodes, done.edges, done.missing, done.nulled) == (
            wanted.nodes, wanted.edges, wanted.missing, wanted.nulled,
        )  # fmt: skip
        assert bool(done.nulled) == (mode == "merge")
        both.compare("local", "spark")
    source.register(spark)
    writer = spark.createDataFrame([("p6", "oslo")], "name string, city string").write.format("omnigraph")
    writer.mode("append").options(graph=str(tmp_path / "spark"), type="Person", loadMode="patch").save()
    local.refresh().load({"Person": [{"name": "p6", "city": "oslo"}]}, mode="patch")
    both.compare("local", "spark")


def test_small_partitions_of_a_frame_share_tasks_and_fragments(tmp_path: Path, spark: Any) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Person { name: String @key }", durability="os")
    tasks = 4 * parallelism(spark)
    frame = spark.range(0, 5 * tasks, 1, 5 * tasks).selectExpr("concat('p', id) as name")
    graph.load({"Person": frame}, mode="append", spark=spark)
    fragments = graph.refresh().snapshot.table(TableKey.node("Person")).dataset.get_fragments()
    assert [fragment.count_rows() for fragment in fragments] == [5] * tasks


@pytest.mark.full
def test_partial_loads_on_spark_conflict_with_changes_of_their_rows_only(tmp_path: Path, spark: Any) -> None:
    both = partial_engines(tmp_path, spark)
    graph, other = both.graphs["spark"], omnigraph.open(tmp_path / "spark", durability="os")
    other.update("Person", where="name = 'p0'", set={"age": 50, "city": "oslo"})
    (tmp_path / "p0.ndjson").write_text(lines(person("p0", age=1)))
    on_spark: Any = {"engine": "spark", "spark": spark}
    modes: tuple[Any, ...] = ("patch", "delete")
    for mode in modes:
        with pytest.raises(VersionConflict, match="p0"):
            graph.load(str(tmp_path / "p0.ndjson"), mode=mode, **on_spark)
    (tmp_path / "p1.ndjson").write_text(lines(person("p1", age=1), person("p2", mail="new")))
    assert graph.load(str(tmp_path / "p1.ndjson"), mode="patch", **on_spark)
    assert graph.refresh().load(str(tmp_path / "p0.ndjson"), mode="delete", **on_spark)


@pytest.mark.full
def test_patches_of_most_rows_write_columns_on_both_engines(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patch_columns, "MIN_ROWS", 1)
    both = partial_engines(tmp_path, spark)
    ages = [person(f"p{i}", age=100 + i) for i in range(6)]
    others = [person("p6", city=None, tags=["x", "y"]), person("p7", mail="new")]
    assert both.text(lines(*ages, *others), "patch", piece_bytes=SMALL) == ({"Person": 8}, {}, True)
    for graph in both.graphs.values():
        fragments = graph.refresh()._handle.snapshot.table(TableKey.node("Person")).dataset.get_fragments()
        assert [len(fragment.metadata.files) for fragment in fragments] == [2]
        assert graph.query('match { $p: Person { mail: "new" } } return { $p.name }').scalars() == ["p7"]
        assert not graph.maintenance.check().findings


def test_streamed_blobs_are_equal_on_both_engines(tmp_path: Path, spark: Any) -> None:
    """The blobs are larger than the digits that a line may have in memory."""
    content = Random(5).randbytes(900_000)
    texts = [base64.b64encode(bytes([at]) + content).decode() for at in range(3)]
    both = Engines(tmp_path, spark, "node Doc { slug: String @key  body: Blob? }")
    rows = [{"type": "Doc", "data": {"slug": str(at), "body": f"base64:{text}"}} for at, text in enumerate(texts)]
    how = {"limits": LoadLimits(line_bytes=1 << 20)}
    assert both.text(lines(*rows), "append", **how)[0] == {"Doc": 3}
    rows[0]["data"]["body"] = rows[1]["data"]["body"]  # type: ignore[index]
    assert both.text(lines(*rows), "merge", **how)[2]
    assert not both.text(lines(*rows), "merge", **how)[2]
    for graph in both.graphs.values():
        assert graph.blob("Doc", "0", "body").read() == b"\1" + content
    external = {"type": "Doc", "data": {"slug": "e", "body": "file:///etc/passwd"}}
    assert [one[-1] for one in both.text(lines(external), "append", **how)] == ["ExternalBlobPolicyError"]
