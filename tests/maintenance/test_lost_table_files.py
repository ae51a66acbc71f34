"""Lost files of the head are reported by every command; intact tables keep working."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import HistoryReclaimed, StorageError
from omnigraph.history.commit import TableEntry
from omnigraph.storage.effects import Effects
from omnigraph.storage.store import open_store
from omnigraph.values.table_key import TableKey
from tests.cli.conftest import Program
from tests.maintenance.conftest import again
from tests.maintenance.test_check_damage import FULL, PERSON, data_file
from tests.maintenance.test_lance_panics import spoil_footer


def streamed(graph: Graph) -> list[object]:
    with graph.stream("match { $p: Person } return { $p.name }") as rows:
        return list(rows)


VERBS: dict[str, Callable[[Graph], object]] = {
    "query": lambda graph: graph.query("match { $p: Person } return { $p.name }"),
    "at": lambda graph: graph.query("match { $p: Person } return { $p.name }", at=graph.head.id),
    "stream": streamed,
    "export": lambda graph: list(graph.export()),
    "insert": lambda graph: graph.insert("Person", {"name": "zoe"}),
    "mutate": lambda graph: graph.mutate('delete Person where name = "bob"'),
    "ensure_indices": lambda graph: graph.maintenance.ensure_indices(),
}


def lose_table(graph: Graph) -> None:
    shutil.rmtree(Path(graph.uri, graph.snapshot.tables[PERSON].location))


def lose_data(graph: Graph) -> None:
    data_file(graph).unlink()


@pytest.mark.parametrize(
    ("lose", "verb"),
    [
        (lose_table, "query"),
        (lose_table, "ensure_indices"),
        (lose_data, "insert"),
        *(pytest.param(lose_table, verb, marks=FULL) for verb in VERBS),
        *(pytest.param(lose_data, verb, marks=FULL) for verb in VERBS),
    ],
)
def test_missing_head_files_are_reported_as_lost(graph: Graph, lose: Callable[[Graph], None], verb: str) -> None:
    if lose is lose_data and verb == "ensure_indices":
        graph.load({"Person": [{"name": "new"}]}, mode="append")  # else there is nothing to build
    lose(graph)
    before = graph.head.id
    with pytest.raises(StorageError, match=f"files for {PERSON} are missing") as told:
        VERBS[verb](again(graph))
    assert (told.value.kind, told.value.effect) == ("not_found", "none")
    assert "omnigraph check" in (told.value.hint or "")
    assert "backup" in (told.value.hint or "")
    assert again(graph).head.id == before


def test_files_removed_by_cleanup_are_reported_as_reclaimed(graph: Graph) -> None:
    old = graph.head.id
    graph.insert("Person", {"name": "zoe"})
    graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    with pytest.raises(HistoryReclaimed):
        again(graph).query("match { $p: Person } return { $p.name }", at=old)


@pytest.mark.parametrize("lose", [lose_table, pytest.param(lose_data, marks=FULL)])
def test_status_marks_the_damaged_table(graph: Graph, lose: Callable[[Graph], None], shell: Program) -> None:
    whole = {one.type_key: one.to_json() for one in graph.maintenance.status().datasets}
    lose(graph)
    told = json.loads(shell("status", graph.uri, "--json").out)
    rows = {one["type_key"]: one for one in told["datasets"]}
    assert rows.keys() == whole.keys()
    assert "missing" in rows[PERSON]["error"]
    assert rows[PERSON]["rows"] == 3
    assert all(rows[key] == whole[key] for key in rows if key != PERSON)
    assert {row["error"] for key, row in rows.items() if key != PERSON} == {None}
    assert [one["type_key"] for one in told["warnings"]] == [PERSON]
    text = shell("status", graph.uri).out
    assert "omnigraph check" in text
    assert "missing" in text


def spoil_rows(graph: Graph) -> None:
    path = data_file(graph)
    body = path.read_bytes()
    path.write_bytes(b"\xff" * 64 + body[64:])


@pytest.mark.parametrize(
    "spoil",
    [
        lose_table,
        pytest.param(lose_data, marks=FULL),
        pytest.param(lambda graph: spoil_footer(data_file(graph)), marks=FULL, id="footer"),
        pytest.param(spoil_rows, marks=FULL),
    ],
)
def test_damaged_table_does_not_block_optimize_of_others(
    graph: Graph, spoil: Callable[[Graph], None], shell: Program
) -> None:
    for name in ("rom", "bonn"):
        graph.insert("City", {"name": name})
        graph.insert("Person", {"name": name})
    spoil(graph)
    ended = shell("optimize", graph.uri, "--json")
    assert ended.code == 1
    rows = {one["type_key"]: one for one in json.loads(ended.out)["datasets"]}
    assert rows["node:City"]["committed"]
    assert rows["node:City"]["error"] is None
    assert not rows[PERSON]["committed"]
    assert PERSON in rows[PERSON]["error"]
    assert len(again(graph).table("City").get_fragments()) == 1
    told = again(graph).maintenance.optimize()
    assert [one.type_key for one in told.damaged] == [PERSON]
    assert "1 damaged" in repr(told)
    text = shell("optimize", graph.uri)
    assert text.code == 1
    assert PERSON in text.out
    assert "omnigraph check" in text.err


def test_transient_failure_triggers_no_search_for_missing_files(graph: Graph) -> None:
    from omnigraph.history.missing_table_files import report_missing_files

    store = open_store(graph.uri, effects=Effects(read_only=True))

    def asked() -> dict[TableKey, TableEntry]:
        raise AssertionError

    for kind, effect in (("transient", "none"), ("unknown", "unknown")):
        with pytest.raises(StorageError) as told, report_missing_files(store, asked):
            raise StorageError(kind=kind, effect=effect)
        assert told.value.kind == kind
