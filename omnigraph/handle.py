"""The state of a graph handle: its store, its branch, what it shows and what its caller has seen.

Owns freshness (a read runs on the newest state unless the handle is pinned), the memory behind
strict writes, and the way to other processes: a handle pickles, without secrets, and refuses to
work after a fork. It never reads or writes data.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from omnigraph.boundary import Guarded
from omnigraph.errors import (
    BranchNotFound,
    GraphClosed,
    ReadOnlyError,
    ReadSetConflict,
    UsageError,
)
from omnigraph.history.commit import Commit
from omnigraph.history.line import Line
from omnigraph.history.memory import Shown
from omnigraph.history.plan import Watch
from omnigraph.history.recover import attend
from omnigraph.history.schemas import Contract
from omnigraph.history.snapshot import Point, Snapshot, of_state, snapshot
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.storage.store import Store

if TYPE_CHECKING:
    from omnigraph.health.limits import Warned
    from omnigraph.history.manifest import Opened


@contextmanager
def on_branch(name: str) -> Iterator[None]:
    """A write to a branch that is gone ends as a read of it does: no look again would help."""
    try:
        yield
    except ReadSetConflict as error:
        if error.member != "branch":
            raise
        raise BranchNotFound(branch=name) from error


class Handle(Guarded):
    """What every kind of use of a graph stands on."""

    def __init__(
        self,
        store: Store,
        line: Line,
        *,
        read_only: bool = False,
        actor: str | None = None,
        at: Point = None,
        pinned: Snapshot | None = None,
    ) -> None:
        self._store = store
        self._line = line
        self._closed = False
        self._pid = os.getpid()
        self._fixed = at is not None or pinned is not None
        self.read_only = read_only or self._fixed
        self.actor = actor
        if not self.read_only:
            attend(line)
        opened = line.base()
        self._held: tuple[Opened, Snapshot] = (opened, of_state(store, line, opened))
        self._snapshot = pinned or (self._held[1] if at is None else snapshot(store, line, at))
        self._memory = Shown(self._snapshot.tables)
        # What writes of this handle found larger than is good, with the command that helps.
        self.warnings: list[Warned] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        shown = f"branch={self.branch_name!r}, head={self._snapshot.commit_id!r}"
        return f"Graph({self.uri!r}, {shown}{', read_only=True' if self.read_only else ''})"

    def _repr_html_(self) -> str:
        from omnigraph.notebook import facts_card

        head = self.head
        when = f"{head.published:%Y-%m-%d %H:%M:%S} UTC"
        facts: dict[str, Any] = {
            "branch": self.branch_name,
            "head": f"{head.id} by {head.actor or 'nobody named'}, {when}",
        }
        facts |= {key: entry.rows for key, entry in sorted(self._snapshot.tables.items())[:200]}
        return facts_card(self.uri, facts)

    def close(self) -> None:
        """Let go of the handle. Nothing is lost when it is forgotten instead."""
        self._closed = True

    @property
    def uri(self) -> str:
        """Where the graph lives."""
        return self._store.root.uri

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self._line.name

    @property
    def is_remote(self) -> bool:
        """Whether a server stands between: not for this kind of handle."""
        return False

    @property
    def head(self) -> Commit:
        """The commit that this handle shows."""
        return replace(self._snapshot.commit, graph=self)

    @property
    def snapshot(self) -> Snapshot:
        """The frozen state that this handle shows."""
        return self._snapshot

    @property
    def schema(self) -> Contract:
        """The schema of the state that this handle shows; `.source` is its text."""
        self._open()
        return self._snapshot.schema

    def refresh(self) -> Self:
        """Move to the newest state of the branch; gives the handle itself."""
        self._memory.show(self._newest().tables)
        return self

    def _guarded_store(self) -> Store:
        return self._store

    # What is shown ------------------------------------------------------------------------------

    def _newest(self) -> Snapshot:
        """The state that a read runs on: the newest there is, or the one that is pinned."""
        self._open()
        if self._fixed:
            return self._snapshot
        opened = self._line.glance()
        held = self._held
        if held[0] is not opened:
            if opened.state.head.closed:
                raise BranchNotFound(branch=self.branch_name)
            held = self._held = (opened, of_state(self._store, self._line, opened))
        self._snapshot = held[1]
        return held[1]

    def _saw(self, shown: Snapshot, query: CompiledQuery) -> None:
        """The caller has seen the tables that a query read."""
        keys = (f"{one.kind}:{one.type_name}" for one in query.operation.reads)
        self._memory.show({key: shown.tables[key] for key in keys if key in shown.tables})

    def _watch(self, keys: Iterable[str]) -> Watch:
        """The condition of a strict write: these tables are as the caller has seen them."""
        return self._memory.strict(keys)

    def _wrote(self, commit: Commit | None, watch: Watch) -> Commit | None:
        """Follow one's own write; gives its commit as callers get it."""
        if commit is None:
            return None
        self._memory.wrote(commit, watch)
        opened = self._line.base()
        self._held = (opened, of_state(self._store, self._line, opened))
        self._snapshot = self._held[1]
        self._warn(opened, commit)
        return self._given_out(commit)

    def _given_out(self, commit: Commit | None) -> Commit | None:
        """A commit that can be asked for its changes."""
        return None if commit is None else replace(commit, graph=self)

    def _warn(self, opened: "Opened", commit: Commit) -> None:
        """Tell once, in the log and in `warnings`, what the write has made larger than is good."""
        from omnigraph.events import LOGGER
        from omnigraph.health.seldom import seldom_warnings
        from omnigraph.health.written import written_warnings

        told = {(one.what, one.type_key) for one in self.warnings}
        found = written_warnings(self._store, opened.state, commit)
        for one in (*found, *seldom_warnings(self._store, opened, commit)):
            if (one.what, one.type_key) not in told:
                self.warnings.append(one)
                event = {"operation": "upkeep", "branch": self.branch_name, **one.to_json()}
                LOGGER.warning("%s", one, extra={"event": event})

    def _target(self) -> dict[str, str | None]:
        if self._fixed:
            return {"branch": None, "snapshot": self._snapshot.commit_id}
        return {"branch": self.branch_name, "snapshot": None}

    # Whether it may be used ---------------------------------------------------------------------

    def _open(self) -> None:
        if self._closed:
            raise GraphClosed(f"this handle on {self.uri} is closed")
        if self._pid != os.getpid():
            # Reopening here would work most of the time, and end the process at other times.
            raise UsageError(
                reason="this handle belongs to the process that forked this one; Lance, which reads"
                " and writes the tables, cannot be used after a fork",
                hint="start processes with spawn or forkserver; a graph can be pickled for them",
            )

    def _writable(self, what: str) -> None:
        self._check_target(what)
        if self.read_only:
            raise ReadOnlyError(what=what)

    def _check_target(self, what: str) -> None:
        """Refuse a view of one commit: it has no branch for a write, nor for a dry run of one."""
        self._open()
        if self._fixed:
            shown = self._snapshot.commit_id
            message = f"{what} is refused: the handle shows commit {shown}, not a branch"
            raise ReadOnlyError(message, what=what)
