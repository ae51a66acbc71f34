"""`omnigraph upgrade`: a root of an older storage format becomes a current one, in place.

No older format exists yet, so the tests register one: its table rows call the row count by another
name in their metadata, which this release cannot read.
"""

import json
import shutil
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import lance
import pytest

import omnigraph
from omnigraph.errors import Conflict, GraphNotInitialized, InputError, OmnigraphError, StorageError
from omnigraph.history import format_upgrades
from omnigraph.history.format_upgrades import FormatUpgrade
from omnigraph.storage import manifest_cell as cells
from omnigraph.storage.effects import Fault, FaultMode
from omnigraph.storage.layout import STAMP, STAMP_KEY
from omnigraph.storage.store import Store, open_store
from tests.api.graph.conftest import tree
from tests.cli.conftest import Program

OLD = 99
SCHEMA = "node Person { name: String @key  age: I32? }  edge Knows: Person -> Person"
Rows = list[dict[str, Any]]


def rename_member(rows: Rows, old: str, new: str) -> Rows:
    """Rows of tables with one member of their metadata under another name."""
    changed = []
    for row in rows:
        facts = json.loads(row["metadata"])
        if row["object_type"] == "table":
            facts = {new if name == old else name: value for name, value in facts.items()}
        changed.append({**row, "metadata": json.dumps(facts)})
    return changed


def convert(_: Store, rows: Rows) -> Rows:
    """The step of the test: what the older format calls `content` is `content_id` now."""
    return rename_member(rows, "content", "content_id")


STEP = FormatUpgrade(OLD, STAMP, "name the content of a table content_id", convert)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(format_upgrades, "UPGRADES", (STEP,))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a branch, a tag and a deleted branch, all of them in the older format."""
    root = tmp_path_factory.mktemp("older") / "g"
    graph = omnigraph.init(root, SCHEMA, durability="os")
    graph.insert("Person", {"name": "ada", "age": 1}, {"name": "bob"})
    graph.tag("v1")
    review = graph.branches.create("review")
    review.connect_nodes("Knows", [("ada", "bob")])
    graph.branches.create("gone")
    graph.branches.delete("gone", force=True)
    graph.update("Person", where="name = 'ada'", set={"age": 2}, message="older")
    for place in manifests(root):
        make_older(place)
    return root


@pytest.fixture
def older(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "g")
    return tmp_path / "g"


def manifests(root: Path) -> list[Path]:
    """Every manifest: of main, of branches, of tags."""
    return [root / "__manifest", *sorted((root / "__branches").iterdir())]


def make_older(place: Path) -> None:
    table = lance.dataset(str(place)).to_table()
    rows = [row for row in table.to_pylist() if row["object_type"] != "checksum"]
    changed = table.from_pylist(rename_member(rows, "content_id", "content"), schema=table.schema)
    stamped = changed.replace_schema_metadata({STAMP_KEY: str(OLD)})
    lance.write_dataset(stamped, str(place), mode="overwrite", data_storage_version="2.2")


def stamps(root: Path) -> list[str | None]:
    store = open_store(str(root))
    return [cells.open_cell(store, str(place.relative_to(root))).stamp for place in manifests(root)]


def contents(root: Path) -> tuple[Any, ...]:
    """Everything that the graph shows, on every branch and tag, and its history."""
    graph = omnigraph.open(root, durability="os")
    states = [graph, graph.at("v1"), graph.at("HEAD~1"), graph.checkout("review")]
    exported = [sorted(state.export()) for state in states]
    logs = [(commit.id, commit.message) for branch in ("main", "review") for commit in graph.log(branch)]
    return exported, logs, graph.branches.names(), graph.tags.names()


def wanted(root: Path) -> None:
    """The graph is whole, and can be written to."""
    exported, logs, branches, tags = contents(root)
    assert [len(state) for state in exported] == [2, 2, 2, 3]
    assert [json.loads(state[0])["data"]["age"] for state in exported[:3]] == [2, 1, 1]
    assert (len(logs), branches, tags) == (6, ["main", "review"], ["v1"])
    graph = omnigraph.open(root, durability="os")
    assert graph.maintenance.check()
    graph.insert("Person", {"name": "new"})
    assert graph.merge("review").outcome == "merged"
    graph.maintenance.cleanup(keep=1, confirm=True, grace=0)
    assert len(sorted(omnigraph.open(root).export())) == 4


@pytest.mark.usefixtures("registered")
def test_older_graph_is_upgraded_with_branches_tags_and_history(older: Path, shell: Program) -> None:
    refused = shell("log", older)
    assert "the graph has the older storage format 99" in refused.err
    assert f"omnigraph upgrade {older}" in refused.err
    before = tree(older)
    preview = shell("upgrade", older, "--dry-run")
    assert preview.out == (
        "would upgrade from storage format 99 to 100: main, 1 branch, 1 tag and 1 deleted branch or tag\n"
        "99 to 100: name the content of a table content_id\n"
    )
    assert tree(older) == before
    done = shell("upgrade", older)
    assert (done.code, done.out.partition(":")[0]) == (0, "upgraded from storage format 99 to 100")
    assert set(stamps(older)) == {"100"}
    wanted(older)
    again = shell("upgrade", older, "--json")
    told = json.loads(again.out)
    assert (told["storage_format"], told["supported_format"], told["outcome"]) == (100, 100, "current")


def test_current_and_unknown_formats_are_told_apart(older: Path, tmp_path: Path, shell: Program) -> None:
    fresh = tmp_path / "fresh"
    omnigraph.init(fresh, SCHEMA, durability="os").branches.create("side")
    before = tree(fresh)
    for flags in ((), ("--dry-run",)):
        assert shell("upgrade", fresh, *flags).out == "storage format 100 is already current; nothing to do\n"
    assert tree(fresh) == before
    report = omnigraph.upgrade(fresh)
    assert (report.outcome, report.storage_format, report.steps) == ("current", 100, ())
    with pytest.raises(InputError, match="older storage format 99") as caught:  # no step is registered
        omnigraph.upgrade(older)
    assert "export the graph with the release that wrote it" in (caught.value.hint or "")
    for stamp, words in (("101", "storage format 101"), ("abc", "'abc' is not a number"), (None, "no format stamp")):
        place = manifests(fresh)[1]  # the branch, not main
        table = lance.dataset(str(place)).to_table()
        metadata = {} if stamp is None else {STAMP_KEY: stamp}
        stamped = table.replace_schema_metadata(metadata)
        lance.write_dataset(stamped, str(place), mode="overwrite", data_storage_version="2.2")
        for dry_run in (True, False):
            with pytest.raises(OmnigraphError, match=words):
                omnigraph.upgrade(fresh, dry_run=dry_run)
    with pytest.raises(GraphNotInitialized):
        omnigraph.upgrade(tmp_path / "nothing")


@pytest.mark.usefixtures("registered")
def test_unfinished_operations_are_finished_first(older: Path) -> None:
    (older / "__recovery").mkdir(exist_ok=True)
    intent = older / "__recovery" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json"
    intent.write_text("{}")
    with pytest.raises(Conflict, match="1 unfinished operation") as caught:
        omnigraph.upgrade(older)
    assert "release that wrote it" in (caught.value.hint or "")
    assert set(stamps(older)) == {"99"}
    intent.unlink()
    omnigraph.upgrade(older)
    wanted(older)


def effects_of_an_upgrade(older: Path, place: Path) -> int:
    shutil.copytree(older, place)
    store = open_store(str(place), durability="os")
    with store.effects.recording() as effects:
        upgrade_store(store)
    return len(effects)


def upgrade_store(store: Store) -> None:
    from omnigraph.maintenance.upgrade import upgrade_graph

    upgrade_graph(store)


def _upgrade_and_die(root: str, effect: int) -> None:
    format_upgrades.UPGRADES = (STEP,)
    store = open_store(root, durability="os")
    with store.effects.failing(Fault(effect, "exit")):
        upgrade_store(store)


@pytest.mark.usefixtures("registered")
def test_upgrade_resumes_after_a_failure_at_every_effect(older: Path, tmp_path: Path) -> None:
    count = effects_of_an_upgrade(older, tmp_path / "whole")
    assert count == 2 * len(manifests(older))
    for effect in range(1, count + 1):
        modes: Iterator[FaultMode] = iter(("before", "after"))
        for mode in modes:
            root = tmp_path / f"{effect}{mode}"
            shutil.copytree(older, root)
            store = open_store(str(root), durability="os")
            try:
                with store.effects.failing(Fault(effect, mode)):
                    upgrade_store(store)
            except StorageError:
                _left_readable(root)
            omnigraph.upgrade(root)
            assert set(stamps(root)) == {"100"}
            contents(root)
    wanted(root)


@pytest.mark.full
@pytest.mark.usefixtures("registered")
def test_upgrade_resumes_after_a_kill_at_every_effect(older: Path, tmp_path: Path) -> None:
    count = effects_of_an_upgrade(older, tmp_path / "whole")
    for effect in range(1, count + 1):
        root = tmp_path / f"killed{effect}"
        shutil.copytree(older, root)
        child = get_context("spawn").Process(target=_upgrade_and_die, args=(str(root), effect))
        child.start()
        child.join()
        assert child.exitcode not in (0, None)
        _left_readable(root)
        omnigraph.upgrade(root)
        wanted(root)


def _left_readable(root: Path) -> None:
    """Main is the last: until then it is as the older release left it. Each manifest is whole."""
    found = stamps(root)
    assert set(found) <= {"99", "100"}
    assert found[0] == "99" or set(found) == {"100"}
    store = open_store(str(root))
    for place in manifests(root):
        cell = cells.open_cell(store, str(place.relative_to(root)))
        rows = cell.read_rows(["object_type", "metadata"])
        known = "content" if cell.stamp == "99" else "content_id"
        assert all(known in json.loads(row["metadata"]) for row in rows if row["object_type"] == "table")


def test_writer_of_the_older_release_wins_the_race(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raced: list[str] = []

    def convert_late(store: Store, rows: Rows) -> Rows:
        if not raced:
            raced.append("yes")
            place = manifests(older)[1]
            table = lance.dataset(str(place)).to_table()
            lance.write_dataset(table, str(place), mode="overwrite", data_storage_version="2.2")
        return convert(store, rows)

    versions = [lance.dataset(str(place)).version for place in manifests(older)]
    monkeypatch.setattr(format_upgrades, "UPGRADES", (FormatUpgrade(OLD, STAMP, "late", convert_late),))
    omnigraph.upgrade(older)
    upgraded = [lance.dataset(str(place)).version for place in manifests(older)]
    assert [new - old for old, new in zip(versions, upgraded, strict=True)] == [1, 2, 1, 1]
    wanted(older)


@pytest.mark.usefixtures("registered")
def test_rows_that_cannot_be_converted_change_nothing(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Store, rows: Rows) -> Rows:
        raise KeyError("content")

    monkeypatch.setattr(format_upgrades, "UPGRADES", (FormatUpgrade(OLD, STAMP, "fails", fail),))
    before = tree(older)
    with pytest.raises(StorageError, match="cannot be converted to storage format 100") as caught:
        omnigraph.upgrade(older)
    assert caught.value.effect == "none"
    assert tree(older) == before


def test_several_steps_are_applied_in_order(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(_: Store, rows: Rows) -> Rows:
        return rename_member(rows, "stuff", "content")

    for place in manifests(older):
        table = lance.dataset(str(place)).to_table()
        rows = table.from_pylist(rename_member(table.to_pylist(), "content", "stuff"), schema=table.schema)
        stamped = rows.replace_schema_metadata({STAMP_KEY: "98"})
        lance.write_dataset(stamped, str(place), mode="overwrite", data_storage_version="2.2")
    monkeypatch.setattr(format_upgrades, "UPGRADES", (STEP, FormatUpgrade(98, OLD, "name the content", rename)))
    report = omnigraph.upgrade(older)
    assert (report.outcome, report.storage_format) == ("upgraded", 98)
    assert report.steps == ("98 to 99: name the content", f"99 to 100: {STEP.description}")
    wanted(older)
