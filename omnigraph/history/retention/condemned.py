"""The delete queue: what collectors are about to remove, as other processes see it.

Owns the writers' side of the handshake. An operation that makes old data reachable by a new name
first arms an intent and then checks the queues. If nothing it needs is queued, and all of it still
exists, it may go on: any queue that is written later is followed by a mark that sees the intent.
Checking before arming would leave a gap in which neither side sees the other. It removes nothing.
"""

import logging
from collections.abc import Iterable

from omnigraph.errors import ConcurrentCommit, HistoryReclaimed, StorageError
from omnigraph.history.commit import TableEntry
from omnigraph.history.state import State
from omnigraph.storage import layout
from omnigraph.storage.failures import AbsentError
from omnigraph.storage.store import Store, version_names
from omnigraph.storage.transfer import version_files

from .live import Live

CONDEMNED, SWEEP = "condemned", "sweep"
_log = logging.getLogger("omnigraph")


class DamagedListError(StorageError):
    """A damaged list of a collector: the run that wrote it cannot continue."""

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "remove the file when no cleanup is running"


def list_runs(store: Store) -> list[str]:
    """Return the runs of collectors that have not ended; costs one listing."""
    found = (one.name.rpartition("/")[2].partition(".") for one in store.objects.list(layout.GC))
    return sorted({run for run, _, part in found if part in (CONDEMNED, SWEEP)})


def read_names(store: Store, run: str, part: str) -> list[str] | None:
    """Return the names in one list of a run; None if it does not exist.

    Raises `DamagedListError` for a list that no collector wrote in this form.
    """
    name = layout.gc_name(run, part)
    try:
        facts = store.objects.read_json(name)
    except StorageError as error:
        raise (_damaged(name) if error.kind == "permanent" else error) from error
    names = facts.get("names") if facts is not None else []
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise _damaged(name)
    return None if facts is None else names


def _damaged(name: str) -> DamagedListError:
    return DamagedListError(f"the list of a cleanup, {name}, is damaged")


def condemned(store: Store) -> list[str]:
    """Return every name that a run may still remove.

    Once the sweep list exists it replaces the queue: the other names were found to be needed.
    """
    return [name for run in list_runs(store) for name in _condemned_by(store, run)]


def _condemned_by(store: Store, run: str) -> list[str]:
    """Return the names of one run; none for a damaged list, since no collector removes by it."""
    try:
        swept = read_names(store, run, SWEEP)
        return (read_names(store, run, CONDEMNED) or []) if swept is None else swept
    except DamagedListError as error:
        _log.warning("%s; nothing is removed by it", error.message)
        return []


def check_unlisted(store: Store, state: State, commit_id: str) -> None:
    """Refuse to reference the head of a branch while a collector may remove part of it.

    Being the head is no proof: a branch that was created and deleted within one mark of a collector
    was seen by no mark. Costs one listing if no collector is running.
    """
    listed = condemned(store)
    if listed:
        _refuse_listed(store, state.tables.values(), state.schema.location, commit_id, listed)


def check_kept(store: Store, state: State, commit_id: str) -> None:
    """Refuse to reference a past state that is gone, or that a collector may be removing.

    The intent of the caller must be armed already: every later mark then sees it.
    """
    check_named(store, state.tables.values(), commit_id, state.schema.location)


def check_named(
    store: Store, entries: Iterable[TableEntry], commit_id: str, schema: str | None = None
) -> None:
    """Do the same for table versions, and a schema object, that a commit references."""
    entries, listed = list(entries), condemned(store)
    needed = [version_names(one.location, one.lance_version) for one in entries]
    needed += [{schema}] if schema is not None else []
    # Read the objects instead of opening them: a cached handle proves nothing about files.
    if not all(any(store.objects.read(name) is not None for name in names) for names in needed):
        raise reclaimed(commit_id)
    if listed:
        _refuse_listed(store, entries, schema, commit_id, listed)


def _refuse_listed(
    store: Store,
    entries: Iterable[TableEntry],
    schema: str | None,
    commit_id: str,
    listed: Iterable[str],
) -> None:
    live = Live(names={schema} if schema is not None else set())
    try:
        for one in entries:
            files = version_files(store, one.location, one.lance_version)
            live.add_version(one.location, one.lance_version, files)
    except AbsentError as error:
        raise reclaimed(commit_id) from error
    if any(live.holds(name) for name in listed):
        raise ConcurrentCommit(
            f"a cleanup is about to remove something of commit {commit_id}",
            hint="try again in a moment; if the cleanup crashed, run it again first",
        )


def reclaimed(commit_id: str) -> HistoryReclaimed:
    """Return the error for a state that a cleanup removed."""
    return HistoryReclaimed(
        f"cleanup removed the state of commit {commit_id}",
        first_unreadable_commit_id=commit_id,
        hint="use a newer commit; tag what must stay before the next cleanup",
    )
