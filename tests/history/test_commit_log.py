"""The log against simple oracles: merge bases, order, sealing, lookups and their cost."""

from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import CommitNotFound, HistoryReclaimed
from omnigraph.history import commit_log as logs
from omnigraph.history.commit import Commit, SchemaRow, TableEntry
from omnigraph.history.commit_log import HistoryLog, append_commits, sort_newest_first
from omnigraph.history.merge_bases import merge_bases
from omnigraph.history.state import BranchHead, GraphState, LogChunk
from omnigraph.storage.effects import Effects
from omnigraph.storage.store import Store, open_store
from omnigraph.values.table_key import TableKey

SCHEMA = SchemaRow("sha256:0", "_schemas/0")


def commit(name: str, *parents: str, time: int = 0, tables: int = 0) -> Commit:
    """A commit that changed some tables."""
    keys = [TableKey.node(f"T{n}") for n in range(tables)]
    changed = {key: entry(key, name) for key in keys}
    schema = None if parents else SCHEMA
    return Commit(name, parents, "insert", "main", 1, 0, time, schema=schema, tables=changed)


def entry(key: TableKey, content: str) -> TableEntry:
    return TableEntry(key, f"nodes/{key[-1]}", 1, (1 << 63) + 1, content, 0)


@st.composite
def histories(draw: st.DrawFn) -> dict[str, Commit]:
    """Random DAGs of up to 14 commits, named in an order that is topological."""
    made: dict[str, Commit] = {}
    for n in range(draw(st.integers(1, 14))):
        known = sorted(made)
        count = min(len(known), draw(st.integers(1, 2))) if known else 0
        parents = draw(st.permutations(known))[:count]
        made[f"c{n:02}"] = commit(f"c{n:02}", *parents, time=draw(st.integers(0, 3)))
    return made


def ancestors(history: dict[str, Commit], at: str) -> set[str]:
    return {at}.union(*(ancestors(history, one) for one in history[at].parents))


@given(histories(), st.data())
def test_merge_bases_are_the_best_common_ancestors(history: dict[str, Commit], data: st.DataObject) -> None:
    a, b = (data.draw(st.sampled_from(sorted(history))) for _ in "ab")
    above = {one: ancestors(history, one) for one in history}
    shared = above[a] & above[b]
    best = {x for x in shared if not any(x in above[y] - {y} for y in shared)}
    ours = {one: history[one] for one in above[a]}
    theirs = {one: history[one] for one in above[b]}
    assert set(merge_bases(ours, theirs)) == best
    assert merge_bases(ours, theirs) == merge_bases(theirs, ours)


@given(histories(), st.randoms(use_true_random=False))
def test_the_order_is_newest_first_and_children_before_parents(history: dict[str, Commit], dice: Random) -> None:
    shuffled = list(history.values())
    dice.shuffle(shuffled)
    found = sort_newest_first(shuffled)
    place = {one.id: at for at, one in enumerate(found)}
    assert sorted(place) == sorted(history)
    assert all(place[one.id] < place[parent] for one in found for parent in one.parents)
    assert found == sort_newest_first(history.values())
    for at, (one, after) in enumerate(pairwise(found)):
        if _could_swap(history, found, at):
            assert (one.published_at, one.id) > (after.published_at, after.id)


def _could_swap(history: dict[str, Commit], found: list[Commit], at: int) -> bool:
    """Whether the commit behind `at` was free to stand at `at`: all its children came before."""
    after = found[at + 1]
    before = {one.id for one in found[:at]}
    return all(one.id in before for one in history.values() if after.id in one.parents)


@given(histories(), st.data())
def test_chunked_reading_keeps_the_order(history: dict[str, Commit], data: st.DataObject) -> None:
    head = data.draw(st.sampled_from(sorted(history)))
    state = GraphState(BranchHead(head, "main"), SCHEMA, {}, tuple(history.values()))
    log = HistoryLog(None, state)  # type: ignore[arg-type]
    found = [history[one] for one in ancestors(history, head)]
    assert list(log.iter_ancestors(head)) == sort_newest_first(found)


def test_a_long_history_is_ordered_and_searched_without_recursion() -> None:
    chain = [commit("c000000")]
    for n in range(1, 20_000):
        chain.append(commit(f"c{n:06}", chain[-1].id, time=n))
    assert sort_newest_first(chain) == chain[::-1]
    known = {one.id: one for one in chain}
    assert merge_bases(known, known) == (chain[-1].id,)


def grown(store: Store, count: int, tables: int = 1) -> GraphState:
    """A log of that many commits, appended one by one."""
    first = commit("c00000", tables=tables)
    state = GraphState(BranchHead(first.id, "main"), SCHEMA, dict(first.tables), (first,))  # type: ignore[arg-type]
    for n in range(1, count):
        state = _step(store, state, commit(f"c{n:05}", state.head.commit_id, tables=tables))
    return state


def _step(store: Store, state: GraphState, one: Commit) -> GraphState:
    tables = {**state.tables, **{k: v for k, v in one.tables.items() if v is not None}}
    after = append_commits(store, state, [one])
    return replace(after, head=replace(after.head, commit_id=one.id), tables=tables)


def test_the_tail_stays_short_and_chunks_grow(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), durability="os")
    state = grown(store, 128 + 64 * 8)
    assert len(state.tail) == 64
    assert [(one.commit_count, one.last_commit_id) for one in state.chunks] == [(512, "c00511"), (64, "c00575")]
    assert state.tail[-1].id == state.head.commit_id
    ids = [one.id for chunk in state.chunks for one in HistoryLog(store, state).chunk_commits(chunk)]
    assert ids + [one.id for one in state.tail] == [f"c{n:05}" for n in range(640)]


def test_large_commits_are_sealed_sooner(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), durability="os")
    state = grown(store, 12, tables=112)
    assert sum(len(str(one.to_json())) for one in state.tail) < 2 * logs.MAX_TAIL_BYTES
    assert state.chunks
    assert state.tail[-1].id == state.head.commit_id


def test_log_bytes_of_a_publish_are_bounded(tmp_path: Path) -> None:
    effects = Effects()
    store = open_store(str(tmp_path), effects=effects, durability="os")
    state = grown(store, 1)
    worst, total = 0, 0
    for n in range(1, 4300):
        before = len(effects.completed)
        state = _step(store, state, commit(f"c{n:05}", state.head.commit_id, tables=1))
        written = len(effects.completed) - before
        worst, total = max(worst, written), total + written
    assert worst == 3  # a seal, a merge of eight, and a merge of eight of those
    assert total == 66 + 8 + 1
    assert [one.commit_count for one in state.chunks] == [4096, 64, 64]


def test_many_merged_commits_are_sealed_at_once(tmp_path: Path) -> None:
    effects = Effects()
    store = open_store(str(tmp_path), effects=effects, durability="os")
    state = grown(store, 3)
    side = [commit("s00000", "c00000")]
    for n in range(1, 1000):
        side.append(commit(f"s{n:05}", side[-1].id))
    merge = commit("m", "c00002", "s00999")
    before = len(effects.completed)
    state = append_commits(store, state, [*side, merge])
    assert len(effects.completed) - before == 1
    assert len(state.tail) == 64
    log = HistoryLog(store, state)
    assert len(log.ancestors("m")) == 1004
    assert log.tables_and_schema_at("m")[0] == log.tables_and_schema_at("c00002")[0]


def test_a_chunk_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = grown(open_store(str(tmp_path), durability="os"), 300)
    store, read = open_store(str(tmp_path)), list[str]()
    real = logs._read_chunk_object

    def reading(where: Store, one: LogChunk) -> tuple[list[Commit], logs.ChunkEndState]:
        read.append(one.name)
        return real(where, one)

    monkeypatch.setattr(logs, "_read_chunk_object", reading)
    for _ in range(3):
        HistoryLog(store, state).find("nothing")
        assert HistoryLog(store, state).tables_and_schema_at("c00010")[0][TableKey("node:T0")].content_id == "c00010"
    assert sorted(read) == sorted(one.name for one in state.chunks)


def test_newest_commits_are_read_from_the_tail(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), durability="os")
    state = grown(store, 300)
    for one in state.chunks:
        store.objects.remove(one.name)
    log = HistoryLog(open_store(str(tmp_path)), state)
    assert log.get(state.tail[0].id) == state.tail[0]
    with pytest.raises(HistoryReclaimed):
        log.find("c00000")


def test_newest_commits_of_a_long_log_read_no_chunk(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), durability="os")
    state = grown(store, 2 * logs.CHUNK_COMMITS + 10)
    for chunk in state.chunks:
        (tmp_path / chunk.name).unlink()
    store = open_store(str(tmp_path), durability="os")
    newest = list(islice(HistoryLog(store, state).iter_ancestors(state.head.commit_id), 10))
    assert [one.id for one in newest] == [one.id for one in state.tail[:-11:-1]]
    with pytest.raises(HistoryReclaimed):
        list(HistoryLog(store, state).iter_ancestors(state.head.commit_id))


def test_unknown_commit_is_reported(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), durability="os")
    with pytest.raises(CommitNotFound):
        HistoryLog(store, grown(store, 3)).get("nothing")


def test_cache_evicts_unused_chunks(tmp_path: Path) -> None:
    memory = open_store(str(tmp_path)).object_cache
    memory.limit = 10
    for name in "abc":
        memory.put(name, name, weight=4)
    assert [memory.get(name) for name in "abc"] == [None, "b", "c"]
    memory.get("b")
    memory.put("d", "d", weight=4)
    assert [memory.get(name) for name in "bcd"] == ["b", None, "d"]
    memory.put("huge", "huge", weight=11)
    assert [memory.get(name) for name in ("b", "d", "huge")] == [None, None, None]
