"""What collectors are about to remove, as others see it: the lists of all runs.

Owns the look that comes before anything is named by another name: who stands under an intent, and
finds all that it names in no list, and there, may name it. It never removes anything.
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
    """A list of a collector that is damaged: the run that wrote it cannot go on."""

    code = "StorageError"
    kind = "permanent"
    effect = "none"
    hint = "remove the file when no cleanup is at work"


def list_runs(store: Store) -> list[str]:
    """The runs of collectors that are not over: one listing."""
    found = (one.name.rpartition("/")[2].partition(".") for one in store.objects.list(layout.GC))
    return sorted({run for run, _, part in found if part in (CONDEMNED, SWEEP)})


def read_names(store: Store, run: str, part: str) -> list[str] | None:
    """The names in one file of a run; None when it is not there.

    Raises `DamagedListError` for one that is not what a collector wrote.
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
    """Every name that some run may still remove; the result of a look counts, once it stands."""
    return [name for run in list_runs(store) for name in _condemned_by(store, run)]


def _condemned_by(store: Store, run: str) -> list[str]:
    """The names of one run; none of a damaged list: no collector can remove anything by it."""
    try:
        swept = read_names(store, run, SWEEP)
        return (read_names(store, run, CONDEMNED) or []) if swept is None else swept
    except DamagedListError as error:
        _log.warning("%s; nothing is removed by it", error.message)
        return []


def check_unlisted(store: Store, state: State, commit_id: str) -> None:
    """Refuse to name the head of a branch while a collector may remove something of it.

    That it is the head is no proof by itself: a branch that was made and deleted within one look
    of a collector was seen by nobody. One listing when no collector is at work.
    """
    listed = condemned(store)
    if listed:
        _refuse_listed(store, state.tables.values(), state.schema.location, commit_id, listed)


def check_kept(store: Store, state: State, commit_id: str) -> None:
    """Refuse to name a state of the past that is gone, or that a collector may just remove.

    The caller's intent stands already: what no list names now is seen by every later look.
    """
    check_named(store, state.tables.values(), commit_id, state.schema.location)


def check_named(
    store: Store, entries: Iterable[TableEntry], commit_id: str, schema: str | None = None
) -> None:
    """The same of table versions, and of a schema object, that some commit names."""
    entries, listed = list(entries), condemned(store)
    needed = [version_names(one.location, one.lance_version) for one in entries]
    needed += [{schema}] if schema is not None else []
    # Read, not opened: a handle that is held proves nothing about files.
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
            hint="try again in a moment; if the cleanup was cut off, run it again first",
        )


def reclaimed(commit_id: str) -> HistoryReclaimed:
    """The error of a state that cleanup took."""
    return HistoryReclaimed(
        f"cleanup removed the state of commit {commit_id}",
        first_unreadable_commit_id=commit_id,
        hint="name a newer commit; tag what must stay before the next cleanup",
    )
