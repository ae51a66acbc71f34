"""`graph.maintenance` on a server. Operations on files run as jobs on the server, and methods wait until the job ends.

A job continues if the client disconnects. The methods return the same reports as on an embedded graph.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn

from omnigraph.api.results.receipt import Receipt
from omnigraph.errors import OmnigraphError
from omnigraph.maintenance.finding import Checkup
from omnigraph.maintenance.optimize_budget import make_budget
from omnigraph.maintenance.optimize_report import OptimizeReport
from omnigraph.maintenance.repair_report import Repair
from omnigraph.maintenance.retention.absence_report import Absence
from omnigraph.maintenance.retention.report import Cleanup
from omnigraph.maintenance.status_report import Status
from omnigraph.values import clock_and_ids

from . import reports
from .answers import read_optional_commit
from .facet import RemoteFacet
from .handle import RemoteHandle
from .jobs import Watch, read_counts, start_job, wait_for_job, watch_progress
from .operations import RemoteOperations
from .unsupported import reject, reject_if
from .writes import write_branch

if TYPE_CHECKING:
    from .graph import RemoteGraph

_RENEWALS_PER_HOLD = 3


class RemoteMaintenance(RemoteFacet):
    """Compaction, indexes, cleanup, checks and repairs of a graph on a server."""

    __slots__ = ()

    @property
    def operations(self) -> RemoteOperations:
        """Unfinished operations, and the outcomes of recovered operations."""
        return RemoteOperations(self._handle)

    def optimize(  # noqa: PLR0913 - all are keywords
        self,
        *,
        types: Collection[str] | None = None,
        engine: Any = "auto",
        spark: Any = None,
        branch: str | None = None,
        actor: str | None = None,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
    ) -> OptimizeReport:
        """Compact small fragments and index all rows; see `Graph.maintenance.optimize`."""
        reject_if(engine == "spark" or spark is not None, "engine='spark'")
        self._handle.reject_actor(actor)
        self._handle.require_writable("optimizing")
        make_budget(max_seconds, max_bytes)
        body = {"branch": write_branch(self._handle, branch), "types": None if types is None else list(types)}
        limits = {"max_seconds": max_seconds, "max_bytes": max_bytes}
        return reports.read_optimize_report(self._run_job("optimize", {**body, **limits}))

    def ensure_indices(
        self,
        *,
        rebuild: bool | Collection[str] = False,
        engine: Any = "auto",
        spark: Any = None,
        branch: str | None = None,
        actor: str | None = None,
    ) -> Receipt:
        """Build the indexes that the schema declares; see `Graph.maintenance.ensure_indices`."""
        reject_if(engine == "spark" or spark is not None, "engine='spark'")
        self._handle.reject_actor(actor)
        self._handle.require_writable("building indexes")
        name, started = write_branch(self._handle, branch), clock_and_ids.monotonic()
        selected = rebuild if isinstance(rebuild, bool) else [rebuild] if isinstance(rebuild, str) else list(rebuild)
        result = self._run_job("ensure-indices", {"branch": name, "rebuild": selected})
        elapsed = clock_and_ids.monotonic() - started
        commit = read_optional_commit(result["commit"])
        return Receipt(commit, branch=name, elapsed=elapsed, indexes=result["indexes"])

    def pending_indices(self) -> list[tuple[str, str, str]]:
        """Return the declared indexes that do not cover all rows; see `Graph.maintenance.pending_indices`."""
        self._handle.require_open()
        document = self._handle.exchange.get("pending-indices", **self._handle.position)
        return [(index["type_key"], index["property"], index["reason"]) for index in document["pending_indexes"]]

    def cleanup(  # noqa: PLR0913 - all are keywords
        self,
        *,
        keep: int | None = None,
        older_than: Any = None,
        confirm: bool = False,
        grace: Any = None,
        erase: bool = False,
        purge_dropped: bool = False,
        engine: Any = "auto",
        spark: Any = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Cleanup:
        """Remove commits that are no longer needed; see `Graph.maintenance.cleanup`."""
        reject_if(engine == "spark" or spark is not None, "engine='spark'")
        if confirm:
            self._handle.require_writable("cleaning up")
        body = {
            "keep": keep,
            "older_than": _write_duration(older_than),
            "grace": _write_duration(grace),
            "confirm": confirm,
            "erase": erase,
            "purge_dropped": purge_dropped,
        }
        watch = _ignore if progress is None else watch_progress(read_counts(progress))
        return reports.read_cleanup(self._run_job("cleanup", body, watch))

    @contextmanager
    def hold(self) -> "Iterator[RemoteGraph]":
        """Yield a read-only graph at the current commit, which the server protects from cleanup while the block runs.

        The client renews this protection, the hold, in the background. If the client dies, the hold expires.
        """
        handle = self._handle
        handle.require_opened_writable("holding a commit")
        hold = handle.exchange.post("holds", body=handle.position)
        with _renew_hold(handle, hold["hold_id"], hold["seconds"] / _RENEWALS_PER_HOLD):
            yield self._graph_on(handle.pin(hold["graph_commit_id"]))

    def check_absent(
        self, type_name: str, entity_id: str, *, also: str | PathLike[str] | Sequence[str | PathLike[str]] = ()
    ) -> Absence:
        """Search every file of the graph for traces of an entity; see `Graph.maintenance.check_absent`.

        The server searches its own files and caches. `also` lists files and folders on this machine, which the client
        searches.
        """
        self._handle.require_open()
        absence = reports.read_absence(self._run_job("check-absent", {"type": type_name, "id": entity_id}))
        return reports.add_local_traces(absence, entity_id, also)

    def check(
        self,
        *,
        quick: bool = False,
        sample: float | None = None,
        engine: Any = "auto",
        spark: Any = None,
        progress: Callable[[str], object] | None = None,
    ) -> Checkup:
        """Verify the integrity of the graph on every branch and tag; see `Graph.maintenance.check`."""
        reject_if(engine == "spark" or spark is not None, "engine='spark'")
        watch = _ignore if progress is None else watch_progress(progress)
        return reports.read_checkup(self._run_job("check", {"quick": quick, "sample": sample}, watch))

    def status(self) -> Status:
        """Return the size and condition of the graph; see `Graph.maintenance.status`."""
        self._handle.require_open()
        document = self._handle.exchange.get("status", branch=self._handle.branch_name)
        return reports.read_status(reports.name_graph(document["status"], self._handle.uri))

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
    ) -> Repair:
        """Report or repair damage and external changes; see `Graph.maintenance.repair`."""
        if confirm:
            self._handle.require_writable("repairing")
        body = {
            "branch": self._handle.branch_name,
            "confirm": confirm,
            "force": force,
            "restore": restore,
            "name": name,
            "tag": tag,
            "drop": drop,
            "commit": commit,
        }
        return reports.read_repair(self._run_job("repair", body))

    def copy_to(self, uri: Any, **options: Any) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("maintenance.copy_to")

    def _run_job(self, kind: str, body: Mapping[str, Any], watch: Watch = lambda _: None) -> Any:
        self._handle.require_open()
        exchange = self._handle.exchange
        result = wait_for_job(exchange, start_job(exchange, kind, body), watch)
        return reports.name_graph(result, self._handle.uri)


def _ignore(_: Mapping[str, Any]) -> None:
    pass


@contextmanager
def _renew_hold(handle: RemoteHandle, hold_id: str, interval: float) -> Iterator[None]:
    """Renew a hold in a thread while the block runs, and release the hold afterward."""
    stopped = threading.Event()

    def renew_until_stopped() -> None:
        while not stopped.wait(interval):
            with suppress(OmnigraphError):  # the next renewal may succeed
                handle.exchange.post("holds", hold_id, "renew", body={})

    thread = threading.Thread(target=renew_until_stopped, name=f"hold-{hold_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        with suppress(OmnigraphError):  # the hold ends by itself
            handle.exchange.call("DELETE", ("holds", hold_id), {})


def _write_duration(duration: Any) -> Any:
    return duration.total_seconds() if hasattr(duration, "total_seconds") else duration
