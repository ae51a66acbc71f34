"""Path of a table's versions from one snapshot to a later one, without its maintenance steps.

Maintenance moves rows to other files and keeps the content. Two versions with maintenance between
them share few files, but the versions before it share most, and so do those after it. The path is
therefore compared step by step, skipping maintenance. It reads only the log.
"""

from itertools import pairwise

from omnigraph.errors import CommitNotFound, HistoryReclaimed

from .commit import TableEntry
from .snapshot import Snapshot

_FARTHEST = 4_096  # commits to search
Stretch = tuple[TableEntry, TableEntry]


def stretches(old: Snapshot, new: Snapshot, key: str) -> list[Stretch] | None:
    """Return version pairs that lead from the old content to the new one; None if no gain.

    Each pair starts with the content that the previous pair ended with.
    """
    was, now = old.tables[key], new.tables[key]
    way = _way(new, key, was.content_id)
    if way is None or any(entry.location != now.location for entry in way):
        return None
    cuts = [(one, other) for one, other in pairwise(way) if one.content_id == other.content_id]
    if not cuts and way[0].lance_version == was.lance_version:
        return None
    ends = [one for one, _ in cuts] + [way[-1]]
    starts = [way[0]] + [other for _, other in cuts]
    pairs = zip(starts, ends, strict=True)
    return [(one, other) for one, other in pairs if one.content_id != other.content_id]


def _way(new: Snapshot, key: str, content: str) -> list[TableEntry] | None:
    """Return the versions of a table since it last had a given content, oldest first, or None.

    Follows first parents: a merge is a step like any other.
    """
    found = [new.tables[key]]
    try:
        for count, commit in enumerate(new.log.first_parents(new.commit_id)):
            entry = commit.tables.get(key, found[-1])
            if entry is None or count > _FARTHEST:
                return None
            if entry != found[-1]:
                found.append(entry)
            if entry.content_id == content:
                return found[::-1]
    except (CommitNotFound, HistoryReclaimed):
        return None
    return None
