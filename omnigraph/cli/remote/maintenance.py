"""Maintenance of a graph on a server. Operations on the graph's files run as jobs, and a command waits for the result.

While a command waits, it shows the job's progress if it is running in a terminal. If the command is interrupted, the
job continues, and the message says how to see its result.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.api.results.receipt import Receipt
from omnigraph.cli.progress import show_progress
from omnigraph.client import reports
from omnigraph.client.commit_documents import read_commit
from omnigraph.client.jobs import Document, read_counts, start_job, wait_for_job, watch_progress

if TYPE_CHECKING:
    from omnigraph.history.recovery_records import RecoveryRecord
    from omnigraph.maintenance.finding import Checkup
    from omnigraph.maintenance.optimize_report import OptimizeReport
    from omnigraph.maintenance.repair_report import Repair
    from omnigraph.maintenance.retention.absence_report import Absence
    from omnigraph.maintenance.retention.report import Cleanup
    from omnigraph.maintenance.status_report import Status
    from omnigraph.publish.intent import PendingIntent, SetAsideIntent

    from .graph import CommandGraph


class ServedMaintenance:
    """The status of a graph, and its maintenance jobs."""

    def __init__(self, graph: "CommandGraph") -> None:
        self._graph, self._exchange = graph, graph.exchange

    @property
    def operations(self) -> "ServedOperations":
        """Operations that are running or were interrupted."""
        return ServedOperations(self._graph)

    def status(self) -> "Status":
        """Return the size and condition of the graph."""
        document = self._exchange.get("status", branch=self._graph.branch_name)["status"]
        return reports.read_status(reports.name_graph(document, self._graph.uri))

    def optimize(
        self, *, types: Collection[str] | None, max_seconds: float | None, max_bytes: int | None, **_: Any
    ) -> "OptimizeReport":
        """Compact and index the tables of the branch."""
        body = {"branch": self._graph.branch_name, "types": None if types is None else list(types)}
        limits = {"max_seconds": max_seconds, "max_bytes": max_bytes}
        return reports.read_optimize_report(self._run_job("optimize", {**body, **limits}))

    def ensure_indices(self, *, rebuild: bool | Collection[str], **_: Any) -> Receipt:
        """Build the declared indexes of the branch."""
        body = {
            "branch": self._graph.branch_name,
            "rebuild": rebuild if isinstance(rebuild, bool) else list(rebuild),
        }
        result = self._run_job("ensure-indices", body)
        commit = None if result["commit"] is None else read_commit(result["commit"])
        return Receipt(commit, branch=self._graph.branch_name, indexes=result["indexes"])

    def pending_indices(self) -> list[tuple[str, str, str]]:
        """Return the declared indexes that do not cover all rows."""
        document = self._exchange.get("pending-indices", branch=self._graph.branch_name)
        return [(index["type_key"], index["property"], index["reason"]) for index in document["pending_indexes"]]

    def cleanup(self, *, progress: Callable[[int, int], object], **options: Any) -> "Cleanup":
        """Remove commits that are no longer needed, or preview the removal."""
        body = {name: value for name, value in options.items() if name not in ("engine", "spark")}
        return reports.read_cleanup(self._run_job("cleanup", body, watch_progress(read_counts(progress))))

    def check(self, *, quick: bool, sample: float | None, **_: Any) -> "Checkup":
        """Verify the integrity of the graph."""
        return reports.read_checkup(self._run_job("check", {"quick": quick, "sample": sample}))

    def check_absent(self, type_name: str, entity_id: str, *, also: Any) -> "Absence":
        """Search for traces of an entity."""
        result = self._run_job("check-absent", {"type": type_name, "id": entity_id})
        return reports.add_local_traces(reports.read_absence(result), entity_id, also)

    def repair(self, **options: Any) -> "Repair":
        """Report or repair damage and external changes."""
        return reports.read_repair(self._run_job("repair", {"branch": self._graph.branch_name, **options}))

    def _run_job(self, kind: str, body: Mapping[str, Any], watch: Callable[[Document], object] | None = None) -> Any:
        """Run a job. Without `watch`, show the job's progress as text on a terminal."""
        with show_progress(kind) as progress_bar:
            job = self._start_job(kind, body)
            result = self.wait(job, watch or watch_progress(progress_bar.show_text))
        return reports.name_graph(result, self._graph.uri)

    def _start_job(self, kind: str, body: Mapping[str, Any]) -> Document:
        try:
            return start_job(self._exchange, kind, body)
        except KeyboardInterrupt as error:
            command = f"omnigraph job list {self._graph.uri}"
            error.add_note(f"the server may have started the job; run `{command}` to see it")
            raise

    def jobs(self) -> list[Document]:
        """Return the jobs that the server has a record of, newest first."""
        return self._exchange.get("jobs")["jobs"]  # type: ignore[no-any-return]

    def job(self, job_id: str) -> Document:
        """Return the state of a job."""
        return self._exchange.get("jobs", job_id)  # type: ignore[no-any-return]

    def wait(self, job: Document, watch: Callable[[Document], object]) -> Any:
        """Wait for a job. If the command is interrupted, its message says that the job continues."""
        try:
            return wait_for_job(self._exchange, job, watch)
        except KeyboardInterrupt as error:
            command = f"omnigraph job wait {self._graph.uri} {job['job_id']}"
            error.add_note(f"the job continues on the server; run `{command}` to wait for its result")
            raise


class ServedOperations:
    """Long operations that are running or were interrupted."""

    def __init__(self, graph: "CommandGraph") -> None:
        self._graph, self._exchange = graph, graph.exchange

    def recoveries(self) -> "list[RecoveryRecord]":
        """Return the outcomes of recovered operations."""
        return list(map(reports.read_recovery, self._list()["recoveries"]))

    def pending(self) -> "list[PendingIntent]":
        """Return the running operations."""
        return list(map(reports.read_pending, self._list()["pending"]))

    def set_aside(self) -> "list[SetAsideIntent]":
        """Return the operations that recovery could not resolve."""
        return list(map(reports.read_set_aside, self._list()["set_aside"]))

    def retry(self, operation_id: str) -> "RecoveryRecord | None":
        """Retry an operation that was set aside."""
        outcome = self._exchange.call("POST", ("operations", operation_id, "retry"), {})["outcome"]
        return None if outcome is None else reports.read_recovery(outcome)

    def drop(self, operation_id: str) -> "RecoveryRecord":
        """Drop an operation that was set aside."""
        return reports.read_recovery(self._exchange.call("POST", ("operations", operation_id, "drop"), {})["outcome"])

    def _list(self) -> Any:
        return reports.name_graph(self._exchange.get("operations"), self._graph.uri)
