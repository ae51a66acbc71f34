"""Interleavings that lost writes in earlier designs, each with the rule and without it."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from omnigraph.errors import HistoryReclaimed, VersionConflict
from omnigraph.history import commit_log as logs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import TableEntry
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import swap_state
from omnigraph.history.merge_bases import merge_bases
from omnigraph.publish import next_state, requirements
from omnigraph.publish import publish as publishing
from omnigraph.publish import swap as swapping
from omnigraph.publish.branch_lifecycle import create_branch, delete_branch
from omnigraph.publish.publish import publish
from omnigraph.publish.requirements import SameContent
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage import layout, stage_rows
from omnigraph.storage import table as tables
from omnigraph.storage.table import StagedChange, create_table, open_table
from omnigraph.values import clock_and_ids
from tests.rig.independent_writers import apart, held, people, version_file, write_while
from tests.rig.writes import CITY, PERSON, append, check_invariants, init_small, read_branch, update, upsert, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init_small(tmp_path / "g")
    return tmp_path / "g"


def _ids(line: BranchState) -> list[str]:
    line.reload()
    return [name for name, _ in read_branch(line)[PERSON]]


def _outrun(root: Path, line: BranchState) -> None:
    """Others publish four times, and all versions but the newest are deleted."""
    other = apart(root)
    for n in range(4):
        write(other, append({f"other{n}": n}))
    for version in range(1, other.last_known().version):
        version_file(line, version).unlink()


def test_swap_into_a_freed_version_number_is_retried(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = apart(root)
    with held(monkeypatch, lambda: _outrun(root, line)):
        made = write(line, append({"mine": 1}))
    assert made is not None
    assert _ids(apart(root)) == ["mine", *(f"other{n}" for n in range(4))]
    assert HistoryLog(line.store, line.last_known().state).find(made.id) is not None


def test_without_verification_a_swap_into_a_gap_would_be_lost(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = apart(root)
    monkeypatch.setattr(swapping, "is_newest", lambda _: True)
    with held(monkeypatch, lambda: _outrun(root, line)):
        assert write(line, append({"mine": 1})) is not None
    assert "mine" not in _ids(apart(root))


def test_losing_publisher_rebuilds_on_the_winner(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "CHUNK_COMMITS", 2)
    line = apart(root)
    won = [write_while(line, people(1, n), partial(write, apart(root), people(1, 10 + n))) for n in range(6)]
    assert all(won)
    assert len(_ids(line)) == 12
    check_invariants(root, acknowledged=[one for one in won if one])


def test_keeping_the_first_tail_would_drop_the_winning_commit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first: dict[str, Any] = {}
    real = next_state.build_next_state

    def remembering(txn: WriteTxn, *rest: Any) -> Any:
        state = real(txn, *rest)
        tail = first.setdefault(txn.commit_id, state.tail)
        return replace(state, tail=tail)

    monkeypatch.setattr(publishing, "build_next_state", remembering)
    line = apart(root)
    won: list[Any] = []
    write_while(line, people(1), lambda: won.append(write(apart(root), people(1, 5))))
    state = apart(root).reload().state
    assert HistoryLog(line.store, state).find(won[0].id) is None


def _rename_column(root: Path) -> None:
    """Another writer drops the column `n` and adds `m`, which gets the same field id."""

    def prepare(txn: WriteTxn) -> PublishPlan:
        table = txn.table(PERSON)
        schema = pa.schema([table.schema.field("id"), pa.field("m", pa.int64())])
        rows = pa.table({"id": ["new"], "m": [5]}, schema=schema)
        fragments = write_fragments(rows, str(root / "scratch"), schema=schema)
        (old,) = fragments[0].files
        place = Path(root, table.location, "data")
        place.mkdir(exist_ok=True)
        shutil.move(root / "scratch" / "data" / old.path, place / old.path)
        operation = lance.LanceOperation.Overwrite(schema, fragments)
        fields = tables.schema_fingerprint(table)
        staged = StagedChange(table.location, operation, fields, row_delta=1)
        return PublishPlan("schema_apply", {PERSON: staged}, gc_epoch=0)

    publish(apart(root), prepare)


def _people_with_either_column(line: BranchState) -> list[dict[str, Any]]:
    entry = line.reload().state.tables[PERSON]
    table = open_table(line.store, entry.location, entry.lance_version)
    found: list[dict[str, Any]] = table.dataset.to_table().to_pylist()
    return sorted(found, key=lambda one: one["id"])


def _append_secret(txn: WriteTxn) -> PublishPlan:
    table = txn.table(PERSON)
    rows = pa.table({"id": ["old"], "n": [42]})
    if "n" not in table.schema.names:
        rows = pa.table({"id": ["old"], "m": pa.array([None], pa.int64())})
    staged = stage_rows.stage_append(txn.store, table, rows)
    return PublishPlan("insert", {PERSON: staged}, gc_epoch=0)


def _append_over_a_schema_change(root: Path) -> list[dict[str, Any]]:
    line = apart(root)
    changed: list[bool] = []

    def prepare(txn: WriteTxn) -> PublishPlan:
        made = _append_secret(txn)
        if not changed:
            changed.append(True)
            _rename_column(root)
        return made

    publish(line, prepare)
    return _people_with_either_column(line)


def test_append_is_replanned_after_a_schema_change(root: Path) -> None:
    assert _append_over_a_schema_change(root) == [{"id": "new", "m": 5}, {"id": "old", "m": None}]


def test_without_comparing_field_ids_values_would_move_to_another_column(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (tables, stage_rows):
        monkeypatch.setattr(module, "schema_fingerprint", lambda _: "")
    found = _append_over_a_schema_change(root)
    assert {"id": "old", "m": 42} in found


def _register_again(root: Path) -> None:
    """Another writer drops the type and adds it again: the same columns in another directory."""

    def drop(txn: WriteTxn) -> PublishPlan:
        return PublishPlan("schema_apply", dropped_tables=frozenset([PERSON]))

    def add(txn: WriteTxn) -> PublishPlan:
        old = lance_schema
        location = layout.table_directory(PERSON, clock_and_ids.new_ulid())
        table = create_table(txn.store, location, old)
        entry = TableEntry(PERSON, location, 1, table.version, txn.commit_id, 0, "main", 2)
        return PublishPlan("schema_apply", new_tables={PERSON: entry})

    other = apart(root)
    lance_schema = WriteTxn(other.store, "main", other.last_known(), "", 0).table(PERSON).schema
    publish(other, drop)
    publish(other, add)


def test_rows_of_a_dropped_table_do_not_reach_the_recreated_table(root: Path) -> None:
    line = apart(root)
    write_while(line, append({"mine": 1}), lambda: _register_again(root))
    assert _ids(line) == ["mine"]
    check_invariants(root)


def test_without_comparing_directories_the_recreated_table_would_be_unreadable(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_state, "can_replay", lambda *_: True)
    line = apart(root)
    write_while(line, append({"mine": 1}), lambda: _register_again(root))
    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        _ids(line)


def test_plan_whose_fragments_changed_is_replanned(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = apart(root)
    write(line, append({"a": 1, "b": 1}))
    write_while(line, upsert({"a": 2}), lambda: write(apart(root), upsert({"b": 2})))
    assert read_branch(line)[PERSON] == [("a", 2), ("b", 2)]
    check_invariants(root)


def test_replaying_a_stale_update_would_undo_the_other_write(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_state, "can_replay", lambda *_: True)
    monkeypatch.setattr(publishing, "_plan_still_holds", lambda *_: True)
    line = apart(root)
    write(line, append({"a": 1, "b": 1}))
    write_while(line, upsert({"a": 2}), lambda: write(apart(root), upsert({"b": 2})))
    assert sorted(read_branch(line)[PERSON]) != [("a", 2), ("b", 2)]


def test_idempotency_key_is_searched_in_every_attempt(root: Path) -> None:
    line, signature = apart(root), CommitMetadata(idempotency_key="k", request_hash="r")
    won: list[Any] = []
    made = write_while(
        line,
        append({"mine": 1}),
        lambda: won.append(write(apart(root), append({"first": 1}), signature=signature)),
        signature=signature,
    )
    assert made == won[0]
    assert _ids(line) == ["first"]


def test_searching_the_key_only_once_would_duplicate_the_write(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "find_replayed_commit", lambda *_: None)
    line, signature = apart(root), CommitMetadata(idempotency_key="k", request_hash="r")
    write_while(
        line,
        append({"mine": 1}),
        lambda: write(apart(root), append({"first": 1}), signature=signature),
        signature=signature,
    )
    assert _ids(line) == ["first", "mine"]


def _seal_beside_an_abandoned_chunk(root: Path) -> BranchState:
    """A sealer was cut off behind its chunk, the chunk is condemned, somebody seals, it goes."""
    line = apart(root)
    for n in range(2):
        write(line, people(1, n))
    state = line.last_known().state
    end = state.tail[1].id
    known, schema = HistoryLog(line.store, state).tables_and_schema_at(end)
    abandoned = logs.write_chunk(line.store, state.tail[:2], logs.ChunkEndState(end, known, schema))
    write(line, people(1, 3))
    line.store.objects.remove(abandoned.name)
    return line


def test_log_chunk_names_are_never_reused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "CHUNK_COMMITS", 2)
    line = _seal_beside_an_abandoned_chunk(root)
    assert line.last_known().state.chunks
    check_invariants(root)


def test_content_named_chunk_would_be_swept_with_the_abandoned_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "CHUNK_COMMITS", 2)
    monkeypatch.setattr(layout, "chunk_name", lambda digest, _: f"{layout.COMMITS}/{digest}")
    _seal_beside_an_abandoned_chunk(root)
    state = apart(root).reload().state
    with pytest.raises(HistoryReclaimed):
        HistoryLog(apart(root).store, state).find("nothing")


def _fence_and_sweep(root: Path, staged: list[Path]) -> None:
    """A collector fences the branch, then deletes files that nothing names."""
    other = apart(root)
    state = other.reload().state
    swap_state(other.store, other.last_known(), replace(state, head=replace(state.head, gc_epoch=1)))
    for one in staged:
        one.unlink()


def _staged_files(root: Path) -> list[Path]:
    return list(root.glob("nodes/*/data/*.lance"))


def test_changes_staged_before_a_fence_are_staged_again(root: Path) -> None:
    line = apart(root)
    write_while(line, append({"mine": 1}), lambda: _fence_and_sweep(root, _staged_files(root)))
    assert _ids(line) == ["mine"]


def test_without_comparing_epochs_the_state_would_reference_a_swept_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_plan_still_holds", lambda *_: True)
    line = apart(root)
    write_while(line, append({"mine": 1}), lambda: _fence_and_sweep(root, _staged_files(root)))
    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        _ids(line)


def _merge_and_delete(root: Path, *, foreign: bool) -> tuple[BranchState, str]:
    """Branch f writes, main takes its table over, f is deleted; gives main and the commit of f."""
    main = apart(root)
    create_branch(main.store, "f", main)
    f = apart(root, "f")
    made = write(f, append({"on-f": 1}))
    assert made is not None
    write(main, append({"on-main": 1}), [CITY])
    theirs = f.last_known().state

    def merge(txn: WriteTxn) -> PublishPlan:
        return PublishPlan(
            "merge",
            adopted_tables={PERSON: theirs.tables[PERSON]},
            incoming_commits=(made,) if foreign else (),
            merged_head=made.id,
        )

    publish(main, merge)
    delete_branch(main.store, "f")
    return main, made.id


def test_merged_commit_stays_readable_after_its_branch_is_deleted(root: Path) -> None:
    main, merged = _merge_and_delete(root, foreign=True)
    log = HistoryLog(main.store, main.reload().state)
    tables_then, _ = log.tables_and_schema_at(merged)
    entry = tables_then[PERSON]
    assert open_table(main.store, entry.location, entry.lance_version).dataset.count_rows() == 1
    base = merge_bases(log.ancestors(main.last_known().state.head.commit_id), log.ancestors(merged))
    assert base == (merged,)
    check_invariants(root)


def test_without_incoming_commits_a_merged_commit_would_be_lost(root: Path) -> None:
    main, merged = _merge_and_delete(root, foreign=False)
    with pytest.raises(KeyError):
        HistoryLog(main.store, main.reload().state).tables_and_schema_at(merged)


def _same_number_other_content(root: Path) -> tuple[BranchState, SameContent]:
    """Main shows version 2 of a table, then takes over another version 2 from a branch."""
    main = apart(root)
    create_branch(main.store, "f", main)
    f = apart(root, "f")
    theirs = write(f, append({"on-f": 1}))
    write(main, append({"on-main": 1}))
    shown = main.last_known().state.tables[PERSON]
    adopted = f.last_known().state.tables[PERSON]
    assert theirs is not None
    assert (shown.version, shown.content_id) != (adopted.version, adopted.content_id)
    assert shown.version == adopted.version == 2
    plan = PublishPlan("merge", adopted_tables={PERSON: adopted}, incoming_commits=(theirs,), merged_head=theirs.id)
    publish(main, lambda _: plan)
    return main, SameContent(PERSON, shown.content_id, shown.version)


def test_equal_version_numbers_with_different_content_are_distinguished(root: Path) -> None:
    main, condition = _same_number_other_content(root)
    with pytest.raises(VersionConflict):
        write(main, update({"on-f": 2}), conditions=[condition])


def test_comparing_version_numbers_alone_would_accept_a_stale_write(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(self: SameContent, txn: WriteTxn) -> None:
        assert txn.base.state.tables[self.table_key].version == self.version

    monkeypatch.setattr(requirements.SameContent, "check", check)
    main, condition = _same_number_other_content(root)
    assert write(main, update({"on-f": 2}), conditions=[condition]) is not None
