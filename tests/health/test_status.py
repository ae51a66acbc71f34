"""What a graph consists of, warnings with the command that helps, and what a write says of it."""

import json
import logging
from pathlib import Path

import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.health import limits
from tests.cli.conftest import Program
from tests.health.conftest import SCHEMA, again, files

PERSON = "node:Person"


def test_numbers_are_those_of_the_store(graph: Graph) -> None:
    before = files(graph)
    told = graph.status()
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


def test_unreclaimed_bytes_go_with_a_cleanup(graph: Graph) -> None:
    for number in range(3):
        graph.load({"Person": [{"name": "ada", "age": number}]}, mode="merge")
    before = graph.status()
    graph.cleanup(keep=1, grace=0, confirm=True)
    after = graph.status()
    assert after.unreclaimed_bytes < before.unreclaimed_bytes
    assert after.bytes < before.bytes


def test_rows_without_an_index_are_counted(graph: Graph) -> None:
    assert graph.ensure_indices() is not None
    assert {one.unindexed_rows for one in graph.status().datasets} == {0}
    graph.load({"Person": [{"name": n} for n in ("x", "y")]}, mode="append")
    counted = {one.type_key: one.unindexed_rows for one in graph.status().datasets}
    assert counted[PERSON] == 2


def test_every_limit_warns_with_a_command(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FRAGMENTS", "UNINDEXED", "COMMITS", "UNRECLAIMED", "INTENTS"):
        monkeypatch.setattr(limits, name, -1)
    monkeypatch.setattr(limits, "CACHE_SHARE", -1.0)
    monkeypatch.setattr(limits, "max", min, raising=False)
    told = {one.what: one for one in graph.status().warnings}
    assert told.keys() == {
        "fragments",
        "rows without an index",
        "commits in the log",
        "bytes that no branch shows",
        "unfinished operations",
        "bytes in the cache directory",
    }
    assert f"omnigraph optimize {graph.uri}" in str(told["fragments"])
    assert f"omnigraph cleanup {graph.uri}" in told["bytes that no branch shows"].command


def test_a_write_says_it_once(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "FRAGMENTS", 1)
    with caplog.at_level(logging.WARNING, "omnigraph"):
        graph.load({"Person": [{"name": "x"}]}, mode="append")
        graph.checkout("side").load({"Person": [{"name": "y"}]}, mode="append")
        graph.load({"Person": [{"name": "z"}]}, mode="append")
    told = [one for one in caplog.records if "fragments" in one.getMessage()]
    assert len(told) == 1
    assert "omnigraph optimize" in told[0].getMessage()
    assert [one.type_key for one in graph.warnings] == [PERSON]
    assert again(graph).warnings == []


def test_a_write_asks_the_store_for_nothing_more(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FRAGMENTS", 1)
    monkeypatch.setattr(limits, "UNINDEXED", -1)
    graph.load({"Person": [{"name": "x"}]}, mode="append")
    from omnigraph.health.written import written_warnings

    opened, commit = graph._line.base(), graph.head
    held = graph._store.handles.get(
        opened.state.tables[PERSON].location, opened.state.tables[PERSON].lance_version
    )
    assert held is not None
    before = held.io_stats_snapshot().read_iops
    assert written_warnings(graph._store, opened.state, commit)
    assert held.io_stats_snapshot().read_iops == before


def test_the_shell_tells_on_standard_error(
    shell: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    graph.load({"City": [{"name": "a"}]}, mode="append")
    monkeypatch.setattr(limits, "FRAGMENTS", 1)
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
