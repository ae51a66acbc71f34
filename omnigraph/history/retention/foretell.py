"""Preview of an erase: what it removes beyond a cleanup, that is deleted data and old indexes.

Reads and counts; it writes nothing. Files that tags, merge bases and external tools need are left
out, because a rewrite does not free them.
"""

from collections.abc import Iterable, Iterator

from omnigraph.history.commit import TableEntry
from omnigraph.history.log import Log
from omnigraph.history.state import State
from omnigraph.storage import layout
from omnigraph.storage.compact import fragments_with_dropped, plan_rewrite, task_files
from omnigraph.storage.store import version_names
from omnigraph.storage.table import open_version

from .live import Live
from .roots import Marking, list_refs, merge_bases, read_head
from .survey import attached


def would_erase(marking: Marking) -> tuple[list[str], int]:
    """Return the files that an erase would make unreachable, and the deleted rows they hold."""
    heads, stays = _heads(marking)
    gone, deleted = Live(), 0
    for entry in {(one.location, one.lance_version): one for one in _entries(heads)}.values():
        deleted += _rewritten(marking, entry, gone, stays)
    for location in marking.tables:
        for version in attached(marking.survey.files, location):
            _stay(marking, stays, location, version)
    names = [name for name in marking.survey.files if gone.holds(name) and not stays.holds(name)]
    return names, deleted


def _heads(marking: Marking) -> tuple[list[State], Live]:
    """Return the states of all branches, and the files that tags and future merges need."""
    stays, heads = Live(), list[State]()
    for ref in list_refs(marking.store):
        states = [opened.state for opened in read_head(marking, ref)]
        if ref.place == layout.REFS:
            heads += states
        else:
            _stay_all(marking, stays, _entries(states))
    for unnamed in marking.unnamed:  # never rewritten
        states = [unnamed.opened.state] if unnamed.opened is not None else []
        _stay_all(marking, stays, _entries(states))
    for log, base in merge_bases([(state, Log(marking.store, state)) for state in heads]):
        _stay_all(marking, stays, log.state_of(base)[0].values())
    return heads, stays


def _entries(states: list[State]) -> Iterator[TableEntry]:
    return (entry for one in states for entry in one.tables.values())


def _rewritten(marking: Marking, entry: TableEntry, gone: Live, stays: Live) -> int:
    """Split the files of a version into those to be rewritten and those a new one still uses."""
    key = (entry.location, entry.lance_version)
    files = marking.versions.get(key)
    if files is None:
        return 0
    table = open_version(marking.store, *key)
    holes = [one.metadata.deletion_file for one in table.dataset.get_fragments()]
    deleted: int = sum(hole.num_deleted_rows for hole in holes if hole is not None)
    dropped = fragments_with_dropped(table)
    plan = plan_rewrite(table, also=dropped) if deleted or dropped else []
    old = {name for task in plan for name in task_files(table, task)}
    if old or files.places:
        gone.names |= {*version_names(*key), *old, *(files.deletions if old else ())}
        gone.places |= {*files.places, *(name.rpartition(".")[0] for name in old)}
    kept = set(files.data) - old
    stays.names |= kept
    stays.places |= {name.rpartition(".")[0] for name in kept}
    return deleted


def _stay_all(marking: Marking, stays: Live, entries: Iterable[TableEntry]) -> None:
    for one in entries:
        _stay(marking, stays, one.location, one.lance_version)


def _stay(marking: Marking, stays: Live, location: str, version: int) -> None:
    files = marking.versions.get((location, version))
    if files is not None:
        stays.add_version(location, version, files)
