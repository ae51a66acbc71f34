"""Read leases of Spark jobs: a cleanup must not remove what their tasks read.

The driver holds a lease for the duration of a call. Spark does not report when a DataFrame is no
longer used, so each task of a DataFrame renews its lease, which expires after the last task. Where
nothing may be written there is no lease, and the read continues without one.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import BranchNotFound, StorageError
from omnigraph.history import intent as intents
from omnigraph.history.branches import open_line
from omnigraph.history.commit import TableEntry
from omnigraph.history.hold import held, reading
from omnigraph.history.intent import Intent
from omnigraph.history.lease import kept_alive
from omnigraph.history.line import Line
from omnigraph.history.retention.condemned import check_named
from omnigraph.history.snapshot import Snapshot
from omnigraph.storage import layout
from omnigraph.storage.failures import reported
from omnigraph.storage.store import Store

from .place import Place, place_of

Batches = Iterator[pa.RecordBatch]
Work = Callable[[Batches], Batches]
_log = logging.getLogger("omnigraph")


@dataclass(frozen=True, slots=True)
class Hold:
    """The lease of a DataFrame on one table of a commit, renewed by its tasks."""

    place: Place
    intent: Intent
    entry: TableEntry

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Protect what a task reads while the block runs, and until the lease expires.

        Raises `HistoryReclaimed` if the table version was already removed.
        """
        store = self.place.store()
        with ExitStack() as stack:
            try:
                with reported("none"):
                    self._show(store)
                stack.enter_context(kept_alive(store, self.intent))
            except StorageError as error:
                _log.warning("no read lease, a cleanup may remove what is read: %s", error)
            yield

    def over(self, work: Work) -> Work:
        """Wrap a Spark function so that it runs under this lease."""

        def run(batches: Batches) -> Batches:
            with self.alive():
                yield from work(batches)

        run.__name__ = work.__name__  # shown in the query plan
        return run

    def _show(self, store: Store) -> None:
        """Renew the lease, or recreate it: after a pause a cleanup may have removed it."""
        name, facts = layout.intent_name(self.intent.id), self.intent.to_json()
        for _ in range(2):
            if store.objects.create_json(name, facts):
                check_named(store, [self.entry], self.intent.base_commit)
                return
            intents.renew(store, self.intent)
            if store.objects.read(name) is not None:
                return


def hold_of(line: Line, shown: Snapshot, key: str) -> Hold:
    """Return a lease on one table of a snapshot; nothing is written before a task reads."""
    intent = reading(_line_of(shown, line), shown)
    return Hold(place_of(shown.store, {}), intent, shown.tables[key])


def _line_of(shown: Snapshot, line: Line | None) -> Line:
    """Return the branch of a snapshot: a handle may read a commit of another branch."""
    if line is not None and line.name == shown.branch:
        return line
    try:
        return open_line(shown.store, shown.branch)
    except BranchNotFound:
        if line is None:
            raise
        return line


@contextmanager
def holding(shown: Snapshot, line: Line | None = None) -> Iterator[None]:
    """Protect everything that a snapshot shows while the block runs."""
    # A read-only handle must not write, not even a lease: open a writable store.
    store = place_of(shown.store, {}).store()
    with ExitStack() as stack:
        try:
            stack.enter_context(held(store, _line_of(shown, line), shown))
        except StorageError as error:
            _log.warning("no read lease, a cleanup may remove what is exported: %s", error)
        yield
