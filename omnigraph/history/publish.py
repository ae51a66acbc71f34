"""The write protocol: pin a base, write detached table versions, swap the manifest, verify, ack.

The only module that makes a write visible. The order is what makes it safe:

1. Everything that the new state references is written first: data files, then detached table
   versions, then log chunks. No manifest references them yet, so a crash leaves garbage only.
2. One compare-and-swap of the branch manifest makes all tables visible at once. It succeeds only
   on the exact base that the plan was checked on, so no concurrent write is overwritten.
3. The newest manifest is read back before the write is acknowledged, because a store may apply a
   swap and lose the answer. Only then does this process advance its cached branch state.
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

PREPARATIONS = 32  # plans per write; each lost race may need a fresh one
ATTEMPTS = 5  # swaps of one plan, each on a newer base, before it is prepared again
BUDGET = 60.0  # seconds for all preparations together


@dataclass(frozen=True, slots=True)
class Ready:
    """A table with its new detached version: the entry it was based on, and the entry to publish.

    Plain Lance readers never see a detached version; only a branch manifest references it.
    `file_checksums` are those of the files that the version adds.
    """

    base: TableEntry
    entry: TableEntry
    files: FileChecksums


@dataclass(frozen=True, slots=True)
class _Write:
    """The parts of a write that stay the same over all attempts."""

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
    """Prepare a write on the newest state and publish it, all tables at once.

    Return the commit, the earlier commit with the same idempotency key, or None if there is
    nothing to write. `conditions` are what the caller based its decision on: they are checked on
    every base, and a failure is final. A plan whose own requirements fail is prepared again.
    `identity` is the (commit id, creation time) that an intent recorded earlier: a recovered
    operation keeps its commit id, so that it can be found in the log and never published twice.
    """
    made = _published(line, prepare, signature, conditions, identity)
    if made is not None:
        # Housekeeping comes last and only logs its failures: the write has already landed.
        try:
            trim_when_due(line.store, line.ulid, made.manifest_version)
        except BaseException as cause:  # an interrupted caller must learn that the write exists
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
    # One commit id for all attempts: a late swap of an earlier attempt is then recognized in the
    # log as this very write, and publishing the write twice is impossible.
    commit_id, created_at = identity or (ids.new_ulid(), ids.now_micros())
    doubt = Doubt(f"commit {commit_id}")
    write = _Write(line, prepare, signature or Signature(), conditions, doubt)
    line.tend()  # recover crashed operations first, outside of the writer slot
    txn = WriteTxn(line.store, line.name, line.base(), commit_id, created_at)
    told = told_when_missing(line.store, lambda: line.base().state.tables)
    # The writer slot lets threads of this process take turns instead of racing for the swap.
    # Against other processes only the swap itself decides.
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
    """Result of an attempt whose plan no longer fits: prepare it again on a newer state."""


def _once(write: _Write, txn: WriteTxn) -> Commit | _Again | None:
    """Prepare one plan and try to publish it."""
    line = write.line
    try:
        found = _known(write, txn)
        if found is not None:
            return found
        _open_branch(line, txn.base.state)
        hold(write.conditions, txn)
        plan = write.prepare(txn)
    except (ClientError, StorageError, OSError) as error:
        # The base comes from memory and may be outdated: a conflict may be resolved by now, and
        # files may have been compacted away. Such a failure is final only on the newest state.
        if _changed_something(error) or is_newest(txn.base):
            raise
        return _renewed(line)
    if plan is None:
        # "Nothing to write" must not hide an earlier swap of this write that may still land.
        write.doubt.check()
        return None if is_newest(txn.base) else _renewed(line)
    try:
        return _land(write, txn, plan.standing_on(txn))
    except (HistoryReclaimed, StorageError, OSError) as error:
        if _changed_something(error) or is_newest(line.base()):
            raise
        return _renewed(line)


def _changed_something(error: Exception) -> bool:
    """Whether a failure must reach the caller: it may have written, or a reload cannot cure it."""
    return isinstance(error, StorageError) and (
        error.effect != "none" or error.kind in ("transient", "precondition")
    )


def _known(write: _Write, txn: WriteTxn) -> Commit | None:
    """Find the commit of this write, landed late, or an earlier one with its idempotency key."""
    base, found = txn.base, None
    if write.doubt.open:
        found = Log(write.store, base.state).find(txn.commit_id)
        if found is None:
            write.doubt.seen(base)
    if found is None:
        found = replayed(write.store, base.state, write.signature)
        # The base from memory may be cleaned up by now, or the whole graph may be gone. Refresh
        # before the earlier commit is reported; the refresh raises in these cases.
        base = write.line.refresh() if found is not None else base
    if found is not None:
        secure(base)  # its writer may have crashed before it synced the version
        write.doubt.end()
    return found


def _land(write: _Write, txn: WriteTxn, plan: PublishPlan) -> Commit | _Again:
    """Swap the plan in, rebasing it on the newer state after each lost swap."""
    ready: dict[str, Ready] = {}
    for attempt in range(ATTEMPTS):
        if attempt:
            # The first attempt was checked during preparation. This base is newer: another writer
            # may have invalidated what the caller or the plan relied on.
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
        # The swap may have landed without an answer and been overtaken since. Search the newer
        # log before the next attempt: a second commit with the same id must never be published.
        txn = replace(txn, base=write.line.base(), again=True)
        found = _known(write, txn)
        if found is not None:
            return found
    return _Again()


def _holds(plan: PublishPlan, txn: WriteTxn) -> bool:
    """Whether everything the plan has read is unchanged, and its staged files still exist.

    A raised epoch means that a collector fenced the branch after staging. Staged files are not
    referenced by any state, so the collector may count them as garbage; they must be staged again.
    """
    if not plan.protected and plan.epoch != txn.base.state.head.gc_epoch:
        return False
    try:
        hold(plan.requirements, txn)
    except Conflict:
        return False
    return True


def _fit(txn: WriteTxn, plan: PublishPlan, ready: Mapping[str, Ready]) -> dict[str, Ready] | None:
    """Write detached versions on top of the tables of this base; None if a change does not apply.

    A table that has not moved since the last attempt keeps its detached version.
    """
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
        # On a retry, maintenance that was attached to the write is dropped: it conflicts easily.
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
    """Build the commit; the record of file checksums may be written here, before the swap."""
    changed: dict[str, TableEntry | None] = {key: one.entry for key, one in ready.items()}
    changed |= {**plan.registered, **plan.adopted, **dict.fromkeys(plan.dropped)}
    files = {name: checksum for table in ready.values() for name, checksum in table.files.items()}
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
    """Build the state to swap in; sealed log chunks are written here, before the swap."""
    base = txn.base.state
    log = Log(txn.store, base)
    foreign = [incoming for incoming in plan.foreign if log.find(incoming.id) is None]
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
    """Swap the manifest and verify; True means that the commit is in the log.

    Never report the outcome of the swap alone. A client library may repeat a request whose answer
    was lost, and the repetition then loses to its own first try: even a conflict can mean success.
    """
    try:
        opened = swap_state(write.store, base, state)
    except LostSwap:
        with undecided():
            return _look(write, base.state, row)
    except UnsureSwap as unsure:
        return _ask(write, base, row, unsure)
    # If an interrupt arrives before verification ends, the caller hears "unknown", not "failed".
    write.doubt.add(base)
    with undecided():
        newest = is_newest(opened)
        write.doubt.end()
        if not newest:
            return _look(write, base.state, row)
    # Memory last: a state that is cached before it is verified could be shown and then vanish.
    write.line.advance(opened)
    return True


def _look(write: _Write, base: State, row: Commit) -> bool:
    """Read the newest state and return whether this commit is in its log."""
    line = write.line
    for _ in range(ATTEMPTS):
        newest = line.reload()
        try:
            found = _find(line, base, newest.state, row.id)
        except HistoryReclaimed:
            # Chunks were merged and collected since the read. On a deleted branch they stay gone,
            # so retrying is pointless there.
            _open_branch(line, newest.state)
            continue
        if found is None:
            # A newer version without the commit uses up the version number of the swap: it can
            # never land any more, and only now "not written" is certain.
            write.doubt.seen(newest)
            _open_branch(line, newest.state)
            return False
        try:
            secure(newest)  # another process may have swapped it and crashed before its sync
        except AbsentError:
            continue  # superseded and cleaned up; the next version contains the commit, too
        write.doubt.end()
        return _is_ours(found, row)
    raise StorageError(f"the log of branch {line.name} cannot be read", kind="permanent")


def _is_ours(found: Commit, row: Commit) -> bool:
    """Return True if the logged commit is ours; raise if it is a refusal under our commit id.

    Recovery by another process may have given the operation up and recorded that.
    """
    if found.operation != row.operation:
        raise ReadSetConflict(
            f"the {row.operation} was already resolved by another process as {found.operation}",
            member="tables",
        )
    return True


def _find(line: Line, base: State, newest: State, commit_id: str) -> Commit | None:
    """Find a commit in the newest log; chunks that the base already had cannot contain it."""
    known = {one.name for one in base.chunks}
    fresh = replace(newest, chunks=tuple(c for c in newest.chunks if c.name not in known))
    return Log(line.store, fresh).find(commit_id)


def _open_branch(line: Line, state: State) -> None:
    """Raise if the branch was deleted."""
    if state.head.closed:
        raise ReadSetConflict(
            f"branch {line.name} was deleted", member="branch", expected=line.ulid
        )


def _ask(write: _Write, base: Opened, row: Commit, unsure: UnsureSwap) -> bool:
    """Find out what became of a swap that got no answer.

    Retrying with the same commit id is safe, so most cases just return whether it landed. An
    interrupt of the caller and an error of a local disk are raised instead: the one must not be
    swallowed, the other would only repeat.
    """
    cause, refused = unsure.__cause__, refusal(write.store, unsure)
    if refused is None:  # a local disk that refused has nothing in flight
        write.doubt.add(base)
    with undecided():
        if is_displaced(base):
            # The root was removed and created again. The log there says nothing about our swap.
            message = f"another graph was created at {write.store.root.uri}"
            raise StorageError(message, kind="permanent")
        landed = _look(write, base.state, row)
    if cause is not None and not isinstance(cause, Exception):
        if landed:
            cause.add_note(f"commit {row.id} was written")
        raise cause
    if refused is not None and not landed:
        raise storage_failure(refused, effect="none") from refused
    return landed


def _renewed(line: Line) -> _Again:
    """Load the newest state for the next preparation."""
    line.reload()
    return _Again()
