"""Changes between two states; moved data is no change."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InputError
from omnigraph.history import commit_log
from omnigraph.history.diff import diff_table
from omnigraph.maintenance.index_maintenance import ensure_indices
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.storage.compact import stage_compaction
from omnigraph.storage.value_equality import same_values
from omnigraph.values.table_key import TableKey
from tests.merging.conftest import SCHEMA, Both, edge, person


def _same(one: list[Any], other: list[Any], kind: pa.DataType) -> Any:
    return same_values(pa.array(one, kind), pa.array(other, kind)).tolist()


NAN = math.nan


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        (pa.float64(), [NAN, 0.0, None, 1.0], [NAN, -0.0, None, None], [1, 0, 1, 0]),
        (pa.float32(), [NAN, 0.0, None, 1.0], [NAN, -0.0, None, None], [1, 0, 1, 0]),
        (pa.string(), ["", None, "a", "a"], [None, None, "a", "A"], [0, 1, 1, 0]),
        (pa.large_binary(), [b"", None, b"a"], [None, None, b"a"], [0, 1, 1]),
        (pa.int64(), [0, None, 2**60 + 1], [None, None, 2**60], [0, 1, 0]),
        (pa.list_(pa.string()), [[], ["a"], ["a", None], None], [None, ["b"], ["a", None], []], [0, 0, 1, 0]),
        (pa.list_(pa.float64()), [[NAN], [0.0], [1.0, 2.0]], [[NAN], [-0.0], [1.0]], [1, 0, 0]),
        (pa.list_(pa.float32(), 2), [[1, NAN], [0, 0], None], [[1, NAN], [0, -0.0], None], [1, 0, 1]),
    ],
    ids=str,
)
def test_values_are_equal_if_their_bytes_are(
    kind: pa.DataType, one: list[Any], other: list[Any], same: list[int]
) -> None:
    expected = [bool(each) for each in same]
    assert _same(one, other, kind) == expected
    # The same behind an offset, as slices of a larger column are.
    first, second = (pa.array([values[0], *values], kind)[1:] for values in (one, other))
    assert same_values(first, second).tolist() == expected


WIDE = """
node Thing {
    k: String @key
    f: F64?
    g: F32?
    s: String?
    l: [String]?
    v: Vector(3)?
    b: Blob?
    d: Date?
    t: DateTime?
}
"""


@pytest.fixture
def wide(tmp_path: Path) -> Graph:
    """A graph with a type of many kinds of values."""
    return omnigraph.init(tmp_path / "g", WIDE, durability="os")


def test_every_kind_of_value_is_compared(wide: Graph) -> None:
    full = {"f": 1.5, "g": 0.5, "s": "", "l": ["a"], "v": [1, 2, 3], "b": "base64:AAEC"}
    full |= {"d": "2024-01-31", "t": "2024-01-31T12:00:00Z"}
    names = [*full]
    wide.insert("Thing", *[{"k": n, **full} for n in (*names, "same")])
    start = wide.head.id
    other = {"f": -0.0, "g": 0.25, "s": None, "l": ["a", "b"], "v": [1, 2, 4], "b": "base64:AAED"}
    other |= {"d": "2024-02-01", "t": "2024-01-31T12:00:00.001Z"}
    wide.upsert("Thing", *[{"k": n, **full, n: other[n]} for n in names])
    found: dict[str, Any] = {one.id: one for one in wide.diff(start)}
    assert {name: one.changed for name, one in found.items()} == {n: (n,) for n in names}
    assert (found["s"].before["s"], found["s"].after["s"]) == ("", None)
    assert found["b"].after["b"] == b"\x00\x01\x03"


def _compacted(graph: Graph, key: str) -> None:
    """Rewrite the fragments of a table, as maintenance does."""

    def prepare(txn: Any) -> PublishPlan | None:
        staged = stage_compaction(txn.store, txn.table(TableKey(key)))
        return None if staged is None else PublishPlan("optimize", {TableKey(key): staged}, maintenance=True)

    assert publish(graph._handle.branch_state, prepare) is not None
    graph.refresh()


def test_diff_lists_changes_in_order_and_ignores_maintenance(both: Both) -> None:
    both.put("main", {"node:Person": {n: person(n, 0) for n in "abc"}})
    both.fork("dev")
    both.put("dev", {"node:Person": {"d": person("d"), "b": person("b", 1)}})
    both.drop("dev", "node:Person", "a")
    dev = both.on("dev")
    assert [(c.id, c.op) for c in dev.diff("main")] == [("a", "delete"), ("b", "update"), ("d", "insert")]
    before = dev.head.id
    _compacted(dev, "node:Person")
    assert dev.head.id != before
    assert list(dev.diff(before)) == []
    assert [(c.id, c.op) for c in dev.diff("main")] == [("a", "delete"), ("b", "update"), ("d", "insert")]
    assert dev.diff("main").summary() == {
        "inserts": 1,
        "updates": 1,
        "deletes": 1,
        "types": {"Person": {"insert": 1, "update": 1, "delete": 1}},
    }


def test_reinserted_row_is_an_update_or_unchanged(both: Both) -> None:
    both.put("main", {"node:Person": {n: person(n, 0) for n in "abc"}})
    start = both.on("main").head.id
    both.drop("main", "node:Person", "a", "b")
    both.put("main", {"node:Person": {"a": person("a", 0), "b": person("b", 9)}})
    assert [(c.id, c.op, c.changed) for c in both.on("main").diff(start)] == [("b", "update", ("p",))]


def test_overwrite_changes_only_rows_that_differ(both: Both) -> None:
    both.put("main", {"node:Person": {n: person(n, 0) for n in "abcde"}})
    graph = both.on("main")
    start = graph.head.id
    rows = [{"name": n, "p": 0 if n in "abc" else 1} for n in "abcdf"]
    graph.load({"Person": rows}, mode="overwrite")
    found = [(c.id, c.op) for c in graph.diff(start)]
    assert found == [("d", "update"), ("e", "delete"), ("f", "insert")]


def test_edge_changes_include_endpoints_and_moves(both: Both) -> None:
    people = {n: person(n) for n in "abc"}
    both.put("main", {"node:Person": people, "edge:Knows": {"k": edge("a", "b"), "l": edge("b", "c")}})
    start = both.on("main").head.id
    both.put("main", {"edge:Knows": {"k": edge("a", "c", 1)}})
    both.drop("main", "edge:Knows", "l")
    moved, gone = both.on("main").diff(start)
    assert (moved.changed, moved.endpoints) == (("dst", "p"), {"src": "a", "dst": "c"})
    assert moved.endpoints_before == {"src": "a", "dst": "b"}
    assert (gone.op, gone.endpoints, gone.after) == ("delete", {"src": "b", "dst": "c"}, None)
    table = both.on("main").diff(start).to_arrow()
    assert table["src"].to_pylist() == ["a", "b"]
    assert table["changed"].to_pylist() == [["dst", "p"], []]


def test_diff_accepts_every_kind_of_revision(both: Both) -> None:
    both.put("main", {"node:Person": {"a": person("a")}})
    both.fork("dev")
    both.put("dev", {"node:Person": {"b": person("b")}})
    both.put("main", {"node:Person": {"c": person("c")}})
    graph = both.on("main")

    def told(diff: Any) -> list[tuple[str, str]]:
        return [(one.id, one.op) for one in diff]

    assert told(graph.diff("main", "dev")) == [("b", "insert"), ("c", "delete")]
    assert told(graph.diff("dev")) == [("b", "delete"), ("c", "insert")]
    assert told(graph.diff("main..dev")) == told(graph.diff("main", "dev"))
    assert told(graph.diff("main...dev")) == [("b", "insert")]
    assert told(graph.diff("HEAD~1")) == [("c", "insert")]
    assert told(graph.diff(both.on("dev"), graph)) == told(graph.diff("dev"))
    assert told(graph.diff("main", "dev").deletes) == [("c", "delete")]
    assert told(graph.diff("main", "dev", types="Note")) == []
    assert told(graph.diff("main", "dev", kinds=["edge"])) == []
    assert told(graph.diff("main", "dev", ops="insert")) == [("b", "insert")]
    for wrong in ({"types": "Nobody"}, {"kinds": "vertex"}, {"ops": ["replace"]}):
        with pytest.raises(InputError):
            graph.diff("main", "dev", **wrong)


def test_schema_change_is_part_of_a_diff(both: Both) -> None:
    both.put("main", {"node:Note": {"n": {"p": 1, "q": None}}})
    graph = both.on("main")
    start = graph.head.id
    graph.schema.apply(SCHEMA.replace("node Note {", 'node Note { more: String @default("x")'))
    difference = graph.diff(start)
    assert (list(difference), len(difference), bool(difference)) == ([], 0, True)
    assert difference.schema_change is not None
    added = 'add property node:Note.more: String, set to "x" in existing entities'
    assert difference.schema_change.descriptions == (added,)
    assert "schema change" in repr(difference)
    for narrowed in (difference.updates, graph.diff(start, types="Person"), graph.diff(start, ops="update")):
        assert (narrowed.schema_change, bool(narrowed)) == (None, False)
    assert graph.diff(start, kinds="node").schema_change == difference.schema_change
    assert graph.diff("HEAD").schema_change is None


def test_added_nullable_property_is_no_boundary(both: Both) -> None:
    both.put("main", {"node:Note": {"n": {"p": 1, "q": None}, "m": {"p": 2, "q": None}}})
    graph = both.on("main")
    start = graph.head.id
    graph.schema.apply(SCHEMA.replace("node Note {", "node Note { more: String?"))
    assert list(graph.diff(start)) == []
    graph.upsert("Note", {"id": "n", "p": 1, "more": "x"})
    (change,) = graph.diff(start)
    assert (change.id, change.op, change.changed) == ("n", "update", ("more",))
    assert (change.before or {})["more"] is None


def test_tables_of_the_same_content_are_never_opened(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    both.put("main", {"node:Person": {"a": person("a")}, "node:Note": {"n": {"p": 1, "q": None}}})
    start = both.on("main").head.id
    ensure_indices(both.graph._handle.branch_state)
    both.put("main", {"node:Person": {"b": person("b")}})
    opened: list[str] = []
    import omnigraph.history.diff as module

    real = module.diff_table

    def watched(old: Any, new: Any, key: TableKey) -> Any:
        opened.append(key)
        return real(old, new, key)

    monkeypatch.setattr(module, "diff_table", watched)
    assert len(both.on("main").diff(start)) == 1
    assert opened == ["node:Person"]


@pytest.mark.parametrize("many", [4_096, 0], ids=["at once", "in stretches"])
def test_incremental_diff_equals_the_full_diff(both: Both, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """Shadow mode over a small life with everything that rewrites fragments."""
    monkeypatch.setattr("omnigraph.history.diff._MAX_DIRECT_ROWS", many)
    both.put("main", {"node:Person": {f"p{n:02}": person(f"p{n:02}", 0) for n in range(40)}})
    both.fork("dev")
    commits = [both.on("main").head.id]
    for step in range(6):
        branch = ("main", "dev")[step % 2]
        both.put(branch, {"node:Person": {f"p{n:02}": person(f"p{n:02}", step) for n in range(step, 40, 7)}})
        both.drop(branch, "node:Person", f"p{30 + step:02}")
        both.put(branch, {"node:Person": {f"n{branch}{step}": person(f"n{branch}{step}")}})
        if step == 3:
            _compacted(both.on(branch), TableKey("node:Person"))
        commits.append(both.on(branch).head.id)
    graph = both.on("main")
    shown = [graph.at(one).snapshot for one in commits]
    for old in shown:
        for new in shown:
            quick = diff_table(old, new, TableKey("node:Person"))
            whole = diff_table(old, new, TableKey("node:Person"), compare_all_rows=True)
            assert list(quick.records()) == list(whole.records())


def test_maintenance_between_changes_is_ignored(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides of it are compared; where a version in between is gone, all is."""
    monkeypatch.setattr("omnigraph.history.diff._MAX_DIRECT_ROWS", 0)
    both.put("main", {"node:Person": {f"p{n}": person(f"p{n}", 0) for n in range(30)}})
    graph = both.on("main")
    start = graph.head.id
    both.put("main", {"node:Person": {"p1": person("p1", 1), "p2": person("p2", 2)}})
    both.drop("main", "node:Person", "p3")
    _compacted(graph, "node:Person")
    middle = graph.log(limit=2)[1].id
    both.put("main", {"node:Person": {"p1": person("p1", 0), "p3": person("p3", 3)}})
    both.drop("main", "node:Person", "p2")
    wanted = [("p2", "delete", ()), ("p3", "update", ("p",))]
    read = _rows_read(monkeypatch)
    assert [(c.id, c.op, c.changed) for c in both.on("main").diff(start)] == wanted
    assert sum(read) < 30, "only what was written on each side"
    shown = graph.at(middle).snapshot
    place = Path(graph.uri) / shown.tables["node:Person"].location / "_versions"
    number = str(shown.table("node:Person").dataset.version)
    next(one for one in place.iterdir() if number in one.name).unlink()
    again = omnigraph.open(graph.uri, read_only=True)
    assert [(c.id, c.op, c.changed) for c in again.diff(start)] == wanted


def _rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each comparison has to look at, from now on."""
    from omnigraph.history import diff

    read: list[int] = []
    real = diff.differing_rows  # type: ignore[attr-defined]

    def watched(store: Any, found: Any, **how: Any) -> Any:
        read.append(found.max_rows_read)
        return real(store, found, **how)

    monkeypatch.setattr(diff, "differing_rows", watched)
    return read


def test_commits_before_a_sealed_chunk_can_be_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 4)
    graph = omnigraph.init(tmp_path / "g", "node A { k: String @key } node B { k: String @key }", durability="os")
    for number in range(12):
        graph.insert("A", {"k": f"{number:02}"})
    assert graph.snapshot.log._chunks, "no chunk was sealed"
    for number in range(1, 12):
        assert [change.id for change in graph.diff(f"HEAD~{number}", f"HEAD~{number - 1}")] == [f"{12 - number:02}"]
    assert graph.diff("HEAD~6", "HEAD", types=["B"]).summary()["inserts"] == 0
