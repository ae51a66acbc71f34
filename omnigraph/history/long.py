"""Long operations: stage under an intent, confirm, request the verdict, publish.

Owns the life cycle of an operation that may outlive its process. A confirmed plan is published
exactly once, by its owner or by recovery; one that cannot be published leaves a refusal in the log.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from omnigraph import ids
from omnigraph.errors import (
    ClientError,
    ConcurrentCommit,
    ReadSetConflict,
    RecoveryRequired,
    StorageError,
)
from omnigraph.storage.failures import reported
from omnigraph.storage.store import Store
from omnigraph.storage.table import replays

from . import intent as intents
from .audit import Kind
from .commit import Commit
from .confirmed import plan_to_json
from .intent import Intent
from .lease import kept_alive
from .line import Line
from .log import Log
from .manifest import Opened
from .missing import told_when_missing
from .plan import PublishPlan, Signature, WriteTxn, hold
from .publish import publish
from .state import State

Stage = Callable[[WriteTxn], PublishPlan | None]
Confirmed = Callable[[WriteTxn], PublishPlan]
REFUSED = "refused"
_log = logging.getLogger("omnigraph")


def publish_long(
    line: Line,
    operation: str,
    stage: Stage,
    signature: Signature,
    tables: tuple[str, ...] = (),
    facts: Mapping[str, Any] | None = None,
) -> Commit | None:
    """Stage a long operation under the protection of an intent, and publish it once.

    `intent_facts` are further members of the intent: a merge records its source there.

    Raises `RecoveryRequired` if it was confirmed and the store failed before it was published:
    the next writer that opens the graph publishes it.
    """
    base = line.refresh()
    intent = _intent(line, base, operation, signature, tables)
    intent = replace(intent, facts={**intent.facts, **(facts or {})})
    intents.arm(line.store, intent)
    staged = _stage(line, base, intent, stage)
    if staged is None:
        _discard(line.store, intent)
        return None
    with _pending_on_failure(intent):
        if intents.decide(line.store, intent, "publish") == "publish":
            with _pending_on_failure(intent, (ConcurrentCommit,)):  # decided, and too busy
                return finish(line, intent, lambda _: staged)
        return _decided_by_another(line, intent)


def finish(
    line: Line,
    intent: Intent,
    confirmed: Confirmed,
    settled: Callable[[Kind], object] = lambda _: None,
) -> Commit:
    """Publish a confirmed operation; if that is impossible, publish a refusal and raise the cause.

    `on_resolved` is called with what the log records (`finished`, `refused`, or `discarded` on a
    deleted branch) before the intent is removed. A branch that is too busy decides nothing: the
    intent stays.
    """
    outcome: Commit | ClientError | None
    try:
        outcome = _publish(line, intent, confirmed)
    except ConcurrentCommit:
        raise
    except ClientError as error:  # a conflict, a failed requirement, a key of another request
        outcome = error
    stands = find(line.store, line.base().state, intent) or refuse(line, intent)
    settled(_kind(stands))
    intents.retire(line.store, intent)
    if stands is not None and stands.operation != REFUSED:
        return stands
    if isinstance(outcome, Commit) and outcome.id != intent.commit_id:
        return outcome  # the earlier commit of the same idempotency key
    if isinstance(outcome, ClientError):
        raise outcome
    raise ReadSetConflict(member="tables", expected=intent.base_commit)


def refuse(line: Line, intent: Intent) -> Commit | None:
    """Publish the refusal under the same commit id, so that the plan is never published later.

    Returns the commit in the log, which may be one that another process published; None on a
    deleted branch.
    """
    refusal = Signature(actor=intent.actor)
    with suppress(ReadSetConflict):  # deleted: nothing can be published there any more
        _publish(line, intent, lambda _: PublishPlan(REFUSED), refusal)
    newest = line.refresh().state
    found = find(line.store, newest, intent)
    if found is None and not newest.head.closed:
        raise ConcurrentCommit(f"the refusal of {intent.operation} could not be written")
    return found


def find(store: Store, state: State, intent: Intent) -> Commit | None:
    """Find the commit of an intent in a log: it can only be newer than the intent's base."""
    for one in Log(store, state).first_parents(state.head.commit_id):
        if one.id == intent.commit_id:
            return one
        if one.id == intent.base_commit:
            return None
    return None


def _publish(
    line: Line, intent: Intent, confirmed: Confirmed, signature: Signature | None = None
) -> Commit | None:
    """Publish under the identity of the intent, unless its commit is already in the base's log."""

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        if find(txn.store, txn.base.state, intent) is not None:
            return None
        # Its files are protected by the intent, whatever a cleanup did meanwhile.
        plan = replace(confirmed(txn), protected=True)
        _fits(plan, txn, intent)
        return plan

    line.refresh()
    identity = (intent.commit_id or "", intent.created_at)
    return publish(line, prepare, signature or signature_of(intent), identity=identity)


def _fits(plan: PublishPlan, txn: WriteTxn, intent: Intent) -> None:
    """Check that a plan staged on an old base holds on this one; it cannot be staged again."""
    hold(plan.requirements, txn)
    for key, staged in plan.writes.items():
        if not replays(staged, txn.table(key)):
            raise ReadSetConflict(member="tables", expected=intent.base_commit)


def signature_of(intent: Intent) -> Signature:
    """Return the commit metadata of a stored operation."""
    facts = intent.facts
    return Signature(intent.actor, intent.message, facts.get("key"), facts.get("request"))


def _intent(
    line: Line, base: Opened, operation: str, signature: Signature, tables: tuple[str, ...]
) -> Intent:
    return Intent(
        id=ids.new_ulid(),
        operation=operation,
        branch=line.name,
        branch_ulid=line.ulid,
        base_commit=base.state.head.commit_id,
        created_at=ids.now_micros(),
        commit_id=ids.new_ulid(),
        actor=signature.actor,
        message=signature.message,
        tables=tables,
        facts={"key": signature.key, "request": signature.request},
    )


def _stage(line: Line, base: Opened, intent: Intent, stage: Stage) -> PublishPlan | None:
    """Stage and confirm; any failure here discards the intent."""
    try:
        told = told_when_missing(line.store, lambda: base.state.tables)
        with told, reported("none"), kept_alive(line.store, intent):
            txn = WriteTxn(line.store, line.name, base, intent.commit_id or "", intent.created_at)
            plan = stage(txn)
            if plan is not None:
                plan = plan.standing_on(txn)
                intents.confirm(line.store, intent, plan_to_json(plan))
            return plan
    except BaseException as error:
        discarded = _given_up(line.store, intent)
        if isinstance(error, StorageError):
            error.effect = "none" if discarded else "unknown"
        raise


def _given_up(store: Store, intent: Intent) -> bool:
    """Discard a failed operation. If that fails, its lease expires and recovery decides."""
    try:
        return _discard(store, intent)
    except (StorageError, OSError) as error:
        _log.warning("intent %s could not be discarded: %s", intent.id, error)
        return False


def _discard(store: Store, intent: Intent) -> bool:
    verdict = intents.decide(store, intent, "discard")
    if verdict == "discard":
        intents.retire(store, intent)
    return verdict == "discard"


def _decided_by_another(line: Line, intent: Intent) -> Commit:
    """The intent is over or to be discarded: the log tells whether another process published it."""
    found = find(line.store, line.refresh().state, intent)
    if found is None or found.operation == REFUSED:
        raise ConcurrentCommit(f"the {intent.operation} took too long and was discarded")
    return found


@contextmanager
def _pending_on_failure(
    intent: Intent, failures: tuple[type[Exception], ...] = (StorageError, OSError)
) -> Iterator[None]:
    """After the confirmation a store failure decides nothing: report that recovery is pending."""
    try:
        yield
    except failures as error:
        message = f"the {intent.operation} is confirmed, but may not be published yet"
        raise RecoveryRequired(message, operation_id=intent.id, effect="unknown") from error


def _kind(stands: Commit | None) -> Kind:
    if stands is None:
        return "discarded"
    return "refused" if stands.operation == REFUSED else "finished"
