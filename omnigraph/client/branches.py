"""`graph.branches` on a server: list, create, rename, reset and delete branches, and run `with` blocks on a branch."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from omnigraph.api.block_guards import BlockGuard
from omnigraph.api.branch_exits import BranchExit, check_branch_exit
from omnigraph.errors import BranchNotFound, InputError, UsageError
from omnigraph.history.branch_info import BranchInfo
from omnigraph.history.revisions import Revision
from omnigraph.values.name_rules import strip_name

from .answers import read_branch
from .deletions import delete_ref
from .facet import RemoteFacet
from .handle import RemoteHandle, write_revision
from .merges import RemoteMergeResult, check_merge_options, run_merge

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .graph import RemoteGraph


class RemoteBranches(RemoteFacet):
    """The branches of a graph on a server."""

    __slots__ = ()

    def names(self) -> list[str]:
        """Return the names of all branches, sorted."""
        return list(self._handle.exchange.get("branches")["branches"])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.strip() in self.names()

    def __getitem__(self, name: str) -> BranchInfo:
        """Return a branch by name. Raises `BranchNotFound`, which is a `KeyError`, if there is no such branch."""
        return read_branch(self._handle.exchange.get("branches", strip_name(name)))

    def get(self, name: str) -> BranchInfo | None:
        """Return a branch by name, or None."""
        with suppress(BranchNotFound):
            return self[name]
        return None

    def create(
        self, name: str, *, from_: Revision | None = None, commit: Revision | None = None, exist_ok: bool = False
    ) -> "RemoteGraph":
        """Create a branch and return a graph on it; see `Branches.create`."""
        if from_ is not None and commit is not None and not isinstance(from_, str):
            raise UsageError(reason="pass a branch as `from_` if you also pass `commit`")
        return self._graph_on(create_branch(self._handle, name, from_, commit, exist_ok=exist_ok))

    def rename(self, name: str, new: str) -> "RemoteGraph":
        """Rename a branch and return a graph on it."""
        self._handle.require_writable("renaming a branch")
        body = {"name": new}
        document = self._handle.exchange.post("branches", strip_name(name), "rename", body=body)
        return self._graph_on(self._handle.on_branch(document["name"]))

    def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a branch. If it has unmerged commits, raise `BranchBusy` unless `force` is true."""
        self._handle.require_writable("deleting a branch")
        delete_ref(self._handle.exchange, ("branches", strip_name(name)), {"force": force})

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
    ) -> RemoteMergeResult:
        """Reset a branch to the state at a revision, in a new commit; see `Branches.reset`."""
        self._handle.require_writable("resetting a branch", dry_run=dry_run)
        self._handle.reject_actor(actor)
        branch = self._handle.on_branch(strip_name(name))
        # A reset with the caller's key is sent as it was written, so that a repeated request is equal.
        revision = branch.resolve(to) if idempotency_key is None else write_revision(to)
        body = {"to": revision, "message": message, "dry_run": dry_run}
        segments = ("branches", branch.branch_name, "reset")
        return run_merge(branch, segments, body, if_commit, is_read=dry_run, idempotency_key=idempotency_key)

    def merge_session(  # noqa: PLR0913 - all but two are keywords
        self,
        source: str | None = None,
        into: str | None = None,
        *,
        granularity: Any = "property",
        collapse_edges: bool = False,
        message: str | None = None,
        actor: str | None = None,
        engine: Any = "auto",
        spark: Any = None,
    ) -> Any:
        """Open a merge session, in which you can inspect and resolve conflicts before committing the merge."""
        from .merge_sessions import RemoteMergeSession

        self._handle.require_writable("merging")
        self._handle.reject_actor(actor)
        check_merge_options(None, engine, spark)
        own_name = self._handle.branch_name
        if strip_name(source or own_name) == strip_name(into or own_name):
            hint = "specify two different branches as source and target (`into`)"
            raise InputError(f"'{source or own_name}' cannot be merged into itself", reason="same branch", hint=hint)
        options = {"granularity": granularity, "collapse_edges": collapse_edges}
        return RemoteMergeSession(self._handle, source or own_name, into or own_name, message=message, options=options)


def create_branch(
    handle: RemoteHandle, name: str, from_: Revision | None, commit: Revision | None = None, *, exist_ok: bool = False
) -> RemoteHandle:
    """Create a branch, by default from the commit that the handle reads from, and return a handle on it."""
    handle.require_opened_writable("creating a branch")
    origin = handle.commit_id or handle.branch_name if from_ is None else _write_origin(handle, from_)
    body = {
        "name": name,
        "from": origin,
        "commit": None if commit is None else write_revision(commit),
        "exist_ok": exist_ok,
    }
    # With `exist_ok`, a repeated request opens the branch that the first one created.
    document = handle.exchange.post("branches", body=body, is_repeatable=exist_ok)
    return RemoteHandle(handle.exchange, handle.uri, document["name"])


def _write_origin(handle: RemoteHandle, from_: Revision) -> str:
    """Return a branch name unchanged, so that this branch becomes the parent; resolve other revisions to ids."""
    name = from_.strip() if isinstance(from_, str) else None
    if name is not None and name in handle.exchange.get("branches")["branches"]:
        return name
    try:
        return handle.resolve(from_)
    except InputError:
        if name is not None:
            handle.exchange.get("branches", name)  # raises the error for a missing branch
        raise


def branch_block(
    handle: RemoteHandle, name: str, from_: Revision | None, *, exist_ok: bool, delete: bool, on_exit: BranchExit
) -> "AbstractContextManager[RemoteGraph]":
    """Yield a graph on a branch, and merge, delete or keep the branch after the block; see `Graph.branch`."""
    check_branch_exit(on_exit)
    return BlockGuard(name, _run_block(handle, name, from_, exist_ok=exist_ok, delete=delete, on_exit=on_exit))


@contextmanager
def _run_block(
    handle: RemoteHandle, name: str, from_: Revision | None, *, exist_ok: bool, delete: bool, on_exit: BranchExit
) -> "Iterator[RemoteGraph]":
    from .graph import RemoteGraph

    branch = create_branch(handle, name, from_, exist_ok=exist_ok)
    yield RemoteGraph(branch)
    with suppress(BranchNotFound):  # a merge inside the block may have deleted it
        if on_exit == "merge":
            handle.exchange.get("branches", branch.branch_name)  # raises `BranchNotFound`
            RemoteGraph(handle).merge(branch.branch_name, delete_branch=True)
        elif on_exit == "drop":
            delete_ref(handle.exchange, ("branches", branch.branch_name), {"force": True})
        elif delete:
            _delete_if_merged(handle, branch)


def _delete_if_merged(handle: RemoteHandle, branch: RemoteHandle) -> None:
    """Delete a branch if its parent or the outer handle's branch contains its head."""
    info = read_branch(handle.exchange.get("branches", branch.branch_name))
    is_merged = info.ahead == 0
    if not is_merged:
        commits = handle.exchange.get("commits", branch=handle.branch_name)["commits"]
        is_merged = any(commit["graph_commit_id"] == info.head.id for commit in commits)
    if is_merged:
        delete_ref(handle.exchange, ("branches", branch.branch_name), {"force": True})
