"""Cleanups in operation: what is kept after merges, what is reported, and how they end."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.engine import result_stream
from omnigraph.errors import AlreadyExists, Conflict, HistoryReclaimed
from omnigraph.maintenance.retention.report import Cleanup
from omnigraph.publish import read_lease
from omnigraph.storage.effects import Fault
from omnigraph.values.table_key import TableKey
from tests.cli.conftest import Program
from tests.cli.conftest import omnigraph as shell  # noqa: F401 - a fixture
from tests.evolve.test_concurrent_writers import before_effect, elsewhere
from tests.rig.invariants import files
from tests.rig.plugin import S3

SCHEMA = "node P { k: String @key  n: I32? }\nnode Q { k: String @key }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "g", SCHEMA, durability="os")


def write(graph: Graph, count: int, start: int = 0) -> None:
    for n in range(start, start + count):
        graph.upsert("P", {"k": f"p{n % 5}", "n": n})


def clean(graph: Graph, keep: int = 1) -> Cleanup:
    return graph.maintenance.cleanup(keep=keep, grace=0, confirm=True)


def again(graph: Graph, branch: str = "main") -> Graph:
    return omnigraph.open(graph.uri, branch=branch)


@pytest.mark.parametrize("keep", [0, 1])
def test_newest_commit_is_always_kept(graph: Graph, keep: int) -> None:
    write(graph, 6)
    shown = list(graph.export())
    clean(graph, keep)
    assert list(again(graph).export()) == shown
    with pytest.raises(HistoryReclaimed):
        list(again(graph).at("HEAD~1").export())


def test_merge_back_works_after_a_cleanup(graph: Graph) -> None:
    """Nothing but the history of the branch remembers the commit of main that it merged."""
    write(graph, 3)
    side = graph.branches.create("f")
    graph.load({"P": [{"k": "p0", "n": 50}], "Q": [{"k": "of main"}]}, mode="merge")
    side.merge("main", into="f")
    side.refresh()
    for n in range(5):  # more than are kept
        side.load({"P": [{"k": "p9", "n": n}], "Q": [{"k": f"of f{n}"}]}, mode="merge")
    for n in range(12):
        graph.load({"P": [{"k": "p1", "n": n}], "Q": [{"k": f"q{n}"}]}, mode="merge")
    clean(graph, 2)
    fresh = again(graph)
    fresh.merge("f", into="main")
    found = fresh.refresh().query("match { $p: P } return { $p.k as k, $p.n as n }")
    assert {one["k"]: one["n"] for one in found} == {"p0": 50, "p1": 11, "p2": 2, "p9": 4}
    assert len(fresh.query("match { $q: Q } return { $q.k }")) == 18
    assert not fresh.maintenance.check().findings


def test_unreadable_branch_stops_a_cleanup(graph: Graph) -> None:
    write(graph, 4)
    side = graph.branches.create("side")
    write(side, 2)
    place = Path(graph.uri, "__branches", side._handle.branch_state.ulid, "_versions")
    for one in place.iterdir():
        one.write_bytes(b"damaged")
    before = files(graph._handle.store)
    with pytest.raises(Conflict, match=r"'side' cannot be read .*nothing was removed"):
        clean(again(graph))
    assert files(graph._handle.store) == before


def test_a_head_that_lost_a_file_stops_a_cleanup(graph: Graph) -> None:
    """The state before it may be the last one that can be read."""
    graph.load({"P": [{"k": "a"}]}, mode="append")
    graph.load({"P": [{"k": "b"}]}, mode="append")
    newest = max(Path(graph.uri).glob("nodes/*/data/*.lance"), key=lambda one: one.stat().st_ctime_ns)
    newest.unlink()
    before = files(graph._handle.store)
    with pytest.raises(Conflict, match=r"branch 'main' cannot be read .*nothing was removed"):
        clean(again(graph))
    assert files(graph._handle.store) == before
    assert len(again(graph).at("HEAD~1").query("match { $p: P } return { $p.k }")) == 1


def test_report_names_what_retains_history(graph: Graph) -> None:
    write(graph, 2)
    graph.tag("v1")
    with graph.maintenance.hold():
        assert graph.maintenance.cleanup(keep=1).held_by == ("a reader on main", "tag 'v1'")
    graph.tags.delete("v1")
    assert clean(graph).held_by == ()


def test_files_of_a_running_export_are_retained(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.load({"P": [{"k": "a"}], "Q": [{"k": "of old"}]}, mode="append")
    for held in (False, True):
        monkeypatch.setattr(read_lease, "LONG_READ_ROWS", 1 if held else 100)
        lines = again(graph).export()
        assert next(lines)
        graph.load({"P": [{"k": "a"}], "Q": [{"k": "of new"}]}, mode="overwrite")
        clean(graph)
        if held:
            assert len(list(lines)) == 1
            assert not list(Path(graph.uri, "__recovery").glob("*.json"))
        else:
            with pytest.raises(HistoryReclaimed):
                list(lines)


@pytest.mark.parametrize("seconds", [0.0, 1e9])
@pytest.mark.parametrize("kind", ["export", "baseline", "stream"])
def test_a_slow_read_of_a_small_graph_is_protected(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, kind: str, seconds: float
) -> None:
    monkeypatch.setattr(result_stream, "BATCH_ROWS", 1)
    monkeypatch.setattr(read_lease, "LONG_READ_SECONDS", seconds)  # no time passes in this test
    rows = [{"k": f"p{number}"} for number in range(50)]
    graph.load({"P": rows, "Q": [{"k": "of old"}]}, mode="append")
    reader = again(graph)
    readers: dict[str, Callable[[], Iterator[object]]] = {
        "export": reader.export,
        "baseline": reader.changes.baseline,
        "stream": lambda: reader.stream("match { $p: P } return { $p.k }"),
    }
    items = readers[kind]()
    assert [next(items), next(items)]
    leases = Path(graph.uri, "__recovery")
    assert len(list(leases.glob("*.json"))) == (seconds == 0.0)
    if seconds == 0.0:
        graph.load({"P": [{"k": "a"}], "Q": [{"k": "of new"}]}, mode="overwrite")
        clean(graph)
    assert len(list(items)) == (48 if kind == "stream" else 49)
    assert not list(leases.glob("*.json"))


def test_failed_table_is_reported_and_others_are_cleaned(
    graph: Graph,
    shell: Program,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for n in range(4):
        graph.load({"P": [{"k": "p", "n": n}], "Q": [{"k": f"q{n}"}]}, mode="merge")
    stuck = graph.snapshot.tables[TableKey("node:P")].location
    from omnigraph.storage import objects

    real = objects.ControlObjects.remove

    def remove(self: objects.ControlObjects, name: str) -> None:
        if name.startswith(stuck):
            raise PermissionError(13, "Permission denied")
        real(self, name)

    monkeypatch.setattr(objects.ControlObjects, "remove", remove)
    done = shell("cleanup", graph.uri, "--keep", "1", "--grace", "0s", "--confirm", "--json")
    rows = {one["type_key"]: one for one in json.loads(done.out)["datasets"]}
    assert done.code == 1
    assert "Permission denied" in rows["node:P"]["error"]
    assert (rows["node:Q"]["error"], rows["node:Q"]["old_versions_removed"] > 0) == (None, True)
    monkeypatch.undo()
    assert clean(again(graph)).datasets[0].error is None
    assert clean(again(graph)).datasets == ()


@pytest.mark.parametrize("count", [24, pytest.param(500, marks=pytest.mark.full)])
def test_manifest_versions_are_bounded_and_retained_commits_readable(graph: Graph, count: int) -> None:
    side = graph.branches.create("side")
    write(side, 2)
    write(graph, count)
    log = [one.id for one in graph.log(limit=count + 10)]
    clean(graph, 10)
    states = list(Path(graph.uri, "__manifest", "_versions").iterdir())
    assert len(states) <= 10 + 2 + 2
    fresh = again(graph)
    assert [one.id for one in fresh.log(limit=count + 10)] == log, "the log stays whole"
    for one in log[:10]:
        assert len(list(fresh.at(one).export())) > 0
    with pytest.raises(HistoryReclaimed):
        list(fresh.at(log[11]).export())
    fresh.branches.create("later", commit=log[9])
    fresh.branches.delete("side", force=True)


@pytest.mark.parametrize("rounds", [4, pytest.param(20, marks=pytest.mark.full)])
def test_merged_history_reads_the_same_after_maintenance(graph: Graph, rounds: int) -> None:
    write(graph, 2)
    names = ("a", "b")
    for name in names:
        graph.branches.create(name)
    for n in range(rounds):
        name = names[n % 2]
        side = again(graph, name)
        side.insert("Q", {"k": f"q{n}"})
        again(graph).merge(name, into="main")
        again(graph).merge("main", into=names[(n + 1) % 2])
        write(again(graph), 1, n)
    before = {name: list(again(graph, name).export()) for name in ("main", *names)}
    for name in before:
        again(graph, name).maintenance.optimize()
    clean(again(graph), 3)
    assert {name: list(again(graph, name).export()) for name in before} == before
    for name in names:
        again(graph).merge(name, into="main")
    assert not again(graph).maintenance.check().findings


def dropped(graph: Graph) -> str:
    """A table that nothing names any more, and its directory."""
    graph.load({"P": [{"k": "p"}], "Q": [{"k": "q"}]}, mode="append")
    place: str = graph.snapshot.tables[TableKey("node:Q")].location
    graph.schema.apply("node P { k: String @key  n: I32? }", allow_data_loss=True)
    return place


def test_dropped_tables_are_removed_only_on_request(
    graph: Graph,
    shell: Program,  # noqa: F811 - the fixture
) -> None:
    place = dropped(graph)
    held = {name for name in files(graph._handle.store) if name.startswith(place)}
    young = graph.maintenance.cleanup(keep=1, purge_dropped=True, confirm=True)
    assert (young.unreferenced_paths, young.unreferenced_bytes) == ((), 0), "younger than the grace"
    done = clean(graph)
    assert done.unreferenced_paths == (place,)
    assert done.unreferenced_bytes > 0
    assert held <= files(graph._handle.store).keys()
    told = shell("cleanup", graph.uri, "--keep", "1", "--grace", "0s")
    assert f"{place}: this table is no longer referenced" in told.out
    assert "--purge-dropped to remove them" in told.err
    flags = ("--keep", "1", "--grace", "0s", "--purge-dropped")
    seen = json.loads(shell("cleanup", graph.uri, *flags, "--json").out)
    assert seen["unreferenced_paths"] == [place]
    assert held <= files(graph._handle.store).keys(), "a preview"
    gone = json.loads(shell("cleanup", graph.uri, *flags, "--confirm", "--json").out)
    assert gone["bytes_removed"] >= done.unreferenced_bytes
    assert not [name for name in files(graph._handle.store) if name.startswith(place)]
    assert clean(graph).unreferenced_paths == ()
    assert len(list(again(graph).export())) == 1


def test_erase_removes_dropped_tables(graph: Graph) -> None:
    place = dropped(graph)
    graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    assert not [name for name in files(graph._handle.store) if name.startswith(place)]


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.full)])
def test_table_staged_by_a_running_operation_is_not_dropped(tmp_path: Path, every: int) -> None:
    """Whoever makes a table names it later; a cleanup between them changes no outcome."""
    more = f"{SCHEMA}\nnode R {{ k: String @key }}"
    for number in range(1, 40, every):
        graph = omnigraph.init(tmp_path / f"g{number}", SCHEMA, durability="os")
        graph.insert("P", {"k": "p"})
        ran: list[Cleanup] = []

        def meanwhile(one: Graph = graph, seen: list[Cleanup] = ran) -> None:
            seen.append(one.maintenance.cleanup(keep=1, grace=0, purge_dropped=True, confirm=True))

        other = elsewhere(graph)  # which does not keep its branch for itself
        with before_effect(other, number, meanwhile):
            other.retry(lambda g: g.schema.apply(more))
        fresh = again(graph)
        fresh.insert("R", {"k": "r"})
        assert len(list(fresh.export())) == 2
        assert not fresh.maintenance.check().findings
        if not ran:
            return


def test_report_members_match_the_documentation(graph: Graph, shell: Program) -> None:  # noqa: F811
    write(graph, 3)
    told = json.loads(shell("cleanup", graph.uri, "--keep", "1", "--grace", "0s", "--json").out)
    assert told.keys() == {
        *("uri", "keep_versions", "older_than_secs", "preview", "datasets", "bytes_removed"),
        *("old_versions_removed", "unreferenced_paths", "unreferenced_bytes", "orphans"),
        *("commits_kept", "spared_files", "spared_bytes", "deleted_rows", "held_by"),
        *("engine", "unnamed"),
    }
    row = {"type_key", "old_versions_removed", "bytes_removed", "error"}
    assert all(one.keys() == row for one in told["datasets"])
    assert told["orphans"] == {"reclaimed": [], "failures": []}
    assert (told["preview"], told["engine"]) == (True, "local")


def test_unnamed_branch_is_an_orphan(graph: Graph) -> None:
    write(graph, 2)
    # The intent, the verdict, the manifest; the name is taken by another at the fourth effect.
    fault = Fault(4, "before", AlreadyExists("taken"))
    with graph._handle.store.effects.failing(fault), pytest.raises(AlreadyExists):
        graph.branches.create("side")
    (lost,) = {"/".join(one.split("/")[:2]) for one in files(graph._handle.store) if "__branches" in one}
    done = clean(graph)
    assert done.to_json()["orphans"] == {"reclaimed": [["__manifest", lost]], "failures": []}
    assert not [name for name in files(graph._handle.store) if name.startswith(lost)]


def test_files_kept_by_the_grace_period_are_reported(graph: Graph, shell: Program) -> None:  # noqa: F811
    write(graph, 3)
    wide = graph.maintenance.cleanup(keep=1, grace=0)
    for flags in ((), ("--confirm",)):
        told = shell("cleanup", graph.uri, "--keep", "1", *flags)
        assert told.code == 0
        report = json.loads(shell("cleanup", graph.uri, "--keep", "1", *flags, "--json").out)
        assert (report["bytes_removed"], report["spared_bytes"]) == (0, wide.bytes_removed)
        verb = "nothing removed" if flags else "nothing to remove"
        spared = f"{report['spared_files']} files ({wide.bytes_removed:,} bytes)"
        assert f"{verb}: {spared} are still within the grace period of 60m" in told.err
    assert "younger" not in shell("cleanup", graph.uri, "--keep", "9", "--grace", "0s").err


Spoil = Callable[[Graph], object]


@pytest.mark.parametrize(
    ("extra", "more"),
    [(lambda g: None, True), (lambda g: g.tag("v1"), False), (lambda g: g.branches.create("side"), False)],
    ids=["alone", "tagged", "branched"],
)
def test_preview_of_an_erase_counts_what_it_removes(graph: Graph, extra: Spoil, more: bool) -> None:
    graph.load({"P": [{"k": f"p{n}", "n": n} for n in range(400)]}, mode="append")
    graph.maintenance.ensure_indices()
    graph.delete("P", where="n < 300")
    extra(graph)
    plain = graph.maintenance.cleanup(keep=1, grace=0)
    told = graph.maintenance.cleanup(keep=1, grace=0, erase=True)
    assert (plain.deleted_rows, told.deleted_rows) == (None, 300)
    assert (told.bytes_removed > plain.bytes_removed) == more
    person = {one.type_key: one for one in told.datasets}.get("node:P")
    done = graph.maintenance.cleanup(keep=1, grace=0, erase=True, confirm=True)
    if more and person is not None:
        real = {one.type_key: one for one in done.datasets}["node:P"]
        # A rewrite leaves a version in between, which is a few files more.
        assert person.bytes_removed <= real.bytes_removed
        assert person.bytes_removed > 0.6 * real.bytes_removed
        assert person.old_versions_removed <= real.old_versions_removed


def test_preview_of_an_erase_reports_what_is_kept(
    graph: Graph,
    shell: Program,  # noqa: F811 - the fixture
) -> None:
    graph.load({"P": [{"k": f"p{n}", "n": n} for n in range(3)]}, mode="append")
    graph.delete("P", where="n = 1")
    flags = ("cleanup", graph.uri, "--erase", "--keep")
    spared = shell(*flags, "5", "--grace", "0s")
    assert "contain 1 deleted row; recent and retained data is not erased" in spared.err
    bare = shell(*flags, "1", "--grace", "0s")
    assert "contain 1 deleted row; files that contain deleted rows, and all indexes" in bare.err


def test_duration_requires_a_unit(graph: Graph, shell: Program) -> None:  # noqa: F811
    for flags in (("--older-than", "7"), ("--keep", "1", "--grace", "7")):
        bare = shell("cleanup", graph.uri, *flags)
        assert (bare.code, bare.out) == (1, "")
        assert "'7' has no unit: did you mean 7d or 7s?" in bare.err
    asked = shell("cleanup", graph.uri)
    assert asked.code == 2
    assert "--keep 10 is a good starting point" in asked.err


@pytest.mark.parametrize("flags", [("--confirm",), ("--confirm", "--json")])
def test_cleanup_of_a_remote_store_requires_confirmation(
    shell: Program,  # noqa: F811 - the fixture
    flags: tuple[str, ...],
) -> None:
    done = shell("cleanup", "s3://nobody/here", "--keep", "1", *flags)
    assert (done.code, done.out) == (1, "")
    assert "cleanup on s3://nobody/here requires confirmation; nothing was changed" in done.err
    assert "--yes" in done.err


@pytest.mark.full
def test_confirmed_cleanup_of_a_remote_store_runs(s3: S3, shell: Program) -> None:  # noqa: F811
    graph = omnigraph.init(s3.url, SCHEMA)
    write(graph, 2)
    flags = ("cleanup", s3.url, "--keep", "1", "--grace", "0s")
    seen = shell(*flags)
    assert seen.code == 0
    assert "nothing was removed" in seen.err
    done = shell(*flags, "--confirm", "--yes", "--json")
    assert (done.code, json.loads(done.out)["preview"]) == (0, False)
    assert f"cleanup {s3.url} (direct, remote)" in done.err
    quiet = shell("--quiet", *flags, "--confirm", "--yes")
    assert quiet.err == ""
