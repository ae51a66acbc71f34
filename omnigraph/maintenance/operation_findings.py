"""Findings about operations that need a decision, and about unreadable recovery records.

None of these problems blocks reads or writes, so all findings are warnings. This module reads only control
objects and never resolves an operation.
"""

from collections.abc import Iterator

from omnigraph.history.delete_queue import QUEUE_PART, SWEEP_PART, DamagedListError, list_runs, read_listed_names
from omnigraph.history.recovery_records import list_recovery_records
from omnigraph.publish.intent import SetAsideIntent, list_intents
from omnigraph.publish.set_aside import list_set_aside_operations
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .finding import IntegrityFinding

_IGNORED_FILE_HINT = "the file is ignored; remove it if you do not need it"


def check_operations(store: Store) -> Iterator[IntegrityFinding]:
    """Report the records in `__recovery`, `_audit` and `__gc` that need attention."""
    for set_aside in list_set_aside_operations(store):
        yield _set_aside_finding(store.root.uri, set_aside)
    for stray in list_intents(store).foreign_files:
        if not stray.name.rpartition("/")[2].startswith("."):  # some operating systems create such files
            reason = "this file is not an operation record"
            yield IntegrityFinding("intent", reason, "warning", name=stray.name, hint=_IGNORED_FILE_HINT)
    for outcome in list_recovery_records(store):
        if outcome.kind == "unreadable":
            audit_path = f"{layout.AUDIT}/{outcome.operation_id}.json"
            yield _damaged_record_finding(outcome.error or "", audit_path)
    yield from _check_delete_queues(store)


def _set_aside_finding(uri: str, operation: SetAsideIntent) -> IntegrityFinding:
    intent = operation.intent
    subject = f"{intent.operation} {operation.id}" if intent is not None else f"operation {operation.id}"
    intent_path = layout.intent_name(operation.id)
    if operation.needs:
        hint = "open the graph for writing with a release that supports the operation"
    else:
        command = f"`omnigraph recovery retry {operation.id} --store {uri}`"
        hint = f"fix the cause, then run {command}; or drop the operation with `omnigraph recovery drop`"
    branch = intent.branch if intent is not None else None
    reason = f"{subject} is unfinished and was set aside: {operation.error}"
    return IntegrityFinding("intent", reason, "warning", branch, name=intent_path, hint=hint)


def _check_delete_queues(store: Store) -> Iterator[IntegrityFinding]:
    for cleanup_run in list_runs(store):
        for list_name in (QUEUE_PART, SWEEP_PART):
            try:
                read_listed_names(store, cleanup_run, list_name)
            except DamagedListError as error:
                yield _damaged_record_finding(error.message, layout.gc_name(cleanup_run, list_name))


def _damaged_record_finding(reason: str, record_path: str) -> IntegrityFinding:
    hint = "restore the file from a backup, or delete it while no cleanup is running"
    return IntegrityFinding("record", reason, "warning", name=record_path, hint=hint)
