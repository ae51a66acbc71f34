"""`graph.revisions` on a server, and commit logs."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from omnigraph.api.comparisons import check_log_options
from omnigraph.api.results.commit_log import CommitLog
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import EntityNotFound
from omnigraph.history.commit import Commit
from omnigraph.history.entity_history import Blamed, EntityHistory, EntityVersion
from omnigraph.history.revisions import Revision
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.values.clock_and_ids import is_ulid
from omnigraph.values.name_rules import strip_name

from .answers import Document, read_commit
from .conflict_functions import DecidedMerge
from .entity_keys import write_key
from .facet import RemoteFacet
from .handle import RemoteHandle, write_revision
from .merges import RemoteMergeResult, check_merge_options, run_merge
from .wire_values import decode_properties

if TYPE_CHECKING:
    from .graph import RemoteGraph


class RemoteHistory(EntityHistory):
    """The versions of an entity, newest first."""

    gap_reason: str = ""

    def describe_gap(self) -> str:
        """Return why earlier versions are not listed, or an empty string if all versions are listed."""
        return self.gap_reason


class RemoteRevisions(RemoteFacet):
    """The commits of a graph on a server, and the history of individual entities."""

    __slots__ = ()

    def commit(self, commit_id: str) -> Commit:
        """Return a commit by id, tag, branch or revision such as `HEAD~3`. This graph's branch is searched first."""
        resolved_id = commit_id if is_ulid(commit_id) else self._handle.resolve(commit_id)
        return read_commit(self._handle.exchange.get("commits", resolved_id))

    def pin(self) -> "RemoteGraph":
        """Return a read-only graph pinned to the commit that this graph currently reads from."""
        return self._graph_on(self._handle.pin(self._handle.head().id))

    def history(
        self, type_name: str, key: Any, /, *, kind: str | None = None, limit: int | None = None
    ) -> EntityHistory:
        """Return every version of an entity, newest first; see `Revisions.history`."""
        try:
            kind, document = self._read_entity(type_name, key, kind, "history", limit=limit)
        except EntityNotFound:
            return RemoteHistory()
        entity_type = self._find_type(type_name, kind)
        history = RemoteHistory(_read_version(entity_type, version) for version in document["versions"])
        if "gap_commit_id" in document:
            history.gap, history.gap_reason = self.commit(document["gap_commit_id"]), document["gap_reason"]
        return history

    def blame(self, type_name: str, key: Any, /, *, kind: str | None = None) -> dict[str, Blamed]:
        """Return the commit and actor that last set each of an entity's properties."""
        kind, document = self._read_entity(type_name, key, kind, "blame")
        values = {entry["name"]: entry["value"] for entry in document["properties"]}
        decoded = decode_properties(self._find_type(type_name, kind), values) or {}
        return {
            entry["name"]: Blamed(
                entry["name"],
                decoded[entry["name"]],
                None if entry["commit"] is None else read_commit(entry["commit"]),
            )
            for entry in document["properties"]
        }

    def _find_type(self, type_name: str, kind: str) -> NodeType | EdgeType | None:
        catalog = self._handle.schema_ir().catalog
        return catalog.edge(type_name) if kind == "edge" else catalog.node(type_name)

    def _read_entity(
        self, type_name: str, key: Any, kind: str | None, view: str, **parameters: Any
    ) -> tuple[str, Document]:
        """Request an entity's history or blame. If no kind is given, the schema determines the kind."""
        ir = self._handle.schema_ir()
        entity_type = resolve_type(ir.catalog, type_name, kind)
        parameters |= self._handle.position
        segments = ("entities", entity_type.kind, type_name, write_key(ir, entity_type, key), view)
        return entity_type.kind, self._handle.exchange.get(*segments, **parameters)

    def revert(  # noqa: PLR0913 - all but the first are keywords
        self,
        commit: Revision,
        *,
        mainline: int | None = None,
        branch: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        strategy: Any = None,
        granularity: Any = "property",
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> RemoteMergeResult:
        """Undo a commit or a range of commits in a new commit; see `Revisions.revert`."""
        options = {"mainline": mainline, "message": message, "strategy": strategy}
        options |= {"granularity": granularity, "dry_run": dry_run}
        write_options = WriteOptions(if_commit, message, actor, idempotency_key)
        return self._replay("revert", commit, branch, write_options, options)

    def cherry_pick(  # noqa: PLR0913 - all but the first are keywords
        self,
        commit: Revision,
        into: str | None = None,
        *,
        mainline: int | None = None,
        message: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        strategy: Any = None,
        granularity: Any = "property",
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> RemoteMergeResult:
        """Apply the changes made by one commit to a branch; see `Revisions.cherry_pick`."""
        options = {"mainline": mainline, "message": message, "strategy": strategy}
        options |= {"granularity": granularity, "dry_run": dry_run}
        write_options = WriteOptions(if_commit, message, actor, idempotency_key)
        return self._replay("cherry-pick", commit, into, write_options, options)

    def _replay(
        self,
        route: str,
        commit: Revision,
        branch: str | None,
        write_options: WriteOptions,
        options: dict[str, Any],
    ) -> RemoteMergeResult:
        self._handle.require_writable("applying the changes from a commit", dry_run=options["dry_run"])
        handle = self._handle if branch is None else self._handle.on_branch(strip_name(branch))
        handle.reject_actor(write_options.actor)
        if_commit, key = write_options.if_commit, write_options.idempotency_key
        check_merge_options(options["strategy"], "auto", None, key)
        text = write_revision(commit)
        # `HEAD` is the target's head in a revert, and this branch's head in a cherry-pick. With the caller's key, the
        # text is sent as it was written if the server reads it in the same way, because a repeated request must be
        # equal even if the head has moved.
        reads_alike = route == "revert" or handle.branch_name == self._handle.branch_name
        if ".." not in text and not (reads_alike and key is not None):
            text = (handle if route == "revert" else self._handle).resolve(text)
        body = {"commit": text, "branch": handle.branch_name, **options}
        if callable(options["strategy"]):
            merge = DecidedMerge(handle, (route,), (route,), body, options["strategy"])
            return merge.run(if_commit, dry_run=options["dry_run"])
        is_read = bool(options["dry_run"])
        return run_merge(handle, (route,), body, if_commit, is_read=is_read, idempotency_key=key)


def _read_version(entity_type: NodeType | EdgeType | None, document: Document) -> EntityVersion:
    endpoints = document.get("endpoints")
    return EntityVersion(
        read_commit(document["commit"]),
        document["op"],
        decode_properties(entity_type, document["properties"]),
        decode_properties(entity_type, document["before"]),
        tuple(document["changed"]),
        None if endpoints is None else {"src": endpoints["from"], "dst": endpoints["to"]},
    )


def read_log(  # noqa: PLR0913 - all but two are keywords
    handle: RemoteHandle,
    branch: str | None,
    *,
    limit: int | None,
    since: datetime | None,
    actor: str | None,
    type_name: str | None,
    all_branches: bool,
) -> CommitLog:
    """Return the commits on one branch or on all branches, newest first."""
    handle.require_open()
    check_log_options(since, actor, limit)
    is_pinned = handle.pinned and branch is None and not all_branches
    requested = None if is_pinned or since is not None or limit == 0 else limit
    name = handle.branch_name if branch is None else strip_name(branch)
    document = handle.exchange.get(
        "commits",
        branch=None if is_pinned or all_branches else name,
        all=is_pinned or all_branches,
        limit=requested,
        actor=None if is_pinned else actor,
        type=None if is_pinned else type_name,
        types=True,
    )
    commits = [read_commit(commit) for commit in document["commits"]]
    if is_pinned:
        commits = _keep_ancestors(commits, str(handle.commit_id))
    selected = [commit for commit in commits if _is_selected(commit, since, actor, type_name)]
    return CommitLog(selected[:limit], lambda: _read_ref_names(handle))


def _is_selected(commit: Commit, since: datetime | None, actor: str | None, type_name: str | None) -> bool:
    if (actor is not None and commit.actor != actor) or (since is not None and commit.published < since):
        return False
    return type_name is None or type_name in {key.type_name for key in commit.tables}


def _keep_ancestors(commits: list[Commit], commit_id: str) -> list[Commit]:
    wanted = {commit_id}
    kept = []
    for commit in commits:  # newest first, so every commit comes before its parents
        if commit.id in wanted:
            kept.append(commit)
            wanted.update(commit.parents)
    return kept


def _read_ref_names(handle: RemoteHandle) -> dict[str, tuple[str, ...]]:
    document = handle.exchange.get("commits", limit=1, refs=True)
    return {commit_id: tuple(names) for commit_id, names in document.get("refs", {}).items()}
