"""Read leases of work on Spark: what its tasks read stays, whatever a cleanup would take.

The driver holds for as long as a call takes. Nobody hears of the end of a DataFrame, so there each
task shows life for all of them, and the lease runs out after the last one. Where nothing may be
written there is no lease, and the read goes on without.
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
    """The lease of a DataFrame on one table of a commit, as its tasks show life for it."""

    place: Place
    intent: Intent
    entry: TableEntry

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Protect what a task reads, while it does and for the length of a lease.

        `HistoryReclaimed` when it is gone already.
        """
        store = self.place.store()
        with ExitStack() as stack:
            try:
                with reported("none"):
                    self._show(store)
                stack.enter_context(kept_alive(store, self.intent))
            except StorageError as error:
                _log.warning("what is read is not held, a cleanup may take it: %s", error)
            yield

    def over(self, work: Work) -> Work:
        """What Spark runs, under this lease."""

        def run(batches: Batches) -> Batches:
            with self.alive():
                yield from work(batches)

        run.__name__ = work.__name__  # what a plan shows of it
        return run

    def _show(self, store: Store) -> None:
        """Renew the lease, or take it again: after a pause somebody may have cleared it away."""
        name, facts = layout.intent_name(self.intent.id), self.intent.to_json()
        for _ in range(2):
            if store.objects.create_json(name, facts):
                check_named(store, [self.entry], self.intent.base_commit)
                return
            intents.renew(store, self.intent)
            if store.objects.read(name) is not None:
                return


def hold_of(line: Line, shown: Snapshot, key: str) -> Hold:
    """A lease on what a snapshot shows of one type; nothing is written before a task reads."""
    intent = reading(_line_of(shown, line), shown)
    return Hold(place_of(shown.store, {}), intent, shown.tables[key])


def _line_of(shown: Snapshot, line: Line | None) -> Line:
    """The branch that a snapshot is of: who looks may look at a commit of another one."""
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
    """Protect all that a snapshot shows while the block runs."""
    store = place_of(shown.store, {}).store()  # a handle that only reads may not even say so
    with ExitStack() as stack:
        try:
            stack.enter_context(held(store, _line_of(shown, line), shown))
        except StorageError as error:
            _log.warning("what is exported is not held, a cleanup may take it: %s", error)
        yield
