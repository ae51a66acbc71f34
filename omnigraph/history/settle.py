"""Settle one operation whose owner is gone: finish it if that was decided, else discard it.

Owns how each kind of operation is finished. Several processes may settle the same operation at
once, and again after any crash. Whatever settling raises, the intent stays in place.
"""

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import (
    AlreadyExists,
    ClientError,
    GraphNotInitialized,
    NotFound,
    StorageError,
)
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.storage.torn import TornError

from . import intent as intents
from . import refs
from .audit import Kind, Outcome, record
from .branches import CREATIONS, finish_create, past_state, place_of
from .confirmed import PLAN, plan_from_json, plan_version
from .intent import Intent, Pending
from .intent_record import SCHEMA, newer_release
from .lease import READ
from .line import Line, line_of
from .long import find, finish
from .manifest import read_manifest
from .mend import set_torn_aside
from .plan import PublishPlan, WriteTxn
from .rename import RENAME, NameNotShownError, finish_rename
from .retention.condemned import check_kept, check_named
from .state import State

_WITHOUT_COMMIT = (*CREATIONS, RENAME, READ)


def settle(store: Store, pending: Pending, *, again: bool = False) -> Outcome | None:
    """Finish or discard one operation and record that; None if there is nothing to report.

    `was_set_aside`: objects that the operation references may have been removed while its record
    was unreadable, so they are checked first.
    """
    intent = pending.intent
    if intent.operation == READ:  # a read lease has no effect, so its end is not reported
        intents.retire(store, intent)
        return None
    if intent.commit_id is None and intent.operation not in _WITHOUT_COMMIT:
        raise newer_release(intent.id, operation=intent.operation)
    # The verdict comes first, and only one can ever be written. Without it, an owner that is
    # merely slow could publish what recovery discards.
    verdict = intents.decide(store, intent, "publish" if pending.confirmed else "discard")
    if verdict is None:
        return None
    if verdict == "discard":
        return _end(store, intent, "discarded")
    if intent.operation in CREATIONS:
        return _finish_creation(store, intent, again=again)
    if intent.operation == RENAME:
        return _finish_rename(store, intent)
    return _finish_publish(store, intent)


def understood(needs: Mapping[str, Any]) -> bool:
    """Whether this release can settle an operation that a newer release left behind.

    >>> understood({"schema_version": 1}), understood({"plan_version": 99}), understood({})
    (True, False, False)
    """
    return bool(needs) and all(_knows(name, value) for name, value in needs.items())


def _knows(name: str, value: object) -> bool:
    newest = {"schema_version": SCHEMA, "plan_version": PLAN}
    if name in newest:
        return isinstance(value, int) and value <= newest[name]
    return name == "operation" and value in _WITHOUT_COMMIT


def _end(store: Store, intent: Intent, kind: Kind, error: str | None = None) -> Outcome:
    outcome = record(store, intent, kind, error)
    intents.retire(store, intent)
    return outcome


def _finish_rename(store: Store, intent: Intent) -> Outcome:
    try:
        finish_rename(store, intent)
    except NameNotShownError as error:  # the branch still has its old name
        return _end(store, intent, "discarded", error.message)
    except (AlreadyExists, NotFound):  # the name is taken, or the branch is gone
        return _end(store, intent, "discarded")
    return _end(store, intent, "finished")


def _finish_publish(store: Store, intent: Intent) -> Outcome | None:
    line = _newest_line(store, intent)
    facts = intents.confirmation(store, intent)
    if facts is None:
        _check_over(line, intent)
        return None
    _check_version(intent, facts)
    recorded: list[Outcome] = []

    def confirmed(txn: WriteTxn) -> PublishPlan:
        plan = _read_plan(intent, facts, txn)
        _check_files(store, intent, plan)
        return plan

    try:
        finish(line, intent, confirmed, lambda kind: recorded.append(record(store, intent, kind)))
    except ClientError:
        if not recorded:  # otherwise it was refused, and the refusal is recorded
            raise
    return recorded[0] if recorded else None


def _newest_line(store: Store, intent: Intent) -> Line:
    """Load the branch of an operation; set aside torn versions, which were never acknowledged."""
    line = line_of(store, intent.branch, intent.branch_ulid)
    try:
        line.refresh()
    except TornError:
        set_torn_aside(store, intent.branch, intent.branch_ulid)
        line.reload()
    return line


def _check_over(line: Line, intent: Intent) -> None:
    """Retire an intent that was finished elsewhere, or that a power loss partly brought back.

    Anything else is damage that a person must judge.
    """
    if line.store.objects.read(layout.intent_name(intent.id)) is None:
        return
    state = line.refresh().state
    if state.head.closed or find(line.store, state, intent) is not None:
        intents.retire(line.store, intent)
        return
    name = layout.intent_name(intent.id, "confirmed")
    message = f"operation {intent.id} must be published, but its plan, {name}, is missing"
    raise StorageError(message, kind="permanent", effect="none")


def _check_version(intent: Intent, facts: Mapping[str, Any]) -> None:
    try:
        version = plan_version(facts)
    except TypeError as error:
        raise _unreadable_plan(intent) from error
    if version > PLAN:
        raise newer_release(intent.id, plan_version=version)


def _read_plan(intent: Intent, facts: Mapping[str, Any], txn: WriteTxn) -> PublishPlan:
    try:
        return plan_from_json(facts, txn)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ClientError):  # the table does not exist: a result, not damage
            raise
        raise _unreadable_plan(intent) from error


def _unreadable_plan(intent: Intent) -> StorageError:
    name = layout.intent_name(intent.id, "confirmed")
    message = f"the plan of operation {intent.id} cannot be read; {name} was kept"
    return StorageError(message, kind="permanent", effect="none")


def _check_files(store: Store, intent: Intent, plan: PublishPlan) -> None:
    """Refuse to publish if staged files are lost: the branch could not be read afterwards."""
    wanted = [name for staged in plan.writes.values() for name in staged.files]
    places = {name.rpartition("/")[0] for name in wanted}
    there = {one.name for place in places for one in store.objects.list(place)}
    lost = [name for name in wanted if name not in there]
    if lost:
        message = f"files staged by operation {intent.id} are missing, among them {lost[0]}"
        raise StorageError(message, kind="permanent", effect="none")
    if plan.adopted:
        check_named(store, plan.adopted.values(), intent.base_commit)


def _finish_creation(store: Store, intent: Intent, *, again: bool) -> Outcome | None:
    # Read the number before the manifest. A deletion closes the manifest first and takes the next
    # number afterwards, so reading in this order cannot miss a deletion.
    number = refs.highest_number(store, _created_name(intent), place_of(intent))
    if _deleted(store, intent):  # created, named and deleted since: do not bring the name back
        intents.retire(store, intent)
        return None
    state = _forked_state(store, intent)
    if again and state is not None:
        check_kept(store, state, intent.base_commit)
    # An odd number means that the name is taken: by this operation before a crash, or by another.
    number += number % 2 == 0
    made = state is not None and _take(store, intent, state, number)
    return _end(store, intent, "finished" if made else "discarded")


def _created_name(intent: Intent) -> str:
    name = intent.facts.get("name")
    if not isinstance(name, str) or intent.creates is None:
        raise StorageError(
            f"operation {intent.id} does not say what it creates", kind="permanent", effect="none"
        )
    return name


def _deleted(store: Store, intent: Intent) -> bool:
    """Whether the branch of a creation was created and closed again."""
    created = intent.creates or ""
    try:
        return read_manifest(store, created).state.head.closed
    except TornError:  # never acknowledged, so it is created again
        set_torn_aside(store, intent.facts["name"], created)
        return False
    except GraphNotInitialized:
        return False


def _take(store: Store, intent: Intent, state: State, number: int) -> bool:
    try:
        finish_create(store, intent, state, number)
    except (AlreadyExists, NotFound):
        return False
    return True


def _forked_state(store: Store, intent: Intent) -> State | None:
    try:
        source = read_manifest(store, intent.branch_ulid).state
        return past_state(store, source, intent.base_commit)
    except NotFound:
        return None
