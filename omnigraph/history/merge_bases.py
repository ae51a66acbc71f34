"""Merge bases: the newest common ancestors of two commits."""

from collections import deque
from collections.abc import Iterable, Mapping

from omnigraph.errors import InputError
from omnigraph.history.commit import Commit
from omnigraph.history.diff import snapshot_at
from omnigraph.history.snapshot import Snapshot

_FROM_TARGET, _FROM_SOURCE, _BELOW_COMMON = 1, 2, 4
_FROM_BOTH = _FROM_TARGET | _FROM_SOURCE


def find_common_base(first_snapshot: Snapshot, second_snapshot: Snapshot) -> Snapshot:
    """Return the best common ancestor of two snapshots, or the first of them if there are several."""
    base_ids, _ = find_merge_bases(first_snapshot, second_snapshot)
    if not base_ids:
        raise InputError("the two snapshots have no common history", reason="no common ancestor")
    return snapshot_at(first_snapshot, first_snapshot.log, base_ids[0])


def find_merge_bases(target_snapshot: Snapshot, source_snapshot: Snapshot) -> tuple[tuple[str, ...], list[Commit]]:
    """Return the ids of the best common ancestors, and the commits that only the source reaches.

    Both histories are walked in parallel until they meet. The walk does not continue past a common commit, so the cost
    depends only on the number of new commits on the two sides. The returned commits may therefore include a few that
    the target also reaches.
    """
    marks = _mark_reachable(target_snapshot, source_snapshot)
    base_ids = sorted(commit_id for commit_id, mark in marks.items() if mark == _FROM_BOTH)
    if len(base_ids) > 1:  # a base may be an ancestor of another base along a path that was not walked
        target_ancestors, source_ancestors = (
            snapshot.log.ancestors(snapshot.commit_id) for snapshot in (target_snapshot, source_snapshot)
        )
        base_ids = list(merge_bases(target_ancestors, source_ancestors))
    source_only_commits = [
        source_snapshot.log.get(commit_id) for commit_id, mark in marks.items() if mark == _FROM_SOURCE
    ]
    return tuple(base_ids), source_only_commits


def _mark_reachable(target_snapshot: Snapshot, source_snapshot: Snapshot) -> dict[str, int]:
    """Return which sides reach each commit, and whether the commit is an ancestor of a commit that both sides reach."""
    marks = {target_snapshot.commit_id: _FROM_TARGET}
    marks[source_snapshot.commit_id] = marks.get(source_snapshot.commit_id, 0) | _FROM_SOURCE
    queue, queued = deque(marks), set(marks)
    uncommon_count = len(queued)  # number of queued commits that are not ancestors of a common commit
    while uncommon_count:
        commit_id = queue.popleft()
        queued.discard(commit_id)
        mark = marks[commit_id]
        uncommon_count -= not mark & _BELOW_COMMON
        log = target_snapshot.log if mark & _FROM_TARGET else source_snapshot.log
        inherited_mark = mark | _BELOW_COMMON if mark & _FROM_BOTH == _FROM_BOTH else mark
        for parent in log.get(commit_id).parents:
            previous_mark = marks.get(parent, 0)
            if previous_mark | inherited_mark == previous_mark:
                continue
            marks[parent] = previous_mark | inherited_mark
            if parent in queued:
                uncommon_count -= not previous_mark & _BELOW_COMMON
            else:
                queue.append(parent)
                queued.add(parent)
            uncommon_count += not marks[parent] & _BELOW_COMMON
    return marks


def merge_bases(target_ancestors: Mapping[str, Commit], source_ancestors: Mapping[str, Commit]) -> tuple[str, ...]:
    """Return the best common ancestors: those that are not ancestors of another common ancestor."""
    common_ids = target_ancestors.keys() & source_ancestors.keys()
    parent_ids = {parent for commit_id in common_ids for parent in target_ancestors[commit_id].parents}
    return tuple(sorted(common_ids - _reachable_from(target_ancestors, parent_ids)))


def _reachable_from(commits_by_id: Mapping[str, Commit], start_ids: Iterable[str]) -> set[str]:
    reached_ids: set[str] = set()
    pending_ids = list(start_ids)
    while pending_ids:
        commit_id = pending_ids.pop()
        if commit_id not in reached_ids and commit_id in commits_by_id:
            reached_ids.add(commit_id)
            pending_ids += commits_by_id[commit_id].parents
    return reached_ids
