"""Graph: the handle that users hold.

Each method is one call into a layer below. A handle is cheap, safe to use from several threads,
and never changes which branch or which past it shows.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from omnigraph import ids
from omnigraph.boundary import Guarded, guarded
from omnigraph.errors import (
    AlreadyExists,
    BranchNotFound,
    InputError,
    OmnigraphError,
    SchemaUnsupported,
)
from omnigraph.feeding import Feeding
from omnigraph.history import branches
from omnigraph.history.audit import Outcome, list_outcomes
from omnigraph.history.copy import Copied, Progress, copy_graph
from omnigraph.history.line import Line
from omnigraph.history.manifest import manifest_exists
from omnigraph.history.plan import Signature
from omnigraph.history.points import Named, check_point, find_point
from omnigraph.history.recover import recover_when_due
from omnigraph.history.refs import Ref, find_ref
from omnigraph.history.remains import absent_manifest
from omnigraph.history.rename import rename_branch
from omnigraph.history.schemas import Contract
from omnigraph.history.snapshot import Snapshot, of_state
from omnigraph.history.tags import line_with
from omnigraph.history.verification import FirstUseVerifier
from omnigraph.ingest.load import LoadMode
from omnigraph.inspecting import Inspecting
from omnigraph.keeping import Keeping
from omnigraph.naming import clean, require_text
from omnigraph.reading import Reading
from omnigraph.shaping import SchemaText, Shaping, schema_text
from omnigraph.storage.effects import Effects
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Durability, Store, open_store
from omnigraph.terms import actor_of
from omnigraph.travel import Travel

if TYPE_CHECKING:
    from omnigraph.pipeline.frames import SparkGraph

Location = str | PathLike[str]
Options = Mapping[str, object]
_SECRET = ("secret", "token", "password", "access_key", "credential")


class Graph(Reading, Feeding, Travel, Shaping, Keeping, Inspecting):
    """An open graph, bound to a branch, or to one moment of its past."""

    @property
    def branches(self) -> "Branches":
        """The branches of the graph."""
        return Branches(self)

    def checkout(self, branch: str) -> "Graph":
        """A handle on another branch."""
        self._open()
        return self._bound(branches.open_line(self._store, branch))

    def table(self, name: str, *, kind: str | None = None) -> Any:
        """The pinned Lance dataset of a node or edge type; the node wins when both exist."""
        self._open()
        require_text(name, "type")
        keys = [f"{kind}:{name}"] if kind else [f"node:{name}", f"edge:{name}"]
        key = next((one for one in keys if one in self._snapshot.tables), keys[0])
        return self._snapshot.table(key).dataset

    def spark(
        self, session: Any = None, *, master: str | None = None, remote: str | None = None
    ) -> "SparkGraph":
        """What there is now, for Spark: `graph.spark(spark).nodes("Paper")` is a DataFrame.

        Without a session the active one is taken, or a local one started.
        """
        from omnigraph.pipeline.frames import SparkGraph
        from omnigraph.pipeline.session import spark_session

        found = session if session is not None else spark_session(master=master, remote=remote)
        return SparkGraph(found, self._newest(), self._line)

    def stream_load(  # noqa: PLR0913 - all but two are named
        self,
        frame: Any,
        type_name: str,
        *,
        name: str,
        checkpoint: str | PathLike[str],
        mode: LoadMode = "append",
        branch: str | None = None,
        rejects: str | PathLike[str] | None = None,
        available_now: bool = False,
    ) -> Any:
        """Load a streaming DataFrame of Spark, batch by batch, each exactly once; gives its query.

        `name` is the stream, `checkpoint` the folder in which Spark remembers how far it is. With
        `available_now` the query ends when everything that is there was loaded.
        """
        from omnigraph.pipeline.stream import stream_load

        there = self._there(branch)
        there._writable("a stream")
        return stream_load(
            there._line,
            frame,
            type_name,
            mode=mode,
            name=name,
            checkpoint=checkpoint,
            signature=Signature(self.actor),
            rejects=rejects,
            available_now=available_now,
        )

    def recoveries(self) -> list[Outcome]:
        """What became of operations whose process was gone, oldest first."""
        self._open()
        return list_outcomes(self._store)

    def copy_to(
        self,
        uri: Location,
        *,
        progress: Progress | None = None,
        storage_options: Options | None = None,
        verify: bool = True,
    ) -> Copied:
        """Copy the whole graph, all branches and history, to an empty place.

        Every file that has a checksum is compared with it on the way; `verify=False` carries what
        is damaged along, to rescue the rest.
        """
        self._open()
        durability, options = self._store.durability, storage_options
        target = open_store(os.fspath(uri), durability=durability, options=options)
        return copy_graph(self._store, target, progress, actor=self.actor, verify=verify)

    def _bound(self, line: Line) -> "Graph":
        made = Graph(self._store, line, read_only=self.read_only, actor=self.actor)
        made.warnings = self.warnings  # told once, whichever of them writes
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        shown = self._snapshot.commit_id if self._fixed else None
        known = self._store.root.options.items()
        options = {n: v for n, v in known if not any(part in n.lower() for part in _SECRET)}
        facts = {
            "branch": self.branch_name,
            "actor": self.actor,
            "read_only": self._store.effects.read_only,
            "durability": self._store.durability,
            "verify": self._store.verifier is not None,
            "storage_options": None if self._store.root.local else options,
        }
        return type(self)._revived, (self.uri, facts, shown)

    @classmethod
    def _revived(cls, uri: str, facts: dict[str, Any], shown: str | None) -> "Graph":
        """A handle as it was pickled, opened again."""
        graph = open(uri, **facts)
        return graph if shown is None else graph.at(shown)


@dataclass(frozen=True, slots=True)
class Branches(Guarded):
    """The branches of a graph: iterate over the names, look one up, create, rename, delete."""

    graph: Graph

    def _guarded_store(self) -> Store:
        return self.graph._store

    def __repr__(self) -> str:
        return f"<Branches of {self.graph!r}>"

    def names(self) -> list[str]:
        """All names, sorted: one listing."""
        self.graph._open()
        return branches.list_branches(self.graph._store)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> Ref:
        """Where a branch came from: its ULID, parent and fork commit."""
        self.graph._open()
        return find_ref(self.graph._store, clean(name))

    def create(
        self, name: str, *, from_: Named | None = None, commit: Named | None = None
    ) -> Graph:
        """A new branch from the head of a branch, this one by default, or from any other state.

        `from_` is a branch, or whatever `graph.at` takes: a commit, a tag, a moment, `HEAD~1`;
        `commit` is the same as seen from that branch.
        """
        graph = self.graph
        graph._writable("creating a branch")
        store = graph._store
        source, found = self._origin(from_, commit)
        made = branches.create_branch(store, name, source, commit_id=found, actor=graph.actor)
        return graph._bound(made)

    def _origin(self, from_: Named | None, commit: Named | None) -> tuple[Line, str | None]:
        """The line that a new branch comes from, and the commit, unless that is its head."""
        graph, store = self.graph, self.graph._store
        source = graph._line
        if from_ is not None and str(from_).strip() != graph.branch_name:
            check_point(from_)
            try:
                source = branches.open_line(store, str(from_))
            except (BranchNotFound, InputError) as unknown:
                shown = _named(graph, from_, unknown)
                if commit is not None:
                    shown = find_point(store, source, shown, commit)
                return line_with(store, source, shown.commit_id), shown.commit_id
        if commit is None:
            return source, None
        near = of_state(store, source, source.refresh())
        shown = find_point(store, source, near, commit)
        return line_with(store, source, shown.commit_id), shown.commit_id

    def rename(self, name: str, new: str) -> Graph:
        """Give a branch another name, and get a handle on it; other handles on it go on."""
        graph = self.graph
        graph._writable("renaming a branch")
        return graph._bound(rename_branch(graph._store, name, new, actor=graph.actor))

    def delete(self, name: str) -> None:
        """Delete a branch; what other branches took from it stays."""
        self.graph._writable("deleting a branch")
        branches.delete_branch(self.graph._store, name, bound=self.graph.branch_name)


def _named(graph: Graph, point: Named, unknown: OmnigraphError) -> Snapshot:
    """The state of a word that names no branch; what names nothing at all is an unknown branch."""
    try:
        return find_point(graph._store, graph._line, graph._newest(), point)
    except InputError:
        raise unknown from None


@guarded
def init(  # noqa: PLR0913 - all but two are named, and seldom given
    uri: Location,
    schema: SchemaText,
    *,
    force: bool = False,
    exist_ok: bool = False,
    actor: str | None = None,
    durability: Durability = "fsync",
    storage_options: Options | None = None,
) -> Graph:
    """Make a new graph and open it.

    `schema` is `.pg` text, or a path to it. `exist_ok` opens a graph that is there, if its schema
    means the same. `force` takes over the claim of an init that was cut off, never a graph.
    `storage_options` are settings of an object store; they win over the `AWS_*` variables.
    """
    from omnigraph.history.init import init_graph
    from omnigraph.lang.schema import compile_schema
    from omnigraph.lang.schema.identity import new_identity

    text, name = schema_text(schema)
    catalog = compile_schema(text, name)
    actor = actor_of(actor)
    store = open_store(os.fspath(uri), durability=durability, options=storage_options)
    contract = Contract(text, new_identity(catalog, ids.new_ulid()))
    try:
        line = init_graph(store, contract, force=force, actor=actor)
    except AlreadyExists:
        if not exist_ok or not manifest_exists(store):
            raise
        there = open(uri, actor=actor, durability=durability, storage_options=storage_options)
        return _same_schema(there, catalog)
    return Graph(store, line, actor=actor)


@guarded
def open(  # noqa: PLR0913 - all but the first are named
    uri: Location,
    *,
    branch: str = MAIN,
    actor: str | None = None,
    read_only: bool = False,
    durability: Durability = "fsync",
    storage_options: Options | None = None,
    verify: bool | None = None,
) -> Graph:
    """Open a graph. Read-write settles what a cut-off operation left; read-only writes nothing.

    `storage_options` are settings of an object store; they win over the `AWS_*` variables. With
    `verify`, or `OMNIGRAPH_VERIFY=1`, each file is compared with its checksum on its first use.
    """
    actor = actor_of(actor)
    effects = Effects(read_only=read_only)
    place, options = os.fspath(uri), storage_options
    store = open_store(place, effects=effects, durability=durability, options=options)
    if verify if verify is not None else os.environ.get("OMNIGRAPH_VERIFY", "0") not in ("", "0"):
        store = replace(store, verifier=FirstUseVerifier())
    try:
        line = branches.open_line(store, branch)
    except BranchNotFound:
        if not manifest_exists(store):
            raise absent_manifest(store, MAIN) from None
        raise
    if not read_only:
        recover_when_due(store, interval=0)
    return Graph(store, line, read_only=read_only, actor=actor)


def _same_schema(graph: Graph, catalog: Any) -> Graph:
    """The graph, if its schema means the same; else the refusal with what would have to change."""
    from omnigraph.lang.schema.migrate import plan_migration

    plan = plan_migration(graph.schema.ir, catalog)
    if plan.steps:
        count = len(plan.steps)
        raise SchemaUnsupported(
            f"the graph at {graph.uri} has another schema: {count} change{'s'[: count > 1]}",
            steps=plan.steps,
            hint="open it and change its schema, or choose another place",
        )
    return graph
