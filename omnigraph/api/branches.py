"""`graph.branches`: a mapping of branch names to branches, with methods named after git commands.

Merge sessions are part of this facet, because they involve two branches. To merge in a single call, use `graph.merge`.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.api.facet import Facet
from omnigraph.api.handle import Handle
from omnigraph.errors import BranchBusy, BranchNotFound, InputError, OmnigraphError
from omnigraph.history import branches
from omnigraph.history.branch_state import BranchState
from omnigraph.history.refs import find_ref
from omnigraph.history.revisions import Revision, check_revision_type, resolve_revision
from omnigraph.history.snapshot import Snapshot, manifest_snapshot
from omnigraph.history.tags import find_branch_with_commit
from omnigraph.storage import layout
from omnigraph.values.name_rules import strip_name

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.api.merge_sessions import MergeResult, MergeSession
    from omnigraph.history.branch_info import BranchInfo
    from omnigraph.merging.table_merge import Granularity


class Branches(Facet):
    """A graph's branches. Iterate over the names of branches, or look up, create, rename, reset or delete a branch.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key }") as graph:
    ...     review = graph.branches.create("review")
    ...     list(graph.branches), "review" in graph.branches, graph.branches["review"].parent
    (['main', 'review'], True, 'main')
    """

    __slots__ = ("_make_graph",)

    def __init__(self, handle: Handle, make_graph: "Callable[[Handle], Graph]") -> None:
        super().__init__(handle)
        self._make_graph = make_graph

    def names(self) -> list[str]:
        """Return all branch names in sorted order, using a single list request."""
        self._handle.require_open()
        return branches.list_branches(self._handle.store)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> "BranchInfo":
        """Return information about a branch: its head, its origin, and how far it is ahead of or behind its parent."""
        from omnigraph.history.branch_info import describe_branch

        self._handle.require_open()
        return describe_branch(self._handle.store, find_ref(self._handle.store, strip_name(name)))

    def get(self, name: str) -> "BranchInfo | None":
        """Return information about a branch, or None if there is no branch with that name."""
        try:
            return self[name]
        except BranchNotFound:
            return None

    def create(
        self, name: str, *, from_: Revision | None = None, commit: Revision | None = None, exist_ok: bool = False
    ) -> "Graph":
        """Create a branch from the head of a branch (by default the current one) or from a revision.

        `from_` is a branch, or any revision that `graph.at` accepts, such as a commit, a tag, a point in time or
        `HEAD~1`. `commit` is a revision that is resolved relative to `from_`. If `exist_ok` is true, an existing branch
        with that name is opened as it is. Returns a graph on the branch.

        Raises `AlreadyExists` if the branch exists and `exist_ok` is not set.
        """
        if exist_ok:
            return self._make_graph(open_or_fork_branch(self._handle, name, from_, commit))
        return self._make_graph(fork_branch(self._handle, name, from_, commit))

    def rename(self, name: str, new: str) -> "Graph":
        """Rename a branch and return a graph on it. Other handles on the branch remain valid."""
        from omnigraph.publish.rename import rename_branch

        handle = self._handle
        handle.require_writable("renaming a branch")
        renamed = rename_branch(handle.store, name, new, actor=handle.actor)
        return self._make_graph(handle.on_branch(renamed))

    def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a branch, but only if every commit on it is also on another branch or tag.

        If `force` is true, the branch is deleted even if it has unmerged commits. These commits can then no longer be
        read, and a later cleanup removes their files.

        >>> from omnigraph import errors, testing
        >>> with testing.graph("node Person { name: String @key }") as graph:
        ...     draft = graph.branches.create("draft")
        ...     _ = draft.insert("Person", {"name": "ada"})
        ...     try:
        ...         graph.branches.delete("draft")
        ...     except errors.BranchBusy as error:
        ...         print(error.reason)
        ...     graph.branches.delete("draft", force=True)
        1 commit is not on any other branch or tag

        Raises `BranchBusy` if the branch has unmerged commits or is this handle's own branch.
        """
        from omnigraph.publish import branch_lifecycle

        handle = self._handle
        handle.require_writable("deleting a branch")
        expected_head = None if force else _require_merged(handle, strip_name(name))
        branch_lifecycle.delete_branch(
            handle.store, name, current_branch=handle.branch_name, expected_head=expected_head
        )

    def reset(  # noqa: PLR0913 - all but the first are keywords
        self,
        name: str,
        *,
        to: Revision,
        message: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> "MergeResult":
        """Reset a branch to the state at a revision, in a new commit. The old commits stay in the branch's log.

        `to` is a commit, a tag, a branch, a point in time or another revision, such as `HEAD~3`, where `HEAD` is the
        head of the branch being reset. The new commit refers to the table versions at that revision, so no data is
        copied. Merges and the change feed treat a reset like any other change, and a second reset can undo it. A dry
        run returns the changes in `delta` and their counts in `stats`. Repeating an `idempotency_key` returns the first
        result again, even if `HEAD~1` now refers to a different commit.

        >>> from omnigraph import testing
        >>> with testing.graph("node Person { name: String @key }") as graph:
        ...     _ = graph.tag("v1"), graph.insert("Person", {"name": "ada"})
        ...     reset = graph.branches.reset("main", to="v1")
        ...     reset.stats["deletes"], graph.nodes("Person").ids(), graph.at("HEAD~1").nodes("Person").ids()
        (1, [], ['ada'])

        Raises `SchemaMismatch` if the schema has changed since that revision, `HistoryReclaimed` if a cleanup has
        removed the revision's data, and `ReadSetConflict` if the branch has moved in the meantime. Also raises
        `PreconditionFailed` and `ReadOnlyError`.
        """
        from omnigraph.api.merges import reset_branch
        from omnigraph.api.write_options import WriteOptions
        from omnigraph.merging.merge import MergeRequest

        request = MergeRequest(if_commit=if_commit, dry_run=dry_run)
        options = WriteOptions(if_commit, message, actor, idempotency_key)
        return reset_branch(self._handle, name, to, request, options)

    def merge_session(  # noqa: PLR0913 - all but two are keywords
        self,
        source: str | None = None,
        into: str | None = None,
        *,
        granularity: "Granularity" = "property",
        collapse_edges: bool = False,
        message: str | None = None,
        actor: str | None = None,
        engine: Literal["auto", "spark", "local"] = "auto",
        spark: Any = None,
    ) -> "MergeSession":
        """Open a merge session, in which you can inspect and resolve conflicts before committing the merge.

        The source and the target are chosen as in `graph.merge`.
        """
        from omnigraph.api.merges import open_session
        from omnigraph.api.write_options import WriteOptions

        return open_session(
            self._handle,
            (source, into),
            granularity=granularity,
            collapse_edges=collapse_edges,
            write_options=WriteOptions(message=message, actor=actor),
            engine=(engine, spark),
        )


def _require_merged(handle: Handle, name: str) -> str | None:
    """Return the id of a branch's head.

    Raise `BranchBusy` if the branch has commits that no other branch or tag contains.
    """
    from omnigraph.history.branch_info import find_unmerged_commits

    if name in (layout.MAIN, handle.branch_name):
        return None  # `delete` rejects these branches
    branch_state = branches.open_branch(handle.store, name)
    head = manifest_snapshot(handle.store, branch_state, branch_state.last_known())
    parent = find_ref(handle.store, name).parent
    unmerged_commits = find_unmerged_commits(handle.store, head, filter(None, (handle.branch_name, parent)))
    if unmerged_commits:
        count = len(unmerged_commits)
        reason = (
            f"{count} commits are not on any other branch or tag"
            if count > 1
            else "1 commit is not on any other branch or tag"
        )
        hint = "merge the branch first, or delete it with force=True (--force) to discard its commits"
        raise BranchBusy(branch=name, reason=reason, hint=hint)
    return head.commit_id


def open_or_fork_branch(
    handle: Handle, name: str, from_: Revision | None = None, commit: Revision | None = None
) -> Handle:
    """Return a handle on a branch. If the branch does not exist, create it first."""
    if strip_name(name) in branches.list_branches(handle.store):
        handle.require_writable("opening a branch for writing")
        return handle.checkout(name)
    return fork_branch(handle, name, from_, commit)


def fork_branch(handle: Handle, name: str, from_: Revision | None = None, commit: Revision | None = None) -> Handle:
    """Create a branch and return a handle on it."""
    from omnigraph.publish import branch_lifecycle

    handle.require_writable("creating a branch")
    source, commit_id = _find_fork_point(handle, from_, commit)
    created = branch_lifecycle.create_branch(handle.store, name, source, commit_id=commit_id, actor=handle.actor)
    return handle.on_branch(created)


def _find_fork_point(handle: Handle, from_: Revision | None, commit: Revision | None) -> tuple[BranchState, str | None]:
    """Return the branch and commit to fork from. The commit is None for the branch's head."""
    store, source = handle.store, handle.branch_state
    if from_ is not None and str(from_).strip() != handle.branch_name:
        check_revision_type(from_)
        try:
            source = branches.open_branch(store, str(from_))
        except (BranchNotFound, InputError) as unknown:
            snapshot = _find_revision(handle, from_, unknown)
            if commit is not None:
                snapshot = resolve_revision(store, source, snapshot, commit)
            return find_branch_with_commit(store, source, snapshot.commit_id), snapshot.commit_id
    if commit is None:
        return source, None
    head = manifest_snapshot(store, source, source.refresh())
    snapshot = resolve_revision(store, source, head, commit)
    return find_branch_with_commit(store, source, snapshot.commit_id), snapshot.commit_id


def _find_revision(handle: Handle, revision: Revision, unknown: OmnigraphError) -> Snapshot:
    """Resolve a revision that is not a branch name. Raise the error `unknown` if it cannot be resolved."""
    try:
        return resolve_revision(handle.store, handle.branch_state, handle.latest_snapshot(), revision)
    except InputError:
        raise unknown from None
