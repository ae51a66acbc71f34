"""`graph.maintenance`: operations that keep a graph fast, small and consistent.

These operations include compaction, indexing, cleanup, proofs of absence, checks, repairs and copies. Except for a
forced repair, none of them changes the data at a branch's newest commit. Operations that recovery could not finish have
their own facet, `graph.maintenance.operations`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

from omnigraph.api import maintenance_runs as runs
from omnigraph.api.engine_choice import Engine, choose_check_executor
from omnigraph.api.facet import Facet
from omnigraph.api.handle import Handle
from omnigraph.api.operations import Operations
from omnigraph.api.results.receipt import Receipt
from omnigraph.maintenance.copy import CopyProgress, CopySummary
from omnigraph.maintenance.optimize_budget import make_budget
from omnigraph.maintenance.retention.absence_report import Absence
from omnigraph.maintenance.retention.collect_garbage import CleanupProgress
from omnigraph.maintenance.retention.policy import Duration, make_policy
from omnigraph.maintenance.retention.report import Cleanup
from omnigraph.publish.read_lease import protect_snapshot

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.maintenance.finding import Checkup
    from omnigraph.maintenance.optimize_report import OptimizeReport
    from omnigraph.maintenance.repair_report import Repair
    from omnigraph.maintenance.status_report import Status


class Maintenance(Facet):
    """Operations that keep a graph fast, small and consistent.

    >>> from omnigraph import testing
    >>> with testing.graph("node Person { name: String @key }") as graph:
    ...     bool(graph.maintenance.check()), graph.maintenance.pending_indices()
    (True, [])
    """

    __slots__ = ("_make_graph",)

    def __init__(self, handle: Handle, make_graph: "Callable[[Handle], Graph]") -> None:
        super().__init__(handle)
        self._make_graph = make_graph

    @property
    def operations(self) -> Operations:
        """Unfinished operations, and the outcomes of recovered operations."""
        return Operations(self._handle)

    def optimize(  # noqa: PLR0913 - all are keywords
        self,
        *,
        types: Collection[str] | None = None,
        engine: Engine = "auto",
        spark: Any = None,
        branch: str | None = None,
        actor: str | None = None,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
    ) -> "OptimizeReport":
        """Compact small fragments and index all rows, without changing any data.

        `types` limits the work to the given types. The report has one row per type and lists the new commits: usually
        one, none if there was nothing to do, or two if other writers published first. Readers and writers are never
        blocked.

        `engine` is "local" (this process), "spark" (the session `spark`, or a new one) or "auto",
        which uses Spark if it is available and there is at least 1 GiB to read. The result does not
        depend on the engine.

        `max_seconds` and `max_bytes` limit the duration and the number of bytes read. Once a limit is reached, no
        further tables, compaction tasks or indexes are processed. The finished work is published, and the report's
        `remaining` contains the types and bytes that are left for the next run.

        Raises `InputError` for an unknown type, `ConcurrentCommit` if the branch is too busy, `ServerError` if Spark
        fails, and `ReadOnlyError` if the graph is read-only.
        """
        budget = make_budget(max_seconds, max_bytes)
        return runs.run_optimize(self._handle.for_branch(branch), types, (engine, spark), actor, budget)

    def ensure_indices(
        self,
        *,
        rebuild: bool | Collection[str] = False,
        engine: Engine = "auto",
        spark: Any = None,
        branch: str | None = None,
        actor: str | None = None,
    ) -> Receipt:
        """Build the indexes that the schema declares, so that they cover all rows.

        `rebuild` also replaces existing indexes, including damaged ones. True replaces all of them, and a list such as
        `["Doc", "Person.age"]` replaces only those on the given types and columns. In the receipt, `indexes` lists the
        indexed columns in each table. `engine` has the same values as in `optimize`.

        >>> from omnigraph import testing
        >>> with testing.graph("node Person { name: String @key  age: I32? @index }") as graph:
        ...     _ = graph.insert("Person", {"name": "ada", "age": 36}), graph.maintenance.ensure_indices()
        ...     graph.maintenance.ensure_indices(rebuild=["Person.age"]).indexes
        {'node:Person': ['age']}

        Raises `InputError` for an unknown type or a column without an index, and `ReadOnlyError` if the graph is
        read-only.
        """
        return runs.build_indexes(self._handle.for_branch(branch), (engine, spark), actor, rebuild)

    def pending_indices(self) -> list[tuple[str, str, str]]:
        """Return the declared indexes that do not cover all rows, as (table, property, reason) tuples.

        `ensure_indices` builds them, except those that, according to their reason, cannot be built yet.
        """
        return runs.list_pending_indexes(self._handle.latest_snapshot())

    def cleanup(  # noqa: PLR0913 - all are keywords
        self,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        confirm: bool = False,
        grace: Duration | None = None,
        erase: bool = False,
        purge_dropped: bool = False,
        engine: Engine = "auto",
        spark: Any = None,
        progress: CleanupProgress | None = None,
    ) -> Cleanup:
        """Remove commits that are neither recent nor among the `keep` newest commits on a branch.

        `older_than` and `grace` can be a number of seconds, a `timedelta`, or a string such as `7d`. A commit's age is
        the time since it stopped being the newest on its branch. Data that branches, tags, merge bases and running
        operations need is kept. `grace` (one hour by default) protects running reads. Unless `confirm` is true, nothing
        is removed and the report is a preview. `erase` first rewrites the files that contain deleted rows, so that no
        trace of the rows remains (GDPR deletion). Readers and writers are never blocked. Tables that are no longer
        referenced, because their types were permanently dropped or their branch was deleted, are reported as
        `unreferenced_paths`. They are removed only if `purge_dropped` or `erase` is true.

        `engine` determines where files are listed and removed: "local" (this process), "spark" (the
        session `spark`, or a new one) or "auto", which uses Spark if it is available and there are at
        least 100,000 files.

        Raises `InputError` for invalid arguments, `ConcurrentCommit` while another cleanup is running, `Conflict` if
        data that must be kept cannot be read, `ServerError` if Spark fails (the next cleanup removes the rest), and
        `ReadOnlyError` if the graph is read-only.
        """
        self._handle.require_open()
        policy = make_policy(keep, older_than, grace, purge_dropped=purge_dropped or erase)
        if not confirm:
            return runs.preview_cleanup(self._handle, policy, (engine, spark), erase=erase)
        return runs.run_cleanup(self._handle, policy, (engine, spark), progress, erase=erase)

    @contextmanager
    def hold(self) -> "Iterator[Graph]":
        """Yield a read-only graph at the newest commit, which is protected from cleanup while the block runs.

        Use a hold for reads that take longer than a cleanup's grace period, such as long streams. The hold is recorded
        in the store, where other processes can see it, so it requires write permission.
        """
        handle = self._handle
        snapshot = handle.latest_snapshot()
        with protect_snapshot(handle.store, handle.branch_state, snapshot, handle.actor):
            yield self._make_graph(handle.pin(snapshot))

    def check_absent(
        self, type_name: str, entity_id: str, *, also: str | PathLike[str] | Sequence[str | PathLike[str]] = ()
    ) -> Absence:
        """Search every file in the graph and its caches for traces of an entity.

        `also` lists additional files and folders to search, such as folders of rejected records. This method reads
        everything and writes nothing.
        """
        return runs.search_traces(self._handle, type_name, entity_id, also)

    def check(
        self,
        *,
        quick: bool = False,
        sample: float | None = None,
        engine: Engine = "auto",
        spark: Any = None,
        progress: Callable[[str], object] | None = None,
    ) -> "Checkup":
        """Verify the integrity of the graph on every branch and tag, without changing the graph.

        The check covers names, manifests, logs, the files in every retained version, schema rules, indexes, and changes
        by external writers. The result is truthy if no problems were found. It lists all findings, and the newest
        readable commit on each branch. `quick` skips rows, indexes and file contents. `sample`, a fraction such as 0.1,
        requests a quick check that also verifies the checksums of that fraction of the files.

        `engine` determines where files are verified against their checksums: "local" (this process), "spark" (the
        session `spark`, or a new one) or "auto", which uses Spark if it is available and there are at least 32 GiB of
        files.
        """
        from omnigraph.maintenance.check import check_graph

        self._handle.require_open()
        store = self._handle.store
        executor = choose_check_executor(store, (engine, spark))
        return check_graph(store, quick=quick, sample=sample, progress=progress, executor=executor)

    def status(self) -> "Status":
        """Return counts of the graph's fragments, versions, bytes and unindexed rows.

        `warnings` lists the exceeded limits, each with a recommended command. This method reads no rows.
        """
        from omnigraph.maintenance.status import read_status

        handle = self._handle
        handle.require_open()
        return read_status(handle.store, handle.branch_name, handle.branch_state.refresh())

    def repair(  # noqa: PLR0913 - all are keywords
        self,
        *,
        confirm: bool = False,
        force: bool = False,
        restore: str | None = None,
        name: str | None = None,
        tag: bool = False,
        drop: str | None = None,
        commit: str | None = None,
    ) -> "Repair":
        """Report damage and changes made by external writers, and repair the damage if `confirm` is true.

        External changes are not part of any branch. If `force` and `confirm` are both true, rows that external writers
        appended are adopted in an ordinary commit, provided that they satisfy all schema rules. All other external
        changes are rejected. Nothing is ever adopted silently.

        If `confirm` is true, the names of branches and tags whose ref objects are lost or damaged are restored.
        `restore` is the ULID of a branch or tag whose name is unknown or taken. It is restored as the branch `name`, or
        as the tag `name` if `tag` is true. `drop` is either the ULID of such a branch or tag, which is then deleted, or
        a name whose branch or tag no longer exists, which is then released. If `restore` or `drop` is given, no other
        names are changed. Missing manifest versions are published again if there is proof that they were published
        before. If you know that a lost commit was acknowledged, pass its id as `commit` to publish it again too.
        """
        from omnigraph.maintenance.restore_names import NameChoice

        choice = NameChoice(restore, name, tag, drop)
        return runs.run_repair(self._handle, choice, commit, confirm=confirm, force=force)

    def copy_to(
        self,
        uri: str | PathLike[str],
        *,
        progress: CopyProgress | None = None,
        storage_options: Mapping[str, object] | None = None,
        verify: bool = True,
    ) -> CopySummary:
        """Copy the whole graph, with all branches and history, to an empty location.

        Every file that has a checksum is verified, and a damaged file stops the copy. With `verify=False`, damaged
        files are copied as they are, so that you can still save the intact files.
        """
        return runs.copy_graph_to(self._handle, uri, progress, storage_options, verify=verify)
