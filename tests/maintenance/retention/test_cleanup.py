"""Cleanup of an idle graph: what is kept, what is removed, no unreachable file remains."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ConcurrentCommit, Conflict, HistoryReclaimed, InputError, ReadOnlyError, StorageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.snapshot import load_snapshot
from omnigraph.history.tags import open_tag
from omnigraph.maintenance.retention import collect_garbage
from omnigraph.maintenance.retention.collect_garbage import cleanup, preview_cleanup
from omnigraph.maintenance.retention.policy import RetentionPolicy, make_policy
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.recover import recover
from omnigraph.publish.tag_lifecycle import create_tag, delete_tag
from omnigraph.storage.effects import Fault
from omnigraph.storage.store import Store, open_store
from omnigraph.values.clock_and_ids import deterministic_ids
from tests.rig.invariants import files
from tests.rig.writes import (
    PERSON,
    TABLES,
    append,
    check_invariants,
    delete,
    init_small,
    overwrite,
    read_branch,
    read_graph,
    read_rows,
    rewrite,
    update,
    write,
)

NOW = timedelta()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return init_small(tmp_path / "g")


def main_of(store: Store) -> BranchState:
    return open_branch(store, "main")


def fresh(store: Store) -> Store:
    return open_store(store.root.uri)


def keep(count: int) -> RetentionPolicy:
    """Keep so many commits, with no grace."""
    return RetentionPolicy(keep=count, grace=NOW)


def commits(line: BranchState) -> list[str]:
    state = line.refresh().state
    found = HistoryLog(line.store, state).first_parents(state.head.commit_id)
    return [one.id for one in found]


def fill(line: BranchState, count: int, start: int = 0) -> None:
    for n in range(start, start + count):
        write(line, append({f"p{n}": n}), TABLES)
        if n % 3 == 2:
            write(line, update({f"p{n}": 100 + n}))
        if n % 4 == 3:
            write(line, delete([f"p{n - 1}"]))


def readable(store: Store, line: BranchState) -> Iterator[bool]:
    for one in commits(line):
        try:
            shown = load_snapshot(line.store, line, one)
            yield all(shown.table(key).dataset.count_rows() >= 0 for key in shown.tables)
        except HistoryReclaimed:
            yield False


def test_retained_commits_stay_readable_and_others_are_removed(store: Store) -> None:
    line = main_of(store)
    fill(line, 8)
    shown = {one: read_branch(line, one) for one in commits(line)[:3]}
    report = cleanup(store, keep(3))
    again = open_branch(fresh(store), "main")
    assert {one: read_branch(again, one) for one in commits(again)[:3]} == shown
    assert list(readable(store, again)) == [True] * 3 + [False] * (len(commits(again)) - 4) + [
        True
    ]  # the first: empty tables
    assert report.old_versions_removed > 0
    assert not report.preview
    assert not report.failed
    check_invariants(store.root.path)


def test_preview_removes_nothing_and_reports_what_would_be_removed(store: Store) -> None:
    fill(main_of(store), 4)
    before = files(store)
    told = preview_cleanup(store, keep(1))
    assert files(store) == before
    done = cleanup(store, keep(1))
    gone = sum(before.values()) - sum(files(store).values())
    by_type = {one.type_key: one for one in done.datasets}
    assert {one.type_key for one in told.datasets} <= by_type.keys()
    for one in told.datasets:
        if ":" in one.type_key:
            assert one == by_type[one.type_key]
    assert done.bytes_removed >= gone > 0


def test_a_second_cleanup_finds_nothing(store: Store) -> None:
    fill(main_of(store), 5)
    cleanup(store, keep(2))
    left = files(store)
    report = cleanup(store, keep(2))
    assert (report.datasets, files(store)) == ((), left)


def test_files_of_branches_tags_and_merge_bases_are_kept(store: Store) -> None:
    line = main_of(store)
    fill(line, 3)
    side = create_branch(store, "side", line)
    base = commits(line)[0]
    fill(line, 3, 10)
    create_tag(store, "v1", line, commit_id=commits(line)[2])
    tagged = read_branch(line, commits(line)[2])
    fill(line, 3, 20)
    write(side, append({"own": 1}))
    at_base = read_branch(line, base)
    before = read_graph(store.root.path)
    cleanup(store, keep(1))
    clean = fresh(store)
    assert read_graph(clean.root.path) == before
    shown = open_tag(clean, "v1")
    assert {key: read_rows(clean, one) for key, one in shown.tables.items()} == tagged
    assert read_branch(open_branch(clean, "side"), base) == at_base
    assert sum(readable(clean, open_branch(clean, "main"))) == 4  # head, tag, merge base, the first


def test_files_of_a_deleted_branch_and_tag_are_removed(store: Store) -> None:
    line = main_of(store)
    fill(line, 2)
    cleanup(store, keep(1))
    small = sum(files(store).values())
    for _ in range(2):
        side = create_branch(store, "side", line)
        write(side, overwrite({f"x{n}": n for n in range(500)}))
        create_tag(store, "v1", side)
        cleanup(store, keep(1))
        assert sum(files(store).values()) > small + 3000
        delete_branch(store, "side")
        delete_tag(store, "v1")
        cleanup(store, keep(1))
    left = files(store)
    tables = {name: size for name, size in left.items() if name.startswith(("nodes", "edges"))}
    named = read_branch(main_of(store))
    assert named[PERSON]
    assert sum(1 for name in tables if "/_versions/d" in name) == len(TABLES)
    # Of each branch and tag the closing version stays, which is two files.
    closed = [n for n in left if n.startswith("__branches") and "_transactions" not in n]
    assert len(closed) == 4 * 2


def test_unreferenced_files_are_removed(store: Store) -> None:
    from omnigraph.storage.stage_rows import stage_append
    from omnigraph.storage.table import open_table
    from tests.rig.writes import shaped

    line = main_of(store)
    fill(line, 2)
    cleanup(store, keep(1))
    clean = files(store)
    entry = line.refresh().state.tables[PERSON]
    table = open_table(store, entry.location, entry.lance_version)
    staged = stage_append(store, table, shaped(table, {"lost": 1}))
    store.objects.create_bytes("_commits/garbage", b"x")
    store.objects.create_bytes("_schemas/garbage", b"x")
    place = Path(store.root.path)
    (place / entry.location / "data" / "y.blob").write_bytes(b"1")
    assert cleanup(store, RetentionPolicy(keep=1)).datasets == ()  # too young
    report = cleanup(store, keep(1))
    now = files(store)
    assert not set(staged.written_files) & now.keys()
    assert {name for name in now if name.startswith(("nodes", "edges", "_commits", "_schemas"))} == {
        name for name in clean if name.startswith(("nodes", "edges", "_commits", "_schemas"))
    }
    assert {one.type_key for one in report.datasets} >= {PERSON, "_commits", "_schemas"}


def test_young_commits_are_kept(store: Store) -> None:
    line = main_of(store)
    fill(line, 4)
    count = len(commits(line))
    cleanup(store, RetentionPolicy(keep=1, older_than=timedelta(days=7), grace=NOW))
    cleanup(store, RetentionPolicy(keep=1))
    cleanup(store, RetentionPolicy(older_than=timedelta(days=7), grace=NOW))
    assert list(readable(store, open_branch(fresh(store), "main"))) == [True] * count
    cleanup(store, RetentionPolicy(older_than=NOW, grace=NOW))
    assert sum(readable(store, open_branch(fresh(store), "main"))) == 2  # and the first, of nothing


def test_maintenance_commits_are_cleaned_like_others(store: Store) -> None:
    line = main_of(store)
    fill(line, 6)
    write(line, rewrite(), TABLES)
    before = read_graph(store.root.path)
    cleanup(store, keep(1))
    assert read_graph(store.root.path) == before
    held = [name for name in files(store) if "/data/" in name and name.startswith("nodes")]
    assert len(held) == 2  # one fragment of each type
    write(line, append({"more": 1}), TABLES)
    check_invariants(store.root.path)


def test_open_handles_keep_working(store: Store) -> None:
    line = main_of(store)
    fill(line, 3)
    other = BranchState(fresh(store), "main", "main")
    other.refresh()
    fill(line, 3, 10)
    cleanup(store, keep(1))
    cleanup(store, keep(1))
    assert write(other, append({"late": 1}), TABLES) is not None
    assert write(line, append({"later": 1}), TABLES) is not None
    check_invariants(store.root.path)


def test_policy_is_required() -> None:
    with pytest.raises(InputError, match="cleanup requires a retention policy") as caught:
        make_policy()
    assert "keep=10" in (caught.value.hint or "")
    for keep_, older in ((-1, None), (True, None), (None, "7x"), (None, "-3d"), (None, -1)):
        with pytest.raises(InputError):
            make_policy(keep_, older)
    for bare in ("7", "90"):
        with pytest.raises(InputError, match=f"'{bare}' has no unit: did you mean {bare}d or {bare}s[?]"):
            make_policy(older_than=bare)
    assert make_policy(older_than="90s").older_than == timedelta(seconds=90)
    assert make_policy(keep=1, grace="0").grace == make_policy(keep=1, grace=0).grace == timedelta()
    assert make_policy(older_than="2w").older_than == timedelta(weeks=2)


def test_unreadable_object_stops_the_cleanup(store: Store) -> None:
    line = main_of(store)
    fill(line, 3)
    side = create_branch(store, "side", line)
    write(side, append({"own": 1}))
    entry = side.refresh().state.tables[PERSON]
    place = Path(store.root.path)
    (place / entry.location / "_versions" / f"d{entry.lance_version}.manifest").write_bytes(b"")
    before = files(store)
    with pytest.raises(Conflict, match=r"branch 'side' cannot be read .*nothing was removed"):
        cleanup(fresh(store), keep(1))
    assert files(store) == before
    delete_branch(fresh(store), "side")
    assert not cleanup(fresh(store), keep(1)).failed


def test_second_concurrent_cleanup_is_rejected(store: Store) -> None:
    from omnigraph.maintenance.retention.claim import CLAIM_NAME

    fill(main_of(store), 2)
    store.objects.create_json(CLAIM_NAME, {"run": "another"})
    with pytest.raises(ConcurrentCommit, match="another cleanup is running"):
        cleanup(store, keep(1))
    store.objects.remove(CLAIM_NAME)
    cleanup(store, keep(1))
    assert store.objects.list("__gc") == []
    assert recover(store) == []


QUERY = "query q() { match { $p: P } return { $p.n } }"


def test_readers_of_removed_commits_get_history_reclaimed(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node P { name: String @key  n: I32? }")
    for n in range(4):
        graph.load([{"type": "P", "data": {"name": f"p{k}", "n": n}} for k in range(9)], mode="merge")
    elsewhere = omnigraph.open(tmp_path / "g")
    readers = [graph.at("HEAD~2"), elsewhere.at("HEAD~2"), elsewhere.revisions.pin()]
    for one in readers:
        assert len(one.query(QUERY)) == 9
    told = graph.maintenance.cleanup(keep=1, grace=0)
    assert told.preview
    assert told.bytes_removed > 0
    graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    for one in readers[:2]:
        with pytest.raises(HistoryReclaimed, match="cleanup"):
            one.query(QUERY)
        with pytest.raises(HistoryReclaimed, match="cleanup"):
            list(one.export())
    assert len(readers[2].query(QUERY)) == 9
    with pytest.raises(HistoryReclaimed):
        graph.branches.create("old", commit=graph.log()[2].id)


def test_read_only_handle_may_preview_but_not_remove(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", "node P { name: String @key }")
    graph = omnigraph.open(tmp_path / "g", read_only=True)
    before = files(graph._handle.store)
    assert graph.maintenance.cleanup(keep=1).preview
    with pytest.raises(ReadOnlyError):
        graph.maintenance.cleanup(keep=1, confirm=True)
    assert files(graph._handle.store) == before


def test_leased_files_are_kept(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node P { name: String @key  n: I32? }")
    graph.load([{"type": "P", "data": {"name": "a", "n": 1}}], mode="merge")
    elsewhere = omnigraph.open(tmp_path / "g")
    with elsewhere.maintenance.hold() as held:
        for n in range(2):
            graph.load([{"type": "P", "data": {"name": "a", "n": n}}], mode="merge")
        report = graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
        assert report.old_versions_removed > 0
        again = omnigraph.open(tmp_path / "g").at(held.snapshot.commit_id)
        assert again.query(QUERY).to_dicts() == [{"p.n": 1}]
    graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    with pytest.raises(HistoryReclaimed):
        omnigraph.open(tmp_path / "g").at(held.snapshot.commit_id).query(QUERY)
    assert graph._handle.store.objects.list("__recovery") == []


def test_commits_from_a_clock_ahead_of_the_store_are_not_younger_than_now(tmp_path: Path) -> None:
    """A store that counts whole seconds is always behind the clock of who writes to it."""
    store = init_small(tmp_path / "g")
    line = open_branch(store, "main")
    with deterministic_ids(datetime.now(UTC) + timedelta(days=1)):
        for n in range(3):
            write(line, append({f"r{n}": n}))
    place = line.last_known().state.tables[PERSON].location

    def versions() -> int:
        return sum("/d" in one.name for one in store.objects.list(f"{place}/_versions"))

    cleanup(store, RetentionPolicy(keep=1))
    assert versions() == 3, "the grace spares them"
    cleanup(store, RetentionPolicy(keep=1, grace=timedelta()))
    assert versions() == 1


def test_store_failure_is_reported(tmp_path: Path) -> None:
    store = init_small(tmp_path / "g")
    line = open_branch(store, "main")
    for n in range(3):
        write(line, append({f"r{n}": n}))
    for at in range(1, 8):  # the clock, the claim, the list, the fence, the result
        with store.effects.failing(Fault(at, "before")), suppress(StorageError, ConcurrentCommit):
            cleanup(store, RetentionPolicy(keep=1, grace=timedelta()))
    assert len(read_branch(line)[PERSON]) == 3


def test_failed_cleanup_that_removed_files_reports_an_effect(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    line = main_of(store)
    for n in range(3):
        write(line, update({"a": n}) if n else append({"a": 0}))

    def lost(_: Store) -> list[str]:
        raise StorageError("no answer", kind="transient", effect="none")

    monkeypatch.setattr(collect_garbage, "list_superseded_refs", lost)
    with pytest.raises(StorageError) as told:
        cleanup(store, RetentionPolicy(keep=1, grace=NOW))
    assert told.value.effect == "unknown"
    with pytest.raises(StorageError) as told:  # nothing is left that could go
        cleanup(store, RetentionPolicy(keep=1, grace=NOW))
    assert told.value.effect == "none"
