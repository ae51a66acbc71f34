"""The part of a graph handle that keeps a graph in order: cleanup, and proofs that things are gone.

Each call is one run below. Nothing here changes what the newest state of a branch shows.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from omnigraph.errors import InputError
from omnigraph.events import Event, operation
from omnigraph.handle import on_branch
from omnigraph.history.hold import held
from omnigraph.history.retention.absence import Absence, find_traces
from omnigraph.history.retention.collect import Progress, cleanup, preview
from omnigraph.history.retention.policy import Duration, policy_of
from omnigraph.history.retention.report import Cleanup
from omnigraph.receipt import Receipt
from omnigraph.terms import Terms, actor_of
from omnigraph.writing import Writing

if TYPE_CHECKING:
    from omnigraph.engine.optimize import Optimized
    from omnigraph.history.commit import Commit
    from omnigraph.history.line import Line
    from omnigraph.history.snapshot import Snapshot
    from omnigraph.pipeline.engine import Engine
    from omnigraph.storage.hands import Hands


class Keeping(Writing):
    """Everything about what is kept, and what is not."""

    def cleanup(  # noqa: PLR0913 - all are named
        self,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        confirm: bool = False,
        grace: Duration | None = None,
        erase: bool = False,
        purge_dropped: bool = False,
        engine: Literal["auto", "spark", "local"] = "auto",
        spark: Any = None,
        progress: Progress | None = None,
    ) -> Cleanup:
        """Remove history that is neither among the newest `keep` commits of a branch nor young.

        `older_than` and `grace` are seconds, a `timedelta`, or text such as `7d`; a commit is as
        old as the time since it stopped being the newest. What branches, tags, merge bases and
        running operations need stays. `grace` (an hour) spares what somebody may just be reading.
        Without `confirm` nothing is removed: the report tells what would be. `erase` first writes
        anew what holds deleted rows, so that nothing of them is left. Others may read and write.
        Tables that nothing names any more, since their types were dropped for good or their branch
        is gone, are told as `unreferenced_paths`; `purge_dropped`, or `erase`, removes them too.

        `engine` says who lists and removes the files: "local", "spark", on the session `spark` or
        on one of its own, or "auto": Spark from 100,000 files on, where it can be had.

        Raises `InputError`, `ConcurrentCommit` while another cleanup is at work, `Conflict` when
        something that must stay cannot be read, `ServerError` when Spark fails (what it did not
        remove goes with the next cleanup), `ReadOnlyError`.
        """
        self._open()
        policy = policy_of(keep, older_than, grace, purge_dropped=purge_dropped or erase)
        from omnigraph.pipeline.cleanup import hands_for

        hands = hands_for(engine, spark)
        if not confirm:
            return preview(self._store, policy, hands, erase=erase)
        self._writable("a cleanup")
        with operation("cleanup", self.branch_name) as event:
            if erase:
                from omnigraph.history.retention.erase import rewrite_deleted

                rewrite_deleted(self._store)
            done = cleanup(self._store, policy, progress, hands)
            _forget_caches(self)
            if erase and not self._fixed:
                self.refresh()
            event.rows_told("table_cleaned", (one.to_json() for one in done.datasets))
            event.facts["gc_bytes_removed"] = done.bytes_removed
            event.facts["gc_versions_removed"] = done.old_versions_removed
            event.facts["orphans_reclaimed"] = len(done.orphans)
        return done

    def optimize(
        self,
        *,
        types: Collection[str] | None = None,
        engine: Literal["auto", "spark", "local"] = "auto",
        spark: Any = None,
        branch: str | None = None,
        actor: str | None = None,
    ) -> "Optimized":
        """Put small fragments together and cover all rows by indexes; no content changes.

        `types` are those to look at, all by default. Gives a row per type and the commits, which
        is one, none when there is nothing to do, or two when writers were faster meanwhile. Others
        may read and write; nobody waits.

        `engine` is "local", in this process, "spark", on the session `spark` or on one of its own,
        or "auto": Spark from 1 GiB of work on, where it can be had. The result is the same.

        Raises `NotFound` for an unknown type, `ConcurrentCommit` on a branch that is too busy,
        `ServerError` when Spark fails, `ReadOnlyError`.
        """
        from omnigraph.engine.optimize import optimize

        there = self._there(branch)
        there._writable("an optimize")
        name = there.branch_name
        with operation("optimize", name) as event, on_branch(name):
            hands = _hands(there._line, types, engine, spark)
            done = optimize(there._line, types, actor_of(actor) if actor else None, hands)
            _tell_tables(event, done)
        if done:
            there.refresh()
        return done

    def ensure_indices(
        self,
        *,
        engine: Literal["auto", "spark", "local"] = "auto",
        spark: Any = None,
        branch: str | None = None,
        actor: str | None = None,
    ) -> Receipt:
        """Build the indexes that the schema asks for, over all rows that none covers yet.

        The receipt names the columns in `indexes`, by table. `engine` is as for `optimize`.
        """
        from omnigraph.engine.tend import ensure_indices

        there = self._there(branch)
        there._writable("building indexes")
        signature = Terms(actor=actor_of(actor) if actor else None).signature()
        name, before = there.branch_name, there._newest()
        with operation("ensure_indices", name) as event, on_branch(name):
            hands = _hands(there._line, None, engine, spark)
            commit = ensure_indices(there._line, signature, hands=hands)
            if commit is not None:
                there.refresh()
            made = _indexed(before, there._newest(), commit)
            event.rows_told(
                "table_indexed", ({"type_key": k, "indexes": v} for k, v in made.items())
            )
        given = there._given_out(commit)
        return Receipt(given, branch=name, elapsed=event.seconds(), indexes=made)

    def pending_indices(self) -> list[tuple[str, str, str]]:
        """Indexes that the schema asks for and that are not built: (table, property, reason)."""
        from omnigraph.engine.tend import pending
        from omnigraph.rules.check import type_named

        shown = self._newest()
        catalog = shown.schema.ir.catalog
        return [
            (key, name, reason)
            for key in sorted(shown.tables)
            for name, reason in pending(shown.table(key), type_named(catalog, key))
        ]

    @contextmanager
    def hold(self) -> Iterator[Self]:
        """A read-only handle on what this one shows, which no cleanup takes while the block runs.

        For reads that take longer than the grace of a cleanup: exports, long streams. Another
        process learns of it through the store, so that this needs leave to write there.
        """
        self._open()
        shown = self._newest()
        with held(self._store, self._line, shown, self.actor):
            yield type(self)(self._store, self._line, actor=self.actor, pinned=shown)

    def check_absent(
        self,
        type_name: str,
        entity_id: str,
        *,
        also: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    ) -> Absence:
        """Look for traces of an entity in every file of the graph and of the caches.

        `also` are more files and folders, such as those of rejected records. Reads everything
        there is, and writes nothing.
        """
        self._open()
        from omnigraph.engine.cache import cache_directory

        places = [str(one) for one in (cache_directory(),) if one is not None]
        given = [also] if isinstance(also, str | PathLike) else also
        more = [fspath(one) for one in given]
        for one in more:
            if not Path(one).exists():  # nothing can be proved of what is not there
                raise InputError(f"there is no file or folder {one}", reason="unknown path")
        return find_traces(self._store, type_name, entity_id, [*places, *more])


def _hands(
    line: "Line", types: Collection[str] | None, engine: "Engine", spark: Any
) -> "Hands | None":
    """Who does the long work of an optimize; None is this process."""
    from omnigraph.engine.optimize import work_of
    from omnigraph.pipeline.optimize import LARGE, SparkHands
    from omnigraph.pipeline.pick import session_for

    session = session_for(engine, spark, lambda: work_of(line, types) >= LARGE)
    return SparkHands(session) if session is not None else None


def _indexed(
    before: "Snapshot", after: "Snapshot", commit: "Commit | None"
) -> dict[str, list[str]]:
    """The columns whose indexes a commit built, by table."""
    from omnigraph.engine.tend import built

    keys = sorted(commit.tables) if commit is not None else ()
    known = (key for key in keys if key in before.tables and key in after.tables)
    return {key: built(before.table(key), after.table(key)) for key in known}


def _tell_tables(event: Event, done: "Optimized") -> None:
    """One event per table, and the sums in the event of the run."""
    event.rows_told(
        "table_optimized",
        (
            {
                **one.to_json(),
                "pending_indexes": len(one.pending_indexes),
                "version_before": one.version_before,
                "version_after": one.version_after,
            }
            for one in done.datasets
        ),
    )
    event.retries = done.retries
    event.facts["fragments_removed"] = sum(one.fragments_removed for one in done.datasets)
    event.facts["maintenance_conflict_retries"] = done.retries
    event.facts["pending_indexes"] = sum(len(one.pending_indexes) for one in done.datasets)


def _forget_caches(graph: Keeping) -> None:
    """Neighbour lists of versions that are gone, in memory and on disk."""
    from omnigraph.engine.cache import shared_caches
    from omnigraph.engine.recall import forget

    forget(shared_caches(), graph._store)
