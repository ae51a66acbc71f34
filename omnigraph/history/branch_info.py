"""Information about a branch: its head, its origin, and how far it has diverged from its parent.

This module also determines whether a branch has commits that no other branch or tag contains. It never writes:
`publish` creates and deletes branches.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from omnigraph.errors import BranchNotFound, NotFound
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.store import Store

from . import refs
from .branches import list_branches, open_branch, open_ref
from .commit import MAINTENANCE_OPERATIONS, Commit
from .merge_bases import find_merge_bases
from .refs import Ref
from .snapshot import Snapshot, manifest_snapshot
from .tags import tag_snapshot


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """A branch: its head, its origin, and how far it has diverged from its parent.

    `ahead` is the number of commits that only this branch contains, and `behind` is the number of commits that only its
    parent contains. Both numbers are None for `main`, or if the parent no longer exists. `created` and `created_by` are
    None for `main`.
    """

    name: str
    ulid: str
    head: Commit
    parent: str | None = None
    fork_commit: str | None = None
    created: datetime | None = None
    created_by: str | None = None
    ahead: int | None = None
    behind: int | None = None


def describe_branch(store: Store, ref: Ref) -> BranchInfo:
    """Describe one branch; raise `BranchNotFound` if it was deleted in the meantime."""
    branch_state = open_ref(store, ref)
    manifest = branch_state.last_known()
    head = manifest_snapshot(store, branch_state, manifest)
    origin = manifest.state.origin
    created = datetime.fromtimestamp(origin.created_at / 1_000_000, UTC) if origin else None
    parent_head = find_branch_head(store, ref.parent) if ref.parent else None
    ahead, behind = count_divergence(head, parent_head) if parent_head else (None, None)
    created_by = origin.actor if origin else None
    return BranchInfo(ref.name, ref.ulid, head.commit, ref.parent, ref.fork_commit, created, created_by, ahead, behind)


def count_divergence(head: Snapshot, other_head: Snapshot) -> tuple[int, int]:
    """Return the number of commits that only the first head reaches, and the number that only the second reaches."""
    if head.commit_id == other_head.commit_id:
        return 0, 0
    reached_ids = head.log.ancestors(head.commit_id).keys()
    other_ids = other_head.log.ancestors(other_head.commit_id).keys()
    return len(reached_ids - other_ids), len(other_ids - reached_ids)


def find_unmerged_commits(store: Store, head: Snapshot, preferred_targets: Iterable[str] = ()) -> list[Commit]:
    """Return the commits that become unreachable if the branch is deleted, or an empty list if there are none.

    Commits that only compact tables or build indexes are not included. `preferred_targets` are checked first, because a
    branch is usually merged into its parent or into the caller's branch.
    """
    unmerged_commits: list[Commit] | None = None
    for other_head in _other_heads(store, head.branch, preferred_targets):
        if contains_commits(other_head, head):
            return []
        commits = _commits_missing_from(other_head, head)
        if not commits:
            return []
        if unmerged_commits is None or len(commits) < len(unmerged_commits):
            unmerged_commits = commits
    return unmerged_commits or []


def contains_commits(head: Snapshot, branch_head: Snapshot) -> bool:
    """Return whether a branch with this head contains all commits of another branch."""
    return find_merge_bases(head, branch_head)[0] == (branch_head.commit_id,)


def _commits_missing_from(other_head: Snapshot, head: Snapshot) -> list[Commit]:
    """Return the commits that only `head` reaches and that change entities or the schema."""
    other_ids = other_head.log.ancestors(other_head.commit_id).keys()
    own_commits = head.log.ancestors(head.commit_id)
    return [
        commit
        for commit_id, commit in own_commits.items()
        if commit_id not in other_ids and commit.operation not in MAINTENANCE_OPERATIONS
    ]


def _other_heads(store: Store, branch_name: str, preferred_targets: Iterable[str]) -> Iterator[Snapshot]:
    """Yield the heads of all other branches, starting with `preferred_targets`, and then all tagged commits."""
    names = dict.fromkeys((*preferred_targets, layout.MAIN, *list_branches(store)))
    for name in names:
        branch_head = find_branch_head(store, name) if name != branch_name else None
        if branch_head is not None:
            yield branch_head
    tag_numbers = refs.list_highest_numbers(store, layout.TAGS)
    for tag_name in (name for name, number in tag_numbers.items() if number % 2):
        with suppress(NotFound, DamagedError):  # an unreadable tag does not keep any commit reachable
            yield tag_snapshot(store, refs.find_ref(store, tag_name, layout.TAGS))


def find_branch_head(store: Store, branch_name: str) -> Snapshot | None:
    """Return the head of a branch, or None if the branch does not exist or cannot be read."""
    try:
        branch_state = open_branch(store, branch_name)
    except (BranchNotFound, DamagedError):
        return None
    return manifest_snapshot(store, branch_state, branch_state.last_known())
