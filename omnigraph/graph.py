"""Graph: the handle that users hold.

Each method is one call into a layer below. A handle is cheap, safe to use from several threads,
and never changes which branch or which past it shows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from omnigraph.errors import ReadOnlyError
from omnigraph.history import branches
from omnigraph.history.commit import Commit
from omnigraph.history.line import Line
from omnigraph.history.log import Log, in_order
from omnigraph.history.recover import recover
from omnigraph.history.snapshot import Point, Snapshot, find_commit, snapshot
from omnigraph.ids import new_ulid
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Durability, Store, open_store

Location = str | PathLike[str]


class Graph:
    """An open graph, bound to a branch, or to one moment of its past."""

    def __init__(
        self,
        store: Store,
        line: Line,
        *,
        read_only: bool = False,
        actor: str | None = None,
        at: Point = None,
    ) -> None:
        self._store = store
        self._line = line
        self._at = at
        self.read_only = read_only or at is not None
        self.actor = actor
        self._snapshot = snapshot(store, line, at)

    def __enter__(self) -> "Graph":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Graph({self.uri!r}, branch={self.branch_name!r}, head={self.head.id!r})"

    def close(self) -> None:
        """Let go of the handle. Nothing is lost when it is forgotten."""

    @property
    def uri(self) -> str:
        """Where the graph lives."""
        return self._store.root.uri

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self._line.name

    @property
    def head(self) -> Commit:
        """The commit that this handle shows."""
        return self._snapshot.commit

    @property
    def snapshot(self) -> Snapshot:
        """The frozen state that this handle shows."""
        return self._snapshot

    @property
    def branches(self) -> "Branches":
        """The branches of the graph."""
        return Branches(self)

    def refresh(self) -> "Graph":
        """Move to the newest state of the branch; gives the handle itself."""
        if self._at is None:
            self._snapshot = snapshot(self._store, self._line)
        return self

    def checkout(self, branch: str) -> "Graph":
        """A handle on another branch."""
        line = branches.open_line(self._store, branch)
        return Graph(self._store, line, read_only=self.read_only, actor=self.actor)

    def at(self, point: Point) -> "Graph":
        """A read-only handle on the past: a commit id, a version, or a moment with its zone."""
        return Graph(self._store, self._line, actor=self.actor, at=point)

    def log(self, *, limit: int | None = None, actor: str | None = None) -> list[Commit]:
        """The commits this handle's head stands on, newest first."""
        log = Log(self._store, self._line.refresh().state)
        found = in_order(log.ancestors(self.head.id).values())
        return list(islice((c for c in found if actor is None or c.actor == actor), limit))

    def commit(self, commit_id: str) -> Commit:
        """One commit: of this branch first, else of any."""
        return find_commit(self._store, self._line, commit_id)[2]

    def table(self, name: str, *, kind: str | None = None) -> Any:
        """The pinned Lance dataset of a node or edge type; the node wins when both exist."""
        keys = [f"{kind}:{name}"] if kind else [f"node:{name}", f"edge:{name}"]
        key = next((one for one in keys if one in self._snapshot.tables), keys[0])
        return self._snapshot.table(key).dataset

    def _writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError("this handle is read-only")


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a graph: iterate, look up, create, delete."""

    graph: Graph

    def __iter__(self) -> Iterator[str]:
        return iter(branches.list_branches(self.graph._store))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in list(iter(self))

    def create(self, name: str, *, from_: str | None = None, commit: str | None = None) -> Graph:
        """A new branch from the head of a branch (this one by default) or from a past commit."""
        graph = self.graph
        graph._writable()
        source = branches.open_line(graph._store, from_) if from_ else graph._line
        branches.create_branch(graph._store, name, source, commit_id=commit, actor=graph.actor)
        return graph.checkout(name.strip())

    def delete(self, name: str) -> None:
        """Delete a branch; what other branches took from it stays."""
        self.graph._writable()
        branches.delete_branch(self.graph._store, name, bound=self.graph.branch_name)


def init(
    uri: Location,
    schema: str | Path,
    *,
    force: bool = False,
    actor: str | None = None,
    durability: Durability = "fsync",
) -> Graph:
    """Make a new graph and open it. `schema` is `.pg` text, or a path to it."""
    from omnigraph.history.init import init_graph
    from omnigraph.history.schemas import Contract
    from omnigraph.lang.schema import compile_schema
    from omnigraph.lang.schema.identity import new_identity

    text, name = _schema_text(schema)
    catalog = compile_schema(text, name)
    store = open_store(_text(uri), durability=durability)
    init_graph(store, Contract(text, new_identity(catalog, new_ulid())), force=force)
    return Graph(store, branches.open_line(store, MAIN), actor=actor)


def open(
    uri: Location,
    *,
    branch: str = MAIN,
    actor: str | None = None,
    read_only: bool = False,
    durability: Durability = "fsync",
) -> Graph:
    """Open a graph. Read-write settles what a cut-off operation left; read-only writes nothing."""
    store = open_store(_text(uri), durability=durability)
    line = branches.open_line(store, branch)
    if not read_only:
        recover(store)
    return Graph(store, line, read_only=read_only, actor=actor)


def _text(uri: Location) -> str:
    return uri if isinstance(uri, str) else str(uri)


def _schema_text(schema: str | Path) -> tuple[str, str]:
    if isinstance(schema, Path):
        return schema.read_text("utf-8"), str(schema)
    return schema, "<schema>"
