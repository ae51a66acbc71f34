"""Settling operations whose owner is gone: finish what was confirmed, discard the rest.

Nothing waits for this. It runs at a read-write open and now and then before a write; running it
twice changes nothing, and only intents whose lease has run out are touched.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from omnigraph.errors import Conflict, NotFound
from omnigraph.storage.store import Store

from . import intent as intents
from . import refs
from .audit import Outcome, record
from .branches import finish_create
from .intent import Intent, Pending
from .line import Line, line_of
from .log import Log
from .long import finish, plan_from_json
from .manifest import read_manifest
from .plan import PublishPlan, WriteTxn
from .state import State


def recover(store: Store) -> list[Outcome]:
    """Settle every intent whose lease has run out: one listing when there is none."""
    found = intents.pending(store)
    if not found:
        return []
    now = intents.store_time(store)
    due = [one for one in found if intents.expired(one, now)]
    outcomes = [_settle(store, one) for one in due]
    return [one for one in outcomes if one is not None]


def _settle(store: Store, one: Pending) -> Outcome | None:
    wish: intents.Verdict = "publish" if one.confirmed else "discard"
    verdict = intents.decide(store, one.intent, wish)
    if verdict is None:
        return None
    if verdict == "discard":
        outcome = record(store, one.intent, "discarded")
        intents.retire(store, one.intent)
        return outcome
    if one.intent.operation == "branch_create":
        return _finish_creation(store, one.intent)
    return _finish_publish(store, one.intent)


def _finish_publish(store: Store, intent: Intent) -> Outcome:
    line = line_of(store, intent.branch, intent.branch_ulid)
    facts = intents.confirmation(store, intent)
    if facts is None or line.refresh().state.head.closed:
        outcome = record(store, intent, "discarded")
        intents.retire(store, intent)
        return outcome
    try:
        settled = partial(record, store, intent, "finished")
        finish(line, intent, _plan(store, line, intent, facts), settled)
    except Conflict:
        return record(store, intent, "refused")
    return record(store, intent, "finished")


def _plan(store: Store, line: Line, intent: Intent, facts: dict[str, Any]) -> PublishPlan:
    txn = WriteTxn(store, line.name, line.base(), intent.commit_id or "", intent.created_at)
    return plan_from_json(facts, txn)


def _finish_creation(store: Store, intent: Intent) -> Outcome:
    state = _forked_state(store, intent)
    name = intent.facts["name"]
    number = refs.highest_number(store, name)
    taken = number % 2 == 1
    if state is None or taken:
        ours = taken and refs.find_ref(store, name).ulid == intent.creates
        outcome = record(store, intent, "finished" if ours else "discarded")
        intents.retire(store, intent)
        return outcome
    outcome = record(store, intent, "finished")
    finish_create(store, intent, state, number + 1)
    return outcome


def _forked_state(store: Store, intent: Intent) -> State | None:
    try:
        source = read_manifest(store, intent.branch_ulid).state
        tables, schema = Log(store, source).state_of(intent.base_commit)
    except NotFound:
        return None
    return replace(source, tables=tables, schema=schema)
