"""Operations that need a decision, and unreadable records of recovery.

None of them blocks reads or writes, so all findings are warnings. Reads control objects only; it
never resolves an operation.
"""

from collections.abc import Iterator

from omnigraph.history.audit import list_outcomes
from omnigraph.history.intent import SetAside, listing
from omnigraph.history.retention.condemned import (
    CONDEMNED,
    SWEEP,
    DamagedListError,
    list_runs,
    read_names,
)
from omnigraph.history.set_aside import list_set_aside
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .finding import Finding

_PASSED_OVER = "the file is ignored; move it away if you do not need it"


def check_operations(store: Store) -> Iterator[Finding]:
    """Report what needs attention in `__recovery`, `_audit` and `__gc`."""
    for one in list_set_aside(store):
        yield _set_aside(store.root.uri, one)
    for stray in listing(store).strays:
        if not stray.name.rpartition("/")[2].startswith("."):  # operating systems create those
            message = "this file is not a record of an operation"
            yield Finding("intent", message, "warning", name=stray.name, hint=_PASSED_OVER)
    for outcome in list_outcomes(store):
        if outcome.kind == "unreadable":
            name = f"{layout.AUDIT}/{outcome.operation_id}.json"
            yield _damaged_record(outcome.error or "", name)
    yield from _damaged_lists(store)


def _set_aside(uri: str, one: SetAside) -> Finding:
    intent = one.intent
    what = f"{intent.operation} {one.id}" if intent is not None else f"operation {one.id}"
    name = layout.intent_name(one.id)
    if one.needs:
        hint = "a release that knows the operation resolves it when it opens the graph for writing"
    else:
        command = f"`omnigraph recovery retry {one.id} --store {uri}`"
        hint = f"fix the cause, then run {command}; or give it up with `recovery drop`"
    branch = intent.branch if intent is not None else None
    reason = f"{what} is unfinished and was set aside: {one.error}"
    return Finding("intent", reason, "warning", branch, name=name, hint=hint)


def _damaged_lists(store: Store) -> Iterator[Finding]:
    for run in list_runs(store):
        for part in (CONDEMNED, SWEEP):
            try:
                read_names(store, run, part)
            except DamagedListError as error:
                yield _damaged_record(error.message, layout.gc_name(run, part))


def _damaged_record(reason: str, name: str) -> Finding:
    hint = "restore the file from a backup, or delete it while no cleanup is running"
    return Finding("record", reason, "warning", name=name, hint=hint)
