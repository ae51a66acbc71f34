"""Rules of the write path, each tested with the rule and without it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation

from omnigraph.api import opening as graphs
from omnigraph.errors import ConcurrentCommit, InternalError, OmnigraphError, ReadSetConflict, StorageError
from omnigraph.history import commit_log as logs
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.manifest import swap_state
from omnigraph.history.state import to_rows
from omnigraph.publish import publish as publishing
from omnigraph.publish import swap as swapping
from omnigraph.publish.branch_lifecycle import create_branch
from omnigraph.publish.publish import publish
from omnigraph.publish.write_plan import PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage import layout, stage_rows
from omnigraph.storage import manifest_cell as cells
from omnigraph.storage import table as tables
from omnigraph.storage.manifest_cell import SwapOutcomeUnknown
from omnigraph.storage.store import open_store
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey
from tests.rig.independent_writers import apart, once, people
from tests.rig.writes import PERSON, append, check_invariants, init_small, read_branch, shaped, write, write_long


@pytest.fixture
def root(tmp_path: Path) -> Path:
    init_small(tmp_path / "g")
    return tmp_path / "g"


def _ids(line: BranchState) -> list[str]:
    line.reload()
    return [name for name, _ in read_branch(line)[PERSON]]


# A swap without an answer is looked up before anything is said or tried again.


def _write_without_an_answer(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An append of an unkeyed row whose swap lands, and whose answer is lost."""
    real, lost = swap_state, [True]

    def unanswered(*args: Any) -> Any:
        opened = real(*args)
        if lost:
            lost.clear()
            raise SwapOutcomeUnknown
        return opened

    with monkeypatch.context() as patch:
        patch.setattr(swapping, "swap_state", unanswered)
        write(apart(root), replace(people(1), needs=lambda *_: ()))
    return _ids(apart(root))


def test_write_without_a_response_exists_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _write_without_an_answer(root, monkeypatch) == ["p0"]
    check_invariants(root)


def test_retrying_without_verification_would_duplicate_the_write(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(write: Any, *_: object) -> bool:
        write.branch_state.reload()
        write.unresolved_swap.mark_resolved()
        return False

    monkeypatch.setattr(swapping, "verify_commit_landed", blind)
    assert _write_without_an_answer(root, monkeypatch) == ["p0", "p0"]


# The stamp travels with the schema of the base.


def _plain_schema(schema: Any, fragments: Any) -> Any:
    return LanceOperation.Overwrite(schema.to_pyarrow().remove_metadata(), fragments)


def test_publish_raises_if_the_format_stamp_was_lost(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = apart(root)
    for n in range(3):
        write(line, people(1, n))
    assert read_stamp(root) == str(layout.STAMP)
    with monkeypatch.context() as faulty:
        faulty.setattr(lance, "LanceOperation", SimpleNamespace(Overwrite=_plain_schema))
        with pytest.raises(InternalError, match="stamp"):
            write(line, people(1, 3))


def test_unchecked_loss_of_the_stamp_would_make_the_graph_unopenable(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = apart(root)
    with monkeypatch.context() as faulty:
        faulty.setattr(lance, "LanceOperation", SimpleNamespace(Overwrite=_plain_schema))
        faulty.setattr(cells.ManifestCell, "stamp", str(layout.STAMP))
        assert write(line, people(1)) is not None
    assert read_stamp(root) is None
    with pytest.raises(StorageError, match="no format stamp"):
        graphs.open(root)


def read_stamp(root: Path) -> str | None:
    """The stamp of the newest manifest version, unchecked."""
    return cells.open_cell(open_store(str(root)), layout.MANIFEST).stamp


# Folding: an insert that puts small fragments together drops that when it lost.


def fold(txn: WriteTxn, rows: Mapping[str, int]) -> PublishPlan:
    """New rows, and all rows that are there in one fragment with them, row ids kept."""
    table = txn.table(PERSON)
    there = table.dataset.to_table(columns=["id", "n"], with_row_id=True, with_row_address=True).to_pylist()
    staged = stage_rows.stage_change(
        txn.store,
        table,
        removed_addresses=[one["_rowaddr"] for one in there],
        replacements=([one["_rowid"] for one in there], shaped(table, {one["id"]: one["n"] for one in there})),
        added_rows=shaped(table, rows),
    )
    return PublishPlan("insert", {PERSON: staged}, gc_epoch=0)


def plain(txn: WriteTxn, rows: Mapping[str, int]) -> PublishPlan:
    """New rows and nothing else."""
    staged = stage_rows.stage_append(txn.store, txn.table(PERSON), shaped(txn.table(PERSON), rows))
    return PublishPlan("insert", {PERSON: staged}, gc_epoch=0)


def _insert_among_folders(root: Path, *, drops: bool) -> tuple[Commit | None, int]:
    """Insert with a fold while a rival, who folds too, is faster at every preparation."""
    line, prepared = apart(root), 0
    rival = apart(root)
    for n in range(3):
        write(rival, people(1, n))

    def prepare(txn: WriteTxn) -> PublishPlan:
        nonlocal prepared
        prepared += 1
        made = (plain if drops and prepared > 1 else fold)(txn, {"mine": 1})
        publish(rival, lambda other: fold(other, {f"rival{prepared}": 1}))
        return made

    return publish(line, prepare), prepared


def test_insert_that_lost_with_tail_compaction_lands_without_it(root: Path) -> None:
    before = apart(root)
    made, prepared = _insert_among_folders(root, drops=True)
    assert made is not None
    assert prepared == 2
    assert _ids(before) == ["mine", "p0", "p1", "p2", "rival1", "rival2"]
    check_invariants(root, acknowledged=[made])


def test_insert_that_keeps_compacting_would_never_land(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "MAX_PREPARATIONS", 4)
    with pytest.raises(ConcurrentCommit):
        _insert_among_folders(root, drops=False)
    assert "mine" not in _ids(apart(root))
    check_invariants(root)


# A table directory is new at each registration.


def _register(line: BranchState, column: str) -> None:
    """Add the type Extra with one column of its own."""

    def prepare(txn: WriteTxn) -> PublishPlan:
        location = layout.table_directory(TableKey("node:Extra"), clock_and_ids.new_ulid())
        schema = pa.schema([pa.field("id", pa.string(), nullable=False), (column, pa.int64())])
        version = tables.create_table(txn.store, location, schema).version
        entry = TableEntry(TableKey("node:Extra"), location, 1, version, txn.commit_id, 0, line.name, 2)
        return PublishPlan("schema_apply", new_tables={TableKey("node:Extra"): entry})

    publish(line, prepare)


def _columns(root: Path, branch: str) -> list[str]:
    line = apart(root, branch)
    txn = WriteTxn(line.store, branch, line.last_known(), "", 0)
    names: list[str] = txn.table(TableKey("node:Extra")).schema.names
    return names


def _two_branches_add_one_type(root: Path) -> None:
    main = apart(root)
    create_branch(main.store, "f", main)
    _register(main, "here")
    _register(apart(root, "f"), "there")


def test_same_type_added_on_two_branches_has_two_tables(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _two_branches_add_one_type(root)
    assert (_columns(root, "main"), _columns(root, "f")) == (["id", "here"], ["id", "there"])
    check_invariants(root)


def test_directory_by_name_hash_alone_would_collide(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = layout.table_directory
    monkeypatch.setattr(layout, "table_directory", lambda key, _: real(key, "").rstrip("-"))
    with pytest.raises((OSError, OmnigraphError), match="already exists"):
        _two_branches_add_one_type(root)


# The last token of a stream is a row of the state, and what was read of it must still be so.


@dataclass(frozen=True, slots=True)
class TokenWas:
    """The last token of a stream is the one that a batch follows on."""

    stream: str
    token: str | None

    def to_json(self) -> list[Any]:
        """The requirement as plain data."""
        return ["token_was", self.stream, self.token]

    def check(self, txn: WriteTxn) -> None:
        """Compare with the state that the swap is based on."""
        now = txn.base.state.streams.get(self.stream)
        if now != self.token:
            raise ReadSetConflict(member="streams", expected=self.token, actual=now)


def _batch(txn: WriteTxn, token: str, rows: Mapping[str, int]) -> PublishPlan | None:
    """One batch of a stream: nothing if its token is there already."""
    last = txn.base.state.streams.get("s")
    if last is not None and int(last) >= int(token):
        return None
    return replace(plain(txn, rows), streams={"s": token}, requirements=(TokenWas("s", last),))


def _deliver_twice(root: Path) -> list[str]:
    """Two deliveries of one batch: the second lands while the first has staged its rows."""
    again = once(lambda: publish(apart(root), lambda txn: _batch(txn, "7", {"batch7": 7})))

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        made = _batch(txn, "7", {"batch7": 7})
        again()
        return made

    publish(apart(root), prepare)
    return _ids(apart(root))


def test_stream_batch_delivered_twice_is_applied_once(root: Path) -> None:
    assert _deliver_twice(root) == ["batch7"]
    assert apart(root).last_known().state.streams == {"s": "7"}
    check_invariants(root)


def test_without_rechecking_the_token_a_batch_would_be_applied_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TokenWas, "check", lambda *_: None)
    assert _deliver_twice(root) == ["batch7", "batch7"]


def test_merge_does_not_carry_stream_tokens(root: Path) -> None:
    main = apart(root)
    create_branch(main.store, "f", main)
    f = apart(root, "f")
    made = publish(f, lambda txn: _batch(txn, "7", {"on-f": 7}))
    assert made is not None
    entry = f.last_known().state.tables[PERSON]
    plan = PublishPlan("merge", adopted_tables={PERSON: entry}, incoming_commits=(made,), merged_head=made.id)
    publish(main, lambda _: plan)
    assert apart(root).last_known().state.streams == {}
    # The stream of this branch begins at its own place.
    assert publish(apart(root), lambda txn: _batch(txn, "1", {"on-main": 1})) is not None


# Version numbers of Lance are text wherever they are JSON.


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _numbers(one)
    elif isinstance(value, int):
        yield value


def _texts(root: Path, line: BranchState) -> Iterator[str]:
    """Every JSON text of a graph: rows of the state and of sealed chunks, control objects."""
    state = line.reload().state
    yield from (row["metadata"] for row in to_rows(state, 1).to_pylist())
    for chunk in state.chunks:
        body = line.store.objects.read(chunk.name)
        for row in pa.ipc.open_file(body).read_all().to_pylist():
            yield row["metadata"]
    for path in root.rglob("*"):
        if path.suffix in (".json", ".confirmed", ".verdict"):
            yield path.read_text()


def _largest_number(root: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(logs, "CHUNK_COMMITS", 2)
    line = apart(root)
    for n in range(5):
        write(line, people(1, n))
    create_branch(line.store, "f", line)
    found: list[int] = []

    def look(*_: object) -> None:
        """A confirmed intent is there now."""
        found.extend(n for text in _texts(root, line) for n in _numbers(json.loads(text)))

    with monkeypatch.context() as patch:
        patch.setattr("omnigraph.publish.long_operations.finish_confirmed", look)
        write_long(line, append({"long": 1}))
    assert line.last_known().state.chunks
    return max(found)


def test_stored_numbers_fit_into_53_bits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _largest_number(root, monkeypatch) < 1 << 53


def test_lance_version_stored_as_a_number_would_exceed_53_bits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TableEntry.to_json

    def number(self: TableEntry) -> list[Any]:
        facts = real(self)
        return [*facts[:2], int(facts[2]), *facts[3:]]

    monkeypatch.setattr(TableEntry, "to_json", number)
    assert _largest_number(root, monkeypatch) > 1 << 63
