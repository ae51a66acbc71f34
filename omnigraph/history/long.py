"""Long operations: stage under an intent, confirm, ask for the verdict, publish.

Owns the life of an operation that may outlive its process. What was confirmed is published exactly
once, by its owner or by whoever finds it; what cannot be published leaves a refusal in the log.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from omnigraph import ids
from omnigraph.errors import ConcurrentCommit, Conflict, ReadSetConflict
from omnigraph.storage.staged import staged_from_json, staged_to_json
from omnigraph.storage.store import Store

from . import intent as intents
from .commit import Commit
from .intent import Intent
from .line import Line
from .log import Log
from .plan import PublishPlan, Signature, WriteTxn, hold, requirement_from_json
from .publish import publish

Stage = Callable[[WriteTxn], PublishPlan | None]
REFUSED = "refused"


def publish_long(
    line: Line, operation: str, stage: Stage, signature: Signature, tables: tuple[str, ...] = ()
) -> Commit | None:
    """Stage something that takes long, protected by an intent, and publish it once."""
    base = line.refresh()
    intent = Intent(
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
    intents.arm(line.store, intent)
    with _discarded_on_failure(line.store, intent), _kept_alive(line.store, intent):
        txn = WriteTxn(line.store, line.name, base, intent.commit_id or "", intent.created_at)
        plan = stage(txn)
        if plan is not None:
            intents.confirm(line.store, intent, plan_to_json(plan))
    if plan is None:
        _discard(line.store, intent)
        return None
    if intents.decide(line.store, intent, "publish") != "publish":
        raise ConcurrentCommit(f"the {operation} took too long and was discarded")
    return finish(line, intent, plan)


def finish(
    line: Line, intent: Intent, plan: PublishPlan, settled: Callable[[], object] = lambda: None
) -> Commit:
    """Publish a confirmed operation; who cannot publishes the refusal, and then says why.

    `settled` runs when the outcome is in the log, before the intent goes.
    """
    signature = signature_of(intent)
    identity = (intent.commit_id or "", intent.created_at)
    offered = False

    def prepare(txn: WriteTxn) -> PublishPlan:
        nonlocal offered
        if offered:
            hold(plan.requirements, txn)
            raise ReadSetConflict(member="tables", expected=intent.base_commit)
        offered = True
        return plan

    landed = Log(line.store, line.refresh().state).find(identity[0])
    try:
        if landed is None:
            landed = publish(line, prepare, signature, identity=identity)
    except Conflict:
        refuse(line, intent)
        raise
    settled()
    intents.retire(line.store, intent)
    if landed is None or landed.operation == REFUSED:
        raise ReadSetConflict(member="tables", expected=intent.base_commit)
    return landed


def refuse(line: Line, intent: Intent) -> None:
    """Put the refusal in the log under the same commit id, so that nobody publishes it later."""
    identity = (intent.commit_id or "", intent.created_at)
    log = Log(line.store, line.refresh().state)
    if not line.base().state.head.closed and log.find(identity[0]) is None:
        plan = PublishPlan(REFUSED)
        publish(line, lambda _: plan, Signature(actor=intent.actor), identity=identity)
    intents.retire(line.store, intent)


def signature_of(intent: Intent) -> Signature:
    """Who signed an operation that was written down."""
    facts = intent.facts
    return Signature(intent.actor, intent.message, facts.get("key"), facts.get("request"))


def plan_to_json(plan: PublishPlan) -> dict[str, Any]:
    """What was staged, as plain data."""
    return {
        "operation": plan.operation,
        "writes": {key: staged_to_json(one) for key, one in plan.writes.items()},
        "requirements": [one.to_json() for one in plan.requirements],
        "streams": dict(plan.streams),
    }


def plan_from_json(facts: Mapping[str, Any], txn: WriteTxn) -> PublishPlan:
    """A plan from plain data; its files are protected by their intent, whatever the epoch."""
    writes = {key: staged_from_json(one, txn.table(key)) for key, one in facts["writes"].items()}
    requirements = tuple(requirement_from_json(one) for one in facts["requirements"])
    return PublishPlan(
        facts["operation"], writes, requirements, streams=facts["streams"], epoch=None
    )


@contextmanager
def _discarded_on_failure(store: Store, intent: Intent) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _discard(store, intent)
        raise


def _discard(store: Store, intent: Intent) -> None:
    if intents.decide(store, intent, "discard") == "discard":
        intents.retire(store, intent)


@contextmanager
def _kept_alive(store: Store, intent: Intent) -> Iterator[None]:
    """Renew the lease while the block runs."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(intents.RENEWAL):
            intents.renew(store, intent)

    keeper = threading.Thread(target=renew, name=f"lease-{intent.id}", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()
