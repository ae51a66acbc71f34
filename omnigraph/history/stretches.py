"""The way of a table from one state to a later one, without what maintenance did to it.

Maintenance moves rows to other files and keeps the content. Where it stands between two states,
their files have little in common; on both sides of it they still do. So the way is compared in
stretches. Reads the log only.
"""

from itertools import pairwise

from omnigraph.errors import CommitNotFound, HistoryReclaimed

from .commit import TableEntry
from .snapshot import Snapshot

_FARTHEST = 4_096  # commits that are looked at
Stretch = tuple[TableEntry, TableEntry]


def stretches(old: Snapshot, new: Snapshot, key: str) -> list[Stretch] | None:
    """Pairs of versions that lead from the old content to the new one; None if that saves nothing.

    Each pair begins with the content with which the one before it ended.
    """
    was, now = old.tables[key], new.tables[key]
    way = _way(new, key, was.content_id)
    if way is None or any(one.location != now.location for one in way):
        return None
    cuts = [(one, other) for one, other in pairwise(way) if one.content_id == other.content_id]
    if not cuts and way[0].lance_version == was.lance_version:
        return None
    ends = [one for one, _ in cuts] + [way[-1]]
    starts = [way[0]] + [other for _, other in cuts]
    pairs = zip(starts, ends, strict=True)
    return [(one, other) for one, other in pairs if one.content_id != other.content_id]


def _way(new: Snapshot, key: str, content: str) -> list[TableEntry] | None:
    """The versions of a table since it last had some content, oldest first; None if it never had.

    Along first parents: what a merge brought is a step like any other.
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
