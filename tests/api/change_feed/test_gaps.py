"""Reclaimed commits are reported as a gap, and a baseline crosses it without loss."""

import copy
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ChangeFeedGap, OmnigraphError, StorageError
from omnigraph.values.table_key import TableKey
from tests.api.change_feed.conftest import FIVE, SCHEMA, told
from tests.api.change_feed.consumer import exported


def without(graph: Graph, commit_id: str, key: str) -> Graph:
    """The graph without the version of a table that a commit made, as cleanup leaves it."""
    shown = graph.at(commit_id).snapshot
    entry = shown.tables[TableKey(key)]
    dataset = shown.table(TableKey(key)).dataset
    root = Path(graph.uri) / entry.location
    number = dataset.version
    graph.close()
    (found,) = [one for one in (root / "_versions").iterdir() if str(number) in one.name]
    found.unlink()
    return omnigraph.open(graph.uri, durability="os")


def test_a_gap_names_the_commit_and_the_cursor(graph: Graph) -> None:
    first, second, third, *_ = [one.commit.id for one in graph.changes.feed("beginning")]
    cursors = [one.cursor for one in graph.changes.feed("beginning")]
    graph = without(graph, first, "node:Person")
    for call in (lambda: list(graph.changes.feed("beginning")), lambda: graph.changes.poll("beginning")):
        with pytest.raises(ChangeFeedGap) as error:
            call()
        assert error.value.first_unreadable_commit_id == first
        assert error.value.status == 410
        assert error.value.hint == "take a new baseline and continue from its cursor"
        start = error.value.cursor
        assert start == graph.changes.feed("beginning").cursor
    assert told(graph.changes.feed("beginning", kinds=["edge"]))[1] == FIVE[1]  # what is there is told
    page = graph.changes.poll(cursor=cursors[0])
    assert (told(page.blocks), page.cursor, page.caught_up) == (FIVE[1:2], cursors[1], False)
    with pytest.raises(ChangeFeedGap) as error:
        graph.changes.poll(cursor=page.cursor)
    gap = {"cursor": cursors[1], "first_unreadable_commit_id": third}
    assert error.value.to_json()["change_feed_gap"] == gap
    with pytest.raises(ChangeFeedGap):
        graph.changes.of_commit(third)
    assert told(graph.changes.feed(cursor=cursors[2])) == FIVE[3:]
    assert second


def test_baseline_crosses_a_gap(graph: Graph) -> None:
    cursor = graph.changes.feed("beginning").cursor
    graph = without(graph, graph.log()[-2].id, "node:Person")
    with pytest.raises(ChangeFeedGap):
        list(graph.changes.feed(cursor=cursor))
    made = graph.changes.baseline()
    assert made.cursor is None
    records = list(made)
    graph.insert("Firm", {"name": "late"})
    assert told(graph.changes.feed(cursor=made.cursor)) == [[("insert", "Firm", "late")]]
    assert len(records) + 1 == len(exported(graph))


def test_files_removed_during_the_read_are_a_gap(graph: Graph) -> None:
    feed = graph.changes.feed("beginning")
    next(feed)
    folder = Path(graph.uri) / graph.at("HEAD~3").snapshot.tables[TableKey("edge:Knows")].location
    kept = shutil.move(folder / "data", folder / "elsewhere")
    with pytest.raises(StorageError) as error:  # files were lost: no cleanup does that
        next(feed)
    assert error.value.effect == "none"
    for one in (folder / "_versions").iterdir():
        one.unlink()
    with pytest.raises(ChangeFeedGap):
        list(graph.changes.feed(cursor=feed.cursor))
    assert kept


def test_missing_log_chunk_is_a_gap(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.history import commit_log

    monkeypatch.setattr(commit_log, "CHUNK_COMMITS", 2)
    for n in range(6):
        graph.insert("Firm", {"name": f"f{n}"})
    cursor = graph.changes.feed("beginning").cursor
    last = list(graph.changes.feed("beginning"))
    assert len(last) == 11
    graph.close()
    pieces = sorted((Path(graph.uri) / "_commits").iterdir(), key=lambda one: one.stat().st_mtime)
    for one in pieces[1:]:
        one.unlink()
    fresh = omnigraph.open(graph.uri, read_only=True)
    with pytest.raises(ChangeFeedGap):
        list(fresh.changes.feed(cursor=cursor))
    assert list(fresh.changes.feed(cursor=last[-1].cursor)) == []


def cut_off(made: Any, after: int) -> list[Any]:
    return [next(made) for _ in range(after)]


def test_interrupted_baseline_has_no_cursor(shared: Graph, tmp_path: Path) -> None:
    made = shared.changes.baseline()
    cut_off(made, 1)
    assert made.cursor is None
    lines = shared.changes.baseline().lines()
    assert b"resume_cursor" not in next(lines)
    *_, last = lines
    assert last.startswith(b'{"baseline":')


def test_baseline_file_is_written_atomically(shared: Graph, tmp_path: Path) -> None:
    place = tmp_path / "base.ndjson"
    made = shared.changes.baseline(place)
    *rows, last = place.read_text().splitlines()
    assert len(rows) == made.count == 2
    assert sum("resume_cursor" in one for one in rows) == 0
    assert made.cursor is not None
    assert made.cursor in last
    edges = shared.changes.baseline(kinds=["edge"], types="Knows")
    assert list(edges) == []
    assert told(shared.changes.feed(cursor=edges.cursor, kinds=["edge"], types=["Knows"])) == []


def test_baseline_file_can_be_loaded(shared: Graph, tmp_path: Path) -> None:
    place = tmp_path / "base.ndjson"
    shared.changes.baseline(place)
    other = omnigraph.init(tmp_path / "other", SCHEMA, durability="os")
    other.load(place, mode="append")
    assert list(other.export()) == list(shared.export())
    for wrong in (b'{"baseline": {}}', b'{"baseline": {"resume_cursor": "x"}, "type": "Person"}'):
        with pytest.raises(OmnigraphError):
            other.load(wrong, mode="append")


def test_failed_baseline_keeps_the_old_file(shared: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.api.change_feed import baseline

    def broken(*_: Any, **__: Any) -> Any:
        yield b"{}\n"
        raise OSError(28, "No space left on device")

    place = tmp_path / "base.ndjson"
    place.write_text("old")
    monkeypatch.setattr(baseline, "export_parts", broken)
    with pytest.raises(omnigraph.errors.InputError, match="No space left"):
        shared.changes.baseline(place)
    assert place.read_text() == "old"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["base.ndjson", "base.ndjson.lock"]


def test_replaced_baseline_file_yields_no_cursor(
    shared: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "base.ndjson"
    renamed = Path.replace

    def interfered(self: Path, target: Path) -> Path:
        found = renamed(self, target)
        (tmp_path / "other").write_text("other")
        renamed(tmp_path / "other", target)
        return found

    monkeypatch.setattr(Path, "replace", interfered)
    with pytest.raises(omnigraph.errors.InputError, match="replaced concurrently"):
        shared.changes.baseline(place)


def test_cleanup_past_a_cursor_is_a_gap_without_loss(graph: Graph) -> None:
    feed = graph.changes.feed("beginning")
    start, rows = feed.cursor, exported(graph)
    held = list(feed)
    graph.maintenance.cleanup(keep=1, older_than=0, grace=0, confirm=True)
    fresh = omnigraph.open(graph.uri, durability="os")
    with pytest.raises(ChangeFeedGap) as error:
        list(fresh.changes.feed(cursor=start))
    assert error.value.first_unreadable_commit_id == held[0].commit.id
    with pytest.raises(ChangeFeedGap):
        list(graph.changes.feed(cursor=start))  # its tables are still open
    made = fresh.changes.baseline()
    assert len(list(made)) == len(rows)
    fresh.insert("Firm", {"name": "late"})
    assert told(fresh.changes.feed(cursor=made.cursor)) == [[("insert", "Firm", "late")]]
    assert told(fresh.changes.feed(cursor=held[-1].cursor)) == [[("insert", "Firm", "late")]]


def test_failed_feed_raises_again(graph: Graph) -> None:
    graph = without(graph, graph.log()[-2].id, "node:Person")
    feed = graph.changes.feed("beginning")
    for _ in range(2):
        with pytest.raises(ChangeFeedGap):
            list(feed)
    assert not feed.caught_up


def test_a_commit_can_be_pickled_and_copied(shared: Graph) -> None:
    for copied in (pickle.loads(pickle.dumps(shared.head)), copy.deepcopy(shared.head)):
        assert copied == shared.head
