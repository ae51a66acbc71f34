"""`RemoteGraph`: a graph on a server, with the public interface of an embedded graph.

Each method sends one request, or a few if one response does not contain everything. Members that a server cannot offer
raise `NotSupportedRemotely`; `unsupported` lists them. A `RemoteGraph` never changes its branch or commit.
"""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from omnigraph.api.branch_exits import BranchExit
from omnigraph.api.builders.entity_sets import EdgeSet, NodeSet
from omnigraph.api.builders.prepared_queries import Prepared, QuerySource
from omnigraph.api.conflict_retries import retry_call
from omnigraph.api.queries import Params, QueryCall, combine_arguments
from omnigraph.api.results.commit_log import CommitLog
from omnigraph.api.results.diff import Diff
from omnigraph.api.results.node import Node
from omnigraph.api.results.result import Result, ResultStream
from omnigraph.api.results.subgraph import Subgraph
from omnigraph.api.stored_queries import StoredQueries
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import EntityNotFound
from omnigraph.history.commit import Commit
from omnigraph.history.revisions import Revision
from omnigraph.history.tags import Tag
from omnigraph.maintenance.health_thresholds import LimitWarning

from . import blobs, branches, changes, diffs, graph_card, maintenance, merges, queries, revisions, schema, tags
from .graph_reads import RemoteReads
from .graph_writes import RemoteWrites
from .handle import RemoteHandle
from .stored_queries import stored_queries
from .unsupported import reject

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from omnigraph.api.surface import GraphSurface

Answer = TypeVar("Answer")
Path = str | PathLike[str]


class RemoteGraph(RemoteReads, RemoteWrites):
    """A graph on a server, bound to a branch or pinned to one commit. `omnigraph.open` returns one for a URL."""

    def __init__(self, handle: RemoteHandle) -> None:
        self._handle = handle
        self._queries = stored_queries(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return self._handle.describe()

    def _repr_html_(self) -> str:
        return graph_card.graph_card(self._handle)

    # State --------------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """The URL of the graph."""
        return self._handle.uri

    @property
    def branch_name(self) -> str:
        """The branch that this graph is bound to."""
        return self._handle.branch_name

    @property
    def head(self) -> Commit:
        """The commit that this graph reads from: the pinned commit, or the newest commit on the branch."""
        return self._handle.head()

    @property
    def read_only(self) -> bool:
        """Whether writes are rejected."""
        return self._handle.read_only

    @property
    def actor(self) -> str | None:
        """The author of writes, which the server derives from the token."""
        self._handle.require_open()
        actor: str | None = self._handle.exchange.get_from_server("whoami")["actor_id"]
        return actor

    @property
    def warnings(self) -> list[LimitWarning]:
        """The limits that writes have exceeded, each with a recommended command."""
        return self._handle.exchange.limit_warnings

    @property
    def is_remote(self) -> bool:
        """Whether calls are sent to a server. Always true."""
        return True

    @property
    def snapshot(self) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("snapshot")

    def refresh(self) -> Self:
        """Forget the list of stored queries and return this graph. Every read already uses the newest commit."""
        self._handle.require_open()
        self._queries = stored_queries(self._handle)
        return self

    def close(self) -> None:
        """Close the graph and its connections. Later calls raise `GraphClosed`."""
        self._handle.closed = True
        self._handle.exchange.close()

    # Facets -------------------------------------------------------------------------------------

    @property
    def branches(self) -> branches.RemoteBranches:
        """Facet for listing, creating, renaming and deleting branches."""
        return branches.RemoteBranches(self._handle)

    @property
    def tags(self) -> tags.RemoteTags:
        """Facet for listing, creating and deleting tags."""
        return tags.RemoteTags(self._handle)

    @property
    def revisions(self) -> revisions.RemoteRevisions:
        """Facet for commits and entity history, including revert and cherry-pick."""
        return revisions.RemoteRevisions(self._handle)

    @property
    def schema(self) -> schema.RemoteSchema:
        """The schema. `.source` is its text, and `.apply` changes it."""
        return schema.RemoteSchema(self._handle)

    @property
    def queries(self) -> StoredQueries:
        """The queries that are stored on the server, by name. Call them like functions."""
        self._handle.require_open()
        return self._queries

    @property
    def maintenance(self) -> maintenance.RemoteMaintenance:
        """Facet for compaction, cleanup and checks, which run as jobs on the server."""
        return maintenance.RemoteMaintenance(self._handle)

    @property
    def changes(self) -> changes.RemoteChanges:
        """The change feed."""
        return changes.RemoteChanges(self._handle)

    @property
    def spark(self) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("spark")

    # Reads --------------------------------------------------------------------------------------

    def query(  # noqa: PLR0913 - all but the first are keywords
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        lazy: bool = False,
        **values: Any,
    ) -> Any:
        """Run a query on the newest commit, or on another branch or revision; see `Graph.query`."""
        call = QueryCall(source, name, combine_arguments(params, values), timeout, assume_utc)
        run = queries.stream_query if lazy else queries.run_query
        return run(self._handle.for_read(branch, at), call)

    def stream(  # noqa: PLR0913 - all but the first are keywords
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        assume_utc: bool = False,
        **values: Any,
    ) -> ResultStream:
        """Run a query on one snapshot and read its rows one batch at a time, in bounded memory."""
        call = QueryCall(source, name, combine_arguments(params, values), timeout, assume_utc)
        return queries.stream_query(self._handle.for_read(branch, at), call)

    def explain(
        self,
        source: QuerySource,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        analyze: bool = False,
        **values: Any,
    ) -> Any:
        """Return a query's plan. If `analyze` is true, also run the query and measure it."""
        call = QueryCall(source, name, combine_arguments(params, values))
        return queries.explain_query(self._handle.for_read(branch, at), call, analyze=analyze)

    def subgraph(
        self,
        source: QuerySource | Result,
        /,
        *,
        name: str | None = None,
        params: Params = None,
        branch: str | None = None,
        at: Revision | None = None,
        timeout: float | None = None,
        **values: Any,
    ) -> Subgraph:
        """Return the nodes and edges in a query result; see `Graph.subgraph`."""
        from omnigraph.api.subgraphs import collect_subgraph

        target = self._handle.for_read(branch, at)
        if isinstance(source, Result):
            result = source
        else:
            result = queries.run_query(target, QueryCall(source, name, combine_arguments(params, values), timeout))
        return collect_subgraph(result, target.schema_ir().catalog)

    def prepare(self, source: QuerySource, /, *, name: str | None = None) -> Prepared:
        """Compile and check a query now, and return a function that runs it later."""
        return queries.prepare_query(self, self._handle, source, name)

    def nodes(self, type_name: str, /) -> NodeSet:
        """Return the nodes of a given type or interface, as a set that can be filtered, traversed and read."""
        return queries.nodes(self._handle, type_name)

    def edges(self, type_name: str, /) -> EdgeSet:
        """Return the edges of a given type, with their ids, endpoints and properties."""
        return queries.edges(self._handle, type_name)

    def node(self, type_name: str, key: Any, /) -> Node | None:
        """Return a node by key, or by id if the type has no key. Return None if there is no such node."""
        return queries.find_node(self._handle, type_name, key)

    def __getitem__(self, wanted: tuple[str, Any]) -> Node:
        """Return a node by its key, as in `graph["Person", "ada"]`. Raises `KeyError` if there is no such node."""
        type_name, key = wanted
        node = self.node(type_name, key)
        if node is None:
            raise EntityNotFound(f"no {type_name} '{key}' found")
        return node

    def blob(
        self,
        type_name: str,
        key: Any,
        property_name: str,
        /,
        *,
        kind: str | None = None,
        if_match: str | None = None,
    ) -> Any:
        """Open a blob; see `Graph.blob`."""
        return blobs.open_blob(self._handle, (type_name, key, property_name), kind, if_match)

    def table(self, name: str, *, kind: str | None = None) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("table")

    def scan(self, *_: Any, **__: Any) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("scan")

    def duckdb(self, *_: Any, **__: Any) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("duckdb")

    def pool(self, processes: int = 2) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("pool")

    # Searches and exports are inherited from `RemoteReads`, and writes from `RemoteWrites`.

    def retry(self, fn: Callable[[Self], Answer], *, attempts: int = 12) -> Answer:
        """Call `fn(graph)`, and call it again after a conflict if the call may succeed on the newest commit."""
        return retry_call(lambda: fn(self), self._handle.pause_before_retry, attempts)

    # Branches and revisions ---------------------------------------------------------------------

    def acting(self, actor: str | None) -> NoReturn:
        """Raise `NotSupportedRemotely`, because the token determines the actor."""
        reject("acting")

    def checkout(self, branch: str) -> "RemoteGraph":
        """Return a graph on the newest commit of a branch. Raises `BranchNotFound` if the branch does not exist."""
        return RemoteGraph(self._handle.checkout(branch))

    def branch(
        self,
        name: str,
        *,
        from_: Revision | None = None,
        exist_ok: bool = False,
        delete: bool = False,
        on_exit: BranchExit = "keep",
    ) -> "AbstractContextManager[RemoteGraph]":
        """Yield a graph on a new branch for the duration of a `with` block; see `Graph.branch`."""
        return branches.branch_block(self._handle, name, from_, exist_ok=exist_ok, delete=delete, on_exit=on_exit)

    def at(self, point: Revision) -> "RemoteGraph":
        """Return a read-only graph pinned to a revision; see `Graph.at`."""
        return RemoteGraph(self._handle.at(point))

    def tag(self, name: str, point: Revision | None = None, *, message: str | None = None) -> Tag:
        """Tag a revision, by default the commit that this graph reads from; see `Graph.tag`."""
        return tags.create_tag(self._handle, name, point, message)

    def log(
        self,
        branch: str | None = None,
        *,
        limit: int | None = None,
        since: datetime | None = None,
        actor: str | None = None,
        type: str | None = None,
        all: bool = False,
    ) -> CommitLog:
        """Return the commits in this graph's history, newest first; see `Graph.log`."""
        return revisions.read_log(
            self._handle, branch, limit=limit, since=since, actor=actor, type_name=type, all_branches=all
        )

    def diff(
        self,
        a: "Revision | RemoteGraph | None",
        b: "Revision | RemoteGraph | None" = None,
        *,
        types: Any = None,
        kinds: Any = None,
        ops: Any = None,
    ) -> Diff:
        """Return the changes from `a` to `b`, entity by entity; see `Graph.diff`."""
        self._handle.require_open()
        filters = {"types": types, "kinds": kinds, "ops": ops}
        if isinstance(a, str) and ".." in a and b is None:
            return diffs.compare_revisions(self._handle, a, None, filters)
        return diffs.compare_revisions(self._handle, self._find_state(a), self._find_state(b), filters)

    def _find_state(self, state: "Revision | RemoteGraph | None") -> str:
        if state is None:
            return self._handle.head().id
        return state.head.id if isinstance(state, RemoteGraph) else self._handle.resolve(state)

    def merge(  # noqa: PLR0913 - all but two are keywords
        self,
        source: str | None = None,
        into: str | None = None,
        *,
        message: str | None = None,
        actor: str | None = None,
        delete_branch: bool = False,
        if_commit: str | None = None,
        strategy: Any = None,
        granularity: Any = "property",
        collapse_edges: bool = False,
        dry_run: bool = False,
        limits: Any = None,
        engine: Any = "auto",
        spark: Any = None,
        idempotency_key: str | None = None,
    ) -> merges.RemoteMergeResult:
        """Merge a branch into another one, by default this graph's branch; see `Graph.merge`."""
        self._handle.require_open()
        self._handle.reject_actor(actor)
        merges.check_merge_options(strategy, engine, spark, idempotency_key)
        self._handle.require_writable("merging", dry_run=dry_run)
        body = {"strategy": strategy, "granularity": granularity, "collapse_edges": collapse_edges}
        body |= {"delete_branch": delete_branch, "limits": limits and asdict(limits)}
        options = WriteOptions(if_commit, message, actor, idempotency_key)
        return merges.merge_branches(self._handle, source, into, body, options, dry_run=dry_run)


if TYPE_CHECKING:

    def _check_surface(graph: RemoteGraph) -> GraphSurface:
        return graph  # mypy compares every signature with the protocol
