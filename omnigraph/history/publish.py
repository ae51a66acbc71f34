"""The write protocol on one page: base, table versions, swap, look, acknowledge.

The only module that makes a write visible. A crash anywhere before the swap leaves files that
nobody names; after it the write is complete. Memory changes only after the acknowledgement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph import ids
from omnigraph.errors import (
    ClientError,
    ConcurrentCommit,
    Conflict,
    HistoryReclaimed,
    ReadSetConflict,
    StorageError,
)
from omnigraph.storage.cell import LostSwap, UnsureSwap
from omnigraph.storage.checksums import FileChecksums
from omnigraph.storage.failures import AbsentError, reported, storage_failure, undecided
from omnigraph.storage.store import Store
from omnigraph.storage.table import commit as commit_table
from omnigraph.storage.table import replays

from .commit import Commit, TableEntry
from .doubt import Doubt, refusal
from .file_checksums import record_checksums
from .idempotency import replayed
from .line import Line
from .log import Log, append
from .manifest import Opened, is_displaced, is_newest, secure, swap_state
from .missing import told_when_missing
from .plan import Prepare, PublishPlan, Requirement, Signature, WriteTxn, hold
from .retention.trim import trim_when_due
from .state import State

PREPARATIONS = 32
ATTEMPTS = 5
BUDGET = 60.0  # seconds for all preparations together


@dataclass(frozen=True, slots=True)
class Ready:
    """A table with its detached version: what it stands on, and what the state will name.

    `files` are the checksums of the files that the version adds.
    """

    base: TableEntry
    entry: TableEntry
    files: FileChecksums


@dataclass(frozen=True, slots=True)
class _Write:
    """What stays the same over all attempts of one write."""

    line: Line
    prepare: Prepare
    signature: Signature
    conditions: Sequence[Requirement]
    doubt: Doubt

    @property
    def store(self) -> Store:
        return self.line.store


def publish(
    line: Line,
    prepare: Prepare,
    signature: Signature | None = None,
    conditions: Sequence[Requirement] = (),
    identity: tuple[str, int] | None = None,
) -> Commit | None:
    """Prepare a write on the newest state and make it visible, all tables at once.

    Gives the commit, the earlier commit of the same idempotency key, or None when there is
    nothing to write. `conditions` are what the caller decided on: they are checked on every base
    and their failure is final. A plan whose requirements no longer hold is prepared again.
    `identity` is the (commit id, creation time) of an operation that was written down before.
    """
    made = _published(line, prepare, signature, conditions, identity)
    if made is not None:
        try:
            trim_when_due(line.store, line.ulid, made.manifest_version)
        except BaseException as cause:  # who interrupts learns what was done
            cause.add_note(f"commit {made.id} was written")
            raise
    return made


def _published(
    line: Line,
    prepare: Prepare,
    signature: Signature | None,
    conditions: Sequence[Requirement],
    identity: tuple[str, int] | None,
) -> Commit | None:
    commit_id, created_at = identity or (ids.new_ulid(), ids.now_micros())
    doubt = Doubt(f"commit {commit_id}")
    write = _Write(line, prepare, signature or Signature(), conditions, doubt)
    line.tend()
    txn = WriteTxn(line.store, line.name, line.base(), commit_id, created_at)
    told = told_when_missing(line.store, lambda: line.base().state.tables)
    with doubt.told(), line.turn(), told, reported("none"):
        deadline = ids.monotonic() + BUDGET
        for lost in range(PREPARATIONS):
            txn = replace(txn, base=line.base(), again=lost > 0)
            outcome = _once(write, txn)
            if not isinstance(outcome, _Again):
                return outcome
            if ids.monotonic() > deadline:
                break
            line.pause(lost)
        raise ConcurrentCommit(f"branch {line.name} was too busy; nothing was written")


class _Again:
    """The plan no longer fits: prepare it again on a newer state."""


def _once(write: _Write, txn: WriteTxn) -> Commit | _Again | None:
    """One preparation, and attempts to land what it planned."""
    line = write.line
    try:
        found = _known(write, txn)
        if found is not None:
            return found
        _open_branch(line, txn.base.state)
        hold(write.conditions, txn)
        plan = write.prepare(txn)
    except (ClientError, StorageError, OSError) as error:
        # Refused, or found something gone: that is an answer only if it is about the newest state.
        if _changed_something(error) or is_newest(txn.base):
            raise
        return _renewed(line)
    if plan is None:
        write.doubt.check()
        return None if is_newest(txn.base) else _renewed(line)
    try:
        return _land(write, txn, plan.standing_on(txn))
    except (HistoryReclaimed, StorageError, OSError) as error:
        if _changed_something(error) or is_newest(line.base()):
            raise
        return _renewed(line)


def _changed_something(error: Exception) -> bool:
    """Whether a failure says more than that something was read, or staged, in vain."""
    return isinstance(error, StorageError) and (
        error.effect != "none" or error.kind in ("transient", "precondition")
    )


def _known(write: _Write, txn: WriteTxn) -> Commit | None:
    """What stands on a base already: this very write, late, or one with the same key."""
    base, found = txn.base, None
    if write.doubt.open:
        found = Log(write.store, base.state).find(txn.commit_id)
        if found is None:
            write.doubt.seen(base)
    if found is None:
        found = replayed(write.store, base.state, write.signature)
        # A base from memory may be cleaned up by now, or its whole graph gone: that raises.
        base = write.line.refresh() if found is not None else base
    if found is not None:
        secure(base)
        write.doubt.end()
    return found


def _land(write: _Write, txn: WriteTxn, plan: PublishPlan) -> Commit | _Again:
    ready: dict[str, Ready] = {}
    for attempt in range(ATTEMPTS):
        if attempt:
            hold(write.conditions, txn)
            if not _holds(plan, txn):
                return _Again()
        fitted = _fit(txn, plan, ready)
        if fitted is None:
            return _Again()
        ready = fitted
        row = _commit_row(txn, plan, write.signature, ready)
        landed = _swap(write, txn.base, _next_state(txn, plan, row, ready), row)
        if landed:
            return row
        txn = replace(txn, base=write.line.base(), again=True)
        found = _known(write, txn)
        if found is not None:
            return found
    return _Again()


def _holds(plan: PublishPlan, txn: WriteTxn) -> bool:
    """Whether what the plan read is still so, and its files are still there."""
    if not plan.protected and plan.epoch != txn.base.state.head.gc_epoch:
        return False
    try:
        hold(plan.requirements, txn)
    except Conflict:
        return False
    return True


def _fit(txn: WriteTxn, plan: PublishPlan, ready: Mapping[str, Ready]) -> dict[str, Ready] | None:
    """Detached versions on top of the tables of this base; None when one does not fit."""
    fitted: dict[str, Ready] = {}
    for key, staged in plan.writes.items():
        entry = txn.base.state.tables.get(key)
        if entry is None:
            return None
        before = ready.get(key)
        if before is not None and _same(before.base, entry):
            fitted[key] = before
            continue
        table = txn.table(key)
        fitting = replace(staged, upfront=()) if txn.again else staged
        if not replays(fitting, table):
            return None
        committed = commit_table(txn.store, table, fitting)
        content = entry.content_id if plan.maintenance else txn.commit_id
        fitted[key] = Ready(
            entry,
            replace(
                entry,
                version=entry.version + 1,
                lance_version=committed.version,
                content_id=content,
                rows=entry.rows + staged.rows,
                branch=txn.branch,
            ),
            committed.new_files,
        )
    return fitted


def _same(one: TableEntry, other: TableEntry) -> bool:
    return (one.content_id, one.lance_version) == (other.content_id, other.lance_version)


def _commit_row(
    txn: WriteTxn, plan: PublishPlan, signature: Signature, ready: Mapping[str, Ready]
) -> Commit:
    changed: dict[str, TableEntry | None] = {key: one.entry for key, one in ready.items()}
    changed |= {**plan.registered, **plan.adopted, **dict.fromkeys(plan.dropped)}
    files = {name: one for table in ready.values() for name, one in table.files.items()}
    parents = (txn.base.state.head.commit_id, *((plan.merged,) if plan.merged else ()))
    return Commit(
        id=txn.commit_id,
        parents=parents,
        operation=plan.operation,
        branch=txn.branch,
        manifest_version=txn.base.version + 1,
        created_at=txn.created_at,
        published_at=ids.now_micros(),
        actor=signature.actor,
        message=signature.message,
        schema=plan.schema,
        tables=changed,
        streams=plan.streams,
        key=signature.key,
        request=signature.request,
        details=plan.details,
        files=record_checksums(txn.store, changed, {**plan.files, **files}),
    )


def _next_state(txn: WriteTxn, plan: PublishPlan, row: Commit, ready: Mapping[str, Ready]) -> State:
    base = txn.base.state
    log = Log(txn.store, base)
    foreign = [one for one in plan.foreign if log.find(one.id) is None]
    grown = append(txn.store, base, [*foreign, row])
    tables = {**base.tables, **{k: v for k, v in row.tables.items() if v is not None}}
    return replace(
        grown,
        head=replace(base.head, commit_id=row.id, nonce=None),
        schema=plan.schema or base.schema,
        tables={key: one for key, one in tables.items() if key not in plan.dropped},
        streams={**base.streams, **plan.streams},
    )


def _swap(write: _Write, base: Opened, state: State, row: Commit) -> bool:
    """Swap, and look before saying anything: True means that the commit is in the log."""
    try:
        opened = swap_state(write.store, base, state)
    except LostSwap:
        with undecided():
            return _look(write, base.state, row)
    except UnsureSwap as unsure:
        return _ask(write, base, row, unsure)
    write.doubt.add(base)  # for who is interrupted before the look is done
    with undecided():
        newest = is_newest(opened)
        write.doubt.end()
        if not newest:
            return _look(write, base.state, row)
    write.line.advance(opened)
    return True


def _look(write: _Write, base: State, row: Commit) -> bool:
    """Read the newest state, and say whether our commit is in its log."""
    line = write.line
    for _ in range(ATTEMPTS):
        newest = line.reload()
        try:
            found = _find(line, base, newest.state, row.id)
        except HistoryReclaimed:
            # Chunks were merged and collected meanwhile; of a deleted branch they stay gone.
            _open_branch(line, newest.state)
            continue
        if found is None:
            write.doubt.seen(newest)
            _open_branch(line, newest.state)
            return False
        try:
            secure(newest)  # whoever swapped it may not have come that far
        except AbsentError:
            continue  # replaced and cleaned up: the next one holds the commit, too
        write.doubt.end()
        return _is_ours(found, row)
    raise StorageError(f"the log of branch {line.name} cannot be read", kind="permanent")


def _is_ours(found: Commit, row: Commit) -> bool:
    """What stands under our id may be the refusal that somebody wrote for us: then it is over."""
    if found.operation != row.operation:
        raise ReadSetConflict(
            f"the {row.operation} was settled by another as {found.operation}", member="tables"
        )
    return True


def _find(line: Line, base: State, newest: State, commit_id: str) -> Commit | None:
    """A commit of the newest log by id; chunks that the base had cannot hold it."""
    known = {one.name for one in base.chunks}
    fresh = replace(newest, chunks=tuple(c for c in newest.chunks if c.name not in known))
    return Log(line.store, fresh).find(commit_id)


def _open_branch(line: Line, state: State) -> None:
    if state.head.closed:
        raise ReadSetConflict(
            f"branch {line.name} was deleted", member="branch", expected=line.ulid
        )


def _ask(write: _Write, base: Opened, row: Commit, unsure: UnsureSwap) -> bool:
    """After a swap without an answer; trying the same commit again is safe.

    Not so when the caller was interrupted, or when a disk refused: these are told.
    """
    cause, refused = unsure.__cause__, refusal(write.store, unsure)
    if refused is None:
        write.doubt.add(base)
    with undecided():
        if is_displaced(base):
            raise StorageError(f"another graph stands at {write.store.root.uri}", kind="permanent")
        landed = _look(write, base.state, row)
    if cause is not None and not isinstance(cause, Exception):
        if landed:
            cause.add_note(f"commit {row.id} was written")
        raise cause
    if refused is not None and not landed:
        raise storage_failure(refused, effect="none") from refused
    return landed


def _renewed(line: Line) -> _Again:
    line.reload()
    return _Again()
