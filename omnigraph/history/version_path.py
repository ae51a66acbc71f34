"""The path of table versions from one snapshot to a later one, without maintenance steps.

Maintenance moves rows to different files but does not change the content. Versions before and after maintenance share
few files, whereas other consecutive versions share most of theirs. The path is therefore compared one step at a time,
skipping maintenance. Only the log is read.
"""

from itertools import pairwise

from omnigraph.errors import CommitNotFound, HistoryReclaimed
from omnigraph.values.table_key import TableKey

from .commit import TableEntry
from .snapshot import Snapshot

_MAX_COMMITS = 4_096  # maximum number of commits to search
VersionStep = tuple[TableEntry, TableEntry]


def find_version_path(old_snapshot: Snapshot, new_snapshot: Snapshot, table_key: TableKey) -> list[VersionStep] | None:
    """Return version pairs that lead from the old content to the new content, or None if they would save no reads.

    Each pair starts with the content that the previous pair ended with.
    """
    old_entry, new_entry = old_snapshot.tables[table_key], new_snapshot.tables[table_key]
    versions = _versions_since_content(new_snapshot, table_key, old_entry.content_id)
    if versions is None or any(entry.location != new_entry.location for entry in versions):
        return None
    maintenance_pairs = [
        (first, second) for first, second in pairwise(versions) if first.content_id == second.content_id
    ]
    if not maintenance_pairs and versions[0].lance_version == old_entry.lance_version:
        return None
    step_ends = [first for first, _ in maintenance_pairs] + [versions[-1]]
    step_starts = [versions[0]] + [second for _, second in maintenance_pairs]
    steps = zip(step_starts, step_ends, strict=True)
    return [(first, second) for first, second in steps if first.content_id != second.content_id]


def _versions_since_content(new_snapshot: Snapshot, table_key: TableKey, content_id: str) -> list[TableEntry] | None:
    """Return a table's versions since it last had a given content, oldest first, or None if there is no such version.

    The search follows first parents, so a merge counts as a single change.
    """
    versions = [new_snapshot.tables[table_key]]
    try:
        for commits_seen, commit in enumerate(new_snapshot.log.first_parents(new_snapshot.commit_id)):
            entry = commit.tables.get(table_key, versions[-1])
            if entry is None or commits_seen > _MAX_COMMITS:
                return None
            if entry != versions[-1]:
                versions.append(entry)
            if entry.content_id == content_id:
                return versions[::-1]
    except (CommitNotFound, HistoryReclaimed):
        return None
    return None
