"""`graph.revisions`: commits, and the history of individual entities.

As in git, a revision is anything that identifies a commit, such as an id, a tag or `HEAD~1`. The most common methods
(`graph.log`, `graph.at` and `graph.diff`) are on the graph itself. This facet contains the less common ones.
"""

from typing import TYPE_CHECKING, Any

from omnigraph.api.facet import Facet
from omnigraph.api.handle import Handle
from omnigraph.history.commit import Commit
from omnigraph.history.revisions import Revision, resolve_commit
from omnigraph.values.table_key import TableKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph.api.graph import Graph
    from omnigraph.api.merge_sessions import MergeResult
    from omnigraph.history.entity_history import Blamed, EntityHistory, EntityTracer
    from omnigraph.merging.merge import MergeRequest
    from omnigraph.merging.strategy import Strategy
    from omnigraph.merging.table_merge import Granularity


class Revisions(Facet):
    """A graph's commits. Look up, revert or cherry-pick a commit, or trace an entity's history.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key  age: I32? }") as graph:
    ...     _ = graph.insert("Person", {"name": "ada", "age": 36}, actor="bob")
    ...     _ = graph.revisions.revert("HEAD")
    ...     [version.op for version in graph.revisions.history("Person", "ada")]
    ['delete', 'insert']
    """

    __slots__ = ("_make_graph",)

    def __init__(self, handle: Handle, make_graph: "Callable[[Handle], Graph]") -> None:
        super().__init__(handle)
        self._make_graph = make_graph

    def commit(self, commit_id: str) -> Commit:
        """Return a commit by its id, or by a tag, a branch or another revision, such as `HEAD~3`.

        This graph's branch is searched first.
        """
        handle = self._handle
        handle.require_open()
        return resolve_commit(handle.store, handle.branch_state, handle.snapshot, commit_id)

    def pin(self) -> "Graph":
        """Return a read-only graph pinned to the newest commit, so that several reads use the same snapshot."""
        return self._make_graph(self._handle.pin(self._handle.latest_snapshot()))

    def history(
        self, type_name: str, key: Any, /, *, kind: str | None = None, limit: int | None = None
    ) -> "EntityHistory":
        """Return every version of an entity, newest first, each with its commit and values.

        An entity is identified by its key, or by its id if its type has no key. A version from a merged branch is
        listed with the commit that wrote it, not with the merge commit. Values are converted to the current schema.
        `.gap` is None if the history is complete. Otherwise, it is the commit before which no versions are listed,
        because a cleanup removed them or their values cannot be converted to the current schema.
        """
        return _trace_entity(self._handle, type_name, key, kind).versions(limit)

    def blame(self, type_name: str, key: Any, /, *, kind: str | None = None) -> "dict[str, Blamed]":
        """Return the commit and actor that last set each of an entity's properties."""
        return _trace_entity(self._handle, type_name, key, kind).blame()

    def revert(  # noqa: PLR0913 - all but the first are keywords
        self,
        commit: Revision,
        *,
        mainline: int | None = None,
        branch: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        strategy: "Strategy" = None,
        granularity: "Granularity" = "property",
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> "MergeResult":
        """Undo the changes made by a commit or a range of commits, in a new commit. Later changes are kept.

        For a range `A..B`, this undoes the net effect of the commits after A, up to and including B. B defaults to the
        head. A must be an ancestor of B.

        Properties that have changed again since the reverted commits are treated as conflicts, as in a merge: `ours`
        keeps the current values, and `theirs` restores the values from before these commits. Other properties of the
        same entities are kept unless `granularity` is "entity". A merge commit is reverted relative to its first
        parent, or to parent number `mainline`. Values from before a schema change are converted to the current schema;
        schema changes are not reverted. Repeating an `idempotency_key` returns the first result again, even if `HEAD`
        now refers to a different commit.

        >>> from omnigraph import testing
        >>> with testing.graph("node Person { name: String @key }") as graph:
        ...     _ = graph.insert("Person", {"name": "ada"}), graph.insert("Person", {"name": "bob"})
        ...     graph.revisions.revert("HEAD~2..HEAD").stats["deletes"]
        2

        Raises `MergeConflict`, `SchemaMismatch`, `HistoryReclaimed`, `ReadOnlyError`, and `ReadSetConflict` if the
        branch has moved in the meantime.
        """
        from omnigraph.api.merges import Replay, replay_commit
        from omnigraph.api.write_options import WriteOptions

        request = _make_request(granularity, strategy, if_commit, dry_run=dry_run)
        replay = Replay("revert", commit, branch, mainline)
        return replay_commit(self._handle, replay, request, WriteOptions(if_commit, message, actor, idempotency_key))

    def cherry_pick(  # noqa: PLR0913 - all but the first are keywords
        self,
        commit: Revision,
        into: str | None = None,
        *,
        mainline: int | None = None,
        message: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        strategy: "Strategy" = None,
        granularity: "Granularity" = "property",
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> "MergeResult":
        """Apply the changes made by one commit to a branch, by default this graph's branch.

        Conflicts are handled as in a merge, where `ours` is the branch and `theirs` is the commit. Repeating an
        `idempotency_key` returns the first result again.

        Raises `MergeConflict`, `ReadOnlyError`, and `ReadSetConflict` if the branch has moved in the meantime.
        """
        from omnigraph.api.merges import Replay, replay_commit
        from omnigraph.api.write_options import WriteOptions

        request = _make_request(granularity, strategy, if_commit, dry_run=dry_run)
        replay = Replay("cherry_pick", commit, into, mainline)
        return replay_commit(self._handle, replay, request, WriteOptions(if_commit, message, actor, idempotency_key))


def _make_request(
    granularity: "Granularity", strategy: "Strategy", if_commit: str | None, *, dry_run: bool
) -> "MergeRequest":
    from omnigraph.api.merges import check_granularity
    from omnigraph.merging.merge import MergeRequest
    from omnigraph.merging.planner import MergeOptions

    return MergeRequest(MergeOptions(check_granularity(granularity)), strategy, if_commit, dry_run)


def _trace_entity(handle: Handle, type_name: str, key: Any, kind: str | None) -> "EntityTracer":
    from omnigraph.api.builders.mutation_text import resolve_edge_id, resolve_node_id
    from omnigraph.history.entity_history import EntityTracer
    from omnigraph.lang.schema.catalog import EdgeType
    from omnigraph.lang.schema.type_names import resolve_type

    snapshot = handle.latest_snapshot()
    entity_type = resolve_type(snapshot.schema.ir.catalog, type_name, kind)
    if isinstance(entity_type, EdgeType):
        entity_id = resolve_edge_id(snapshot.schema.ir, entity_type, key)
    else:
        entity_id = resolve_node_id(snapshot.schema.ir, type_name, key)
    return EntityTracer(snapshot, TableKey.of(entity_type.kind, type_name), entity_id)
