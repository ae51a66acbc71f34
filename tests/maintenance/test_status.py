"""Status of a graph: its numbers, warnings with the command that helps, warnings of writes."""

import json
import logging
import shlex
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import StorageError
from omnigraph.maintenance import health_thresholds, write_warnings
from omnigraph.storage import object_backend, objects
from omnigraph.values.table_key import TableKey
from tests.cli.conftest import Program
from tests.maintenance.conftest import SCHEMA, again, files, foreign_append

PERSON = TableKey("node:Person")


def test_status_numbers_match_the_store(graph: Graph) -> None:
    before = files(graph)
    told = graph.maintenance.status()
    assert files(graph) == before
    assert told.bytes == sum(before.values())
    assert (told.branches, told.tags, told.intents) == (2, 1, 0)
    assert told.commits == len(graph.log())
    person = next(one for one in told.datasets if one.type_key == PERSON)
    dataset = graph.table("Person")
    assert (person.rows, person.fragments) == (3, len(dataset.get_fragments()))
    place = graph.snapshot.tables[PERSON].location
    assert person.bytes == sum(size for name, size in before.items() if name.startswith(place))
    assert 0 < told.unreclaimed_bytes < told.bytes
    assert told.warnings == ()
    assert "0 warnings" in repr(told)


def test_cleanup_removes_unreclaimed_bytes(graph: Graph) -> None:
    for number in range(3):
        graph.load({"Person": [{"name": "ada", "age": number}]}, mode="merge")
    before = graph.maintenance.status()
    graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    after = graph.maintenance.status()
    assert after.unreclaimed_bytes < before.unreclaimed_bytes
    assert after.bytes < before.bytes


def test_rows_without_an_index_are_counted(graph: Graph) -> None:
    assert graph.maintenance.ensure_indices() is not None
    assert {one.unindexed_rows for one in graph.maintenance.status().datasets} == {0}
    graph.load({"Person": [{"name": n} for n in ("x", "y")]}, mode="append")
    counted = {one.type_key: one.unindexed_rows for one in graph.maintenance.status().datasets}
    assert counted[PERSON] == 2


def test_every_limit_warns_with_a_command(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FRAGMENTS", "UNINDEXED", "COMMITS", "UNRECLAIMED", "INTENTS"):
        monkeypatch.setattr(health_thresholds, name, -1)
    monkeypatch.setattr(health_thresholds, "CACHE_SHARE", -1.0)
    monkeypatch.setattr(health_thresholds, "max", min, raising=False)
    told = {one.what: one for one in graph.maintenance.status().warnings}
    assert told.keys() == {
        "fragments",
        "unindexed rows",
        "commits in the log",
        "bytes not referenced by any branch",
        "unfinished operations",
        "bytes in the cache directory",
    }
    assert f"omnigraph optimize {graph.uri}" in str(told["fragments"])
    assert f"omnigraph cleanup {graph.uri}" in told["bytes not referenced by any branch"].command


def test_write_warns_once(graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(health_thresholds, "FRAGMENTS", 1)
    with caplog.at_level(logging.WARNING, "omnigraph"):
        graph.load({"Person": [{"name": "x"}]}, mode="append")
        graph.checkout("side").load({"Person": [{"name": "y"}]}, mode="append")
        graph.load({"Person": [{"name": "z"}]}, mode="append")
    told = [one for one in caplog.records if "fragments" in one.getMessage()]
    assert len(told) == 1
    assert "omnigraph optimize" in told[0].getMessage()
    assert [one.type_key for one in graph.warnings] == [PERSON]
    assert again(graph).warnings == []


def test_write_warnings_cost_no_requests(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_thresholds, "FRAGMENTS", 1)
    monkeypatch.setattr(health_thresholds, "UNINDEXED", -1)
    graph.load({"Person": [{"name": "x"}]}, mode="append")
    from omnigraph.maintenance.commit_warnings import commit_warnings

    opened, commit = graph._handle.branch_state.last_known(), graph.head
    held = graph._handle.store.dataset_cache.get(
        opened.state.tables[PERSON].location, opened.state.tables[PERSON].lance_version
    )
    assert held is not None
    before = held.io_stats_snapshot().read_iops
    assert commit_warnings(graph._handle.store, opened.state, commit)
    assert held.io_stats_snapshot().read_iops == before


def test_command_prints_warnings_to_standard_error(
    shell: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    graph.load({"City": [{"name": "a"}]}, mode="append")
    monkeypatch.setattr(health_thresholds, "FRAGMENTS", 1)
    done = shell("mutate", "-e", 'insert City { name: "b" }', "--store", "g", "--json")
    assert "warning: node:City has 2 fragments" in done.err
    assert json.loads(done.out)["affected_nodes"] == 1
    line = b'{"type": "City", "data": {"name": "c"}}'
    done = shell("load", "g", "--data", "-", "--mode", "append", stdin=line)
    assert "run `omnigraph optimize" in done.err
    assert "warning" not in done.out
    assert "warning" in shell("status", "g").out
    told = json.loads(shell("status", "g", "--json").out)
    assert [one["what"] for one in told["warnings"]] == ["fragments"]
    quiet = shell("--quiet", "mutate", "-e", 'insert City { name: "d" }', "--store", "g")
    assert "warning" not in quiet.err


def test_a_write_warns_of_a_full_cache(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "cache"
    place.mkdir()
    (place / "x.arrays").write_bytes(b"x" * 950)
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(place))
    monkeypatch.setenv("OMNIGRAPH_CACHE_BYTES", "1000")
    monkeypatch.setattr(write_warnings, "_write_counter", count(1))
    with caplog.at_level(logging.WARNING, "omnigraph"):
        graph.insert("City", {"name": "x"})
        assert graph.warnings == [], "not every write looks"
        monkeypatch.setattr(write_warnings, "_write_counter", count())
        graph.insert("City", {"name": "y"})
        graph.insert("City", {"name": "z"})
    (told,) = graph.warnings
    assert (told.what, told.found, told.limit) == ("bytes in the cache directory", 950, 900)
    assert "OMNIGRAPH_CACHE_BYTES" in told.command
    assert [one.getMessage() for one in caplog.records] == [str(told)]


def test_write_warns_of_unreferenced_bytes(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_warnings, "TABLE_CHECK_INTERVAL", 1)
    graph.load({"City": [{"name": f"n{n}"} for n in range(500)]}, mode="append")
    graph.load({"City": [{"name": "only"}]}, mode="overwrite")
    assert graph.warnings == []
    monkeypatch.setattr(health_thresholds, "UNRECLAIMED", 1000)
    graph.branches.create("also", commit=graph.log()[1].id)
    graph.insert("City", {"name": "x"})
    assert graph.warnings == [], "a branch shows them"
    graph.branches.delete("also", force=True)
    graph.insert("City", {"name": "y"})
    (told,) = graph.warnings
    assert (told.what, told.type_key) == ("bytes not referenced by any branch", "node:City")
    assert told.found > 1000
    assert f"run `omnigraph cleanup {graph.uri} --keep 10 --older-than 7d --confirm`" in str(told)


def test_byte_count_check_is_rare_and_one_request(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = objects.ControlObjects.list_first

    def first(self: objects.ControlObjects, prefix: str, most: int) -> Sequence[object_backend.ListedObject]:
        asked.append(prefix)
        return real(self, prefix, most)

    monkeypatch.setattr(objects.ControlObjects, "list_first", first)
    start = graph.snapshot.manifest_version
    monkeypatch.setattr(write_warnings, "TABLE_CHECK_INTERVAL", start + 3)
    for n in range(5):
        graph.insert("City", {"name": f"c{n}"})
    place = graph.snapshot.tables[TableKey("node:City")].location
    assert [one for one in asked if one.startswith("nodes")] == [f"{place}/data"]


def test_failed_warning_check_does_not_fail_the_write(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_warnings, "TABLE_CHECK_INTERVAL", 1)

    def fail(*_: object) -> None:
        raise StorageError("it does not answer", kind="transient", effect="none")

    monkeypatch.setattr(objects.ControlObjects, "list_first", fail)
    assert graph.insert("City", {"name": "x"})


def test_singular_and_zero_counts_are_worded_correctly(shell: Program, graph: Graph, tmp_path: Path) -> None:
    assert ", 1 manifest version; " in shell_status(shell, tmp_path)
    assert " row" not in shell("check", graph.uri, "--quick").out
    assert " rows" in shell("check", graph.uri).out
    graph.maintenance.optimize()
    graph.load({"Person": [{"name": f"n{n}"} for n in range(20)]}, mode="append")
    graph.maintenance.optimize()
    graph.delete("Person", where='name >= "n"')
    told = shell("optimize", graph.uri).out
    assert "node:Person: 1 fragment rewritten to remove deleted rows" in told


def shell_status(shell: Program, tmp_path: Path) -> str:
    omnigraph.init(tmp_path / "new", SCHEMA, durability="os")
    return shell("status", "new").out


def test_built_indexes_are_named(shell: Program, graph: Graph) -> None:
    graph.load({"City": [{"name": "bern"}], "Person": [{"name": "x"}]}, mode="append")
    told = shell("ensure-indices", graph.uri, "--engine", "local")
    assert "node:City: built the indexes on id, name\n" in told.out
    assert "node:Person: built the indexes on badge, id, name\n" in told.out
    assert told.out.splitlines()[-1].startswith("commit ")
    assert shell("ensure-indices", graph.uri).out == "indexes already cover all rows\n"
    graph.refresh().insert("City", {"name": "y"})
    done = json.loads(shell("ensure-indices", graph.uri, "--json").out)
    assert done["datasets"] == [{"type_key": "node:City", "indexes": ["id", "name"]}]
    assert done["pending_indexes"] == []


def test_snapshot_reports_when_optimize_is_due(shell: Program, graph: Graph) -> None:
    graph.maintenance.ensure_indices()
    graph.load({"City": [{"name": "bern"}]}, mode="append")
    foreign_append(graph, "Person", {"id": "eve", "name": "eve"})
    told = json.loads(shell("snapshot", graph.uri, "--json").out)
    rows = {one["type_name"]: one for one in told["datasets"]}
    city, person = rows["City"], rows["Person"]
    entry = graph.snapshot.tables[TableKey("node:City")]
    assert (city["entity_count"], city["fragment_count"]) == (2, 2)
    assert city["index_coverage"]["id"] == {"kind": "BTREE", "covered_rows": 1}
    assert city["lance_version"] == str(entry.lance_version)
    assert (city["lance_head_version"], person["lance_head_version"]) == (1, 2)


@pytest.mark.parametrize("folder", ["g", "my graph"])
def test_history_that_a_cleanup_can_remove_is_named(shell: Program, tmp_path: Path, folder: str) -> None:
    graph = omnigraph.init(tmp_path / folder, SCHEMA, durability="os")
    for name in "ab":
        graph.insert("City", {"name": name})
    removable = graph.maintenance.status().unreclaimed_bytes
    assert removable
    assert (
        f"a cleanup can free up to {removable:,} bytes of history: "
        f"`omnigraph cleanup {shlex.quote(graph.uri)} --keep 10 --older-than 7d` shows how many\n"
    ) in shell("status", folder).out
    graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    assert graph.maintenance.status().unreclaimed_bytes == 0
    assert "a cleanup can free" not in shell("status", folder).out
