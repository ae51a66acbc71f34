"""The delete queue, which shows other processes the objects that a cleanup is about to remove.

This module implements the checks that writers make before they reuse old data. It removes nothing. An operation that
makes old data reachable under a new name first writes an intent and then checks the queues. If everything that the
operation needs still exists and is not queued, the operation may proceed: a cleanup that queues the data later finds
the intent in its mark phase. If the operation checked the queues before writing its intent, a cleanup could start in
between, and neither would detect the other.
"""

import logging
from collections.abc import Iterable

from omnigraph.errors import ConcurrentCommit, HistoryReclaimed, StorageError
from omnigraph.history.commit import TableEntry
from omnigraph.history.state import GraphState
from omnigraph.storage import layout
from omnigraph.storage.failures import AbsentError
from omnigraph.storage.store import Store, version_file_names
from omnigraph.storage.transfer import version_files

from .live_set import LiveSet

QUEUE_PART, SWEEP_PART = "condemned", "sweep"
_log = logging.getLogger("omnigraph")


class DamagedListError(StorageError):
    """A list that a cleanup wrote is damaged, so the cleanup cannot continue."""

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "remove the file when no cleanup is running"


def list_runs(store: Store) -> list[str]:
    """Return the ids of the cleanups that have not finished. This takes one list request."""
    name_parts = (listed_file.name.rpartition("/")[2].partition(".") for listed_file in store.objects.list(layout.GC))
    return sorted({run_id for run_id, _, part in name_parts if part in (QUEUE_PART, SWEEP_PART)})


def read_listed_names(store: Store, run_id: str, list_part: str) -> list[str] | None:
    """Return the names in one of a cleanup's lists, or None if the list does not exist.

    Raises `DamagedListError` if the list is not in the form that a cleanup writes.
    """
    object_name = layout.gc_name(run_id, list_part)
    try:
        members = store.objects.read_json(object_name)
    except StorageError as error:
        raise (_damaged_list_error(object_name) if error.kind == "permanent" else error) from error
    listed_names = members.get("names") if members is not None else []
    if not isinstance(listed_names, list) or not all(isinstance(listed_name, str) for listed_name in listed_names):
        raise _damaged_list_error(object_name)
    return None if members is None else listed_names


def _damaged_list_error(object_name: str) -> DamagedListError:
    return DamagedListError(f"cleanup list {object_name} is damaged")


def list_queued_names(store: Store) -> list[str]:
    """Return every name that a running cleanup may still remove.

    A cleanup's sweep list replaces its queue as soon as the list exists, because any queued object that is not on the
    list turned out to be in use.
    """
    return [queued_name for run_id in list_runs(store) for queued_name in _names_queued_by(store, run_id)]


def _names_queued_by(store: Store, run_id: str) -> list[str]:
    """Return the names that one cleanup has queued.

    A damaged list yields no names, because no cleanup uses a damaged list.
    """
    try:
        sweep_names = read_listed_names(store, run_id, SWEEP_PART)
        return (read_listed_names(store, run_id, QUEUE_PART) or []) if sweep_names is None else sweep_names
    except DamagedListError as error:
        _log.warning("%s; the list is ignored", error.message)
        return []


def check_head_not_queued(store: Store, state: GraphState, commit_id: str) -> None:
    """Raise an error if a cleanup may be removing part of the branch head's state.

    Even a branch head may be queued, because a mark phase never sees a branch that is created and deleted during that
    phase. If no cleanup is running, the check takes one list request.
    """
    queued_names = list_queued_names(store)
    if queued_names:
        _refuse_queued(store, state.tables.values(), state.schema.location, commit_id, queued_names)


def check_state_retained(store: Store, state: GraphState, commit_id: str) -> None:
    """Raise an error if a past state was removed or a cleanup may be removing it.

    The caller must already have written its intent, so that every later mark phase sees it.
    """
    check_versions_retained(store, state.tables.values(), commit_id, state.schema.location)


def check_versions_retained(
    store: Store, entries: Iterable[TableEntry], commit_id: str, schema_location: str | None = None
) -> None:
    """Run the check of `check_state_retained` on the table versions and the schema object that a commit references."""
    entries, queued_names = list(entries), list_queued_names(store)
    needed_objects = [version_file_names(entry.location, entry.lance_version) for entry in entries]
    needed_objects += [{schema_location}] if schema_location is not None else []
    # Read the objects instead of opening the tables, because a cached handle does not prove that the files exist.
    if not all(
        any(store.objects.read(object_name) is not None for object_name in alternative_names)
        for alternative_names in needed_objects
    ):
        raise reclaimed_error(commit_id)
    if queued_names:
        _refuse_queued(store, entries, schema_location, commit_id, queued_names)


def _refuse_queued(
    store: Store,
    entries: Iterable[TableEntry],
    schema_location: str | None,
    commit_id: str,
    queued_names: Iterable[str],
) -> None:
    needed_files = LiveSet(names={schema_location} if schema_location is not None else set())
    try:
        for entry in entries:
            files = version_files(store, entry.location, entry.lance_version)
            needed_files.add_version(entry.location, entry.lance_version, files)
    except AbsentError as error:
        raise reclaimed_error(commit_id) from error
    if any(needed_files.contains(queued_name) for queued_name in queued_names):
        raise ConcurrentCommit(
            f"a cleanup is about to remove data that commit {commit_id} needs",
            hint="try again in a moment; if the cleanup crashed, first run it again",
        )


def reclaimed_error(commit_id: str) -> HistoryReclaimed:
    """Return the error for a state that a cleanup removed."""
    return HistoryReclaimed(
        f"a cleanup removed the data for commit {commit_id}",
        first_unreadable_commit_id=commit_id,
        hint="use a newer commit; before the next cleanup, tag the commits to keep",
    )
