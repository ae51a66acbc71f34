"""`graph.maintenance` on a server. Each method runs a job on the server and waits until the job ends.

A job continues if the client disconnects. Its result is a report with the members that the command line prints as JSON.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn

from omnigraph.errors import Cancelled

from .facet import RemoteFacet
from .failures import build_error
from .unsupported import reject, reject_if
from .writes import write_branch

_FIRST_POLL_SECONDS, _MAX_POLL_SECONDS = 0.05, 2.0


class RemoteReport(Mapping[str, Any]):
    """The report of a maintenance job, as a mapping whose members are also attributes.

    >>> report = RemoteReport({"graph": "default", "findings": []})
    >>> report["graph"], report.findings
    ('default', [])
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def __getitem__(self, name: str) -> Any:
        return self._document[name]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._document:
            return self._document[name]
        raise AttributeError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def __repr__(self) -> str:
        return f"<RemoteReport: {', '.join(self._document)}>"

    def to_json(self) -> Mapping[str, Any]:
        """Return the report as received."""
        return self._document


class RemoteMaintenance(RemoteFacet):
    """Compaction, cleanup and checks of a graph on a server."""

    __slots__ = ()

    def optimize(
        self,
        *,
        types: Collection[str] | None = None,
        engine: Any = "auto",
        spark: Any = None,
        branch: str | None = None,
        actor: str | None = None,
    ) -> Any:
        """Compact tables and build indexes."""
        reject_if(engine == "spark" or spark is not None, "engine='spark'")
        self._handle.reject_actor(actor)
        body = {"branch": write_branch(self._handle, branch), "types": None if types is None else list(types)}
        return self._run_job("optimize", body)

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
        progress: Any = None,
    ) -> Any:
        """Remove history that is no longer needed. Without `confirm`, only report what would be removed."""
        reject_if(engine == "spark" or spark is not None, "engine='spark'")
        body = {
            "keep": keep,
            "older_than": _write_duration(older_than),
            "grace": _write_duration(grace),
            "confirm": confirm,
            "erase": erase,
            "purge_dropped": purge_dropped,
        }
        return self._run_job("cleanup", body, progress)

    def check(
        self,
        *,
        quick: bool = False,
        sample: float | None = None,
        engine: Any = "auto",
        spark: Any = None,
        progress: Callable[[str], object] | None = None,
    ) -> Any:
        """Verify the integrity of the graph."""
        reject_if(engine == "spark" or spark is not None, "engine='spark'")
        return self._run_job("check", {"quick": quick, "sample": sample}, progress)

    def status(self) -> Any:
        """Return the size and status of the graph."""
        return RemoteReport(self._handle.exchange.get("status", branch=self._handle.branch_name)["status"])

    def _run_job(self, kind: str, body: Mapping[str, Any], progress: Any = None) -> RemoteReport:
        """Start a job, poll its state at growing intervals, and return its result."""
        self._handle.require_open()
        exchange, pause, shown = self._handle.exchange, _FIRST_POLL_SECONDS, None
        job = exchange.post("maintenance", kind, body=body)
        while job["state"] == "running":
            time.sleep(pause)
            pause = min(pause * 2, _MAX_POLL_SECONDS)
            job = exchange.get("jobs", job["job_id"])
            if progress is not None and job.get("progress") not in (None, shown):
                shown = job["progress"]
                progress(shown)
        if job["state"] == "failed":
            raise build_error(job["error"])
        if job["state"] == "cancelled":
            raise Cancelled(f"the job {job['job_id']} was cancelled")
        return RemoteReport(job["result"])

    @property
    def operations(self) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("maintenance.operations")

    def ensure_indices(self, **options: Any) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("maintenance.ensure_indices")

    def pending_indices(self) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("maintenance.pending_indices")

    def hold(self) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("maintenance.hold")

    def check_absent(self, type_name: str, entity_id: str, **options: Any) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("maintenance.check_absent")

    def repair(self, **options: Any) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("maintenance.repair")

    def copy_to(self, uri: Any, **options: Any) -> NoReturn:
        """Raise `NotSupportedRemotely`."""
        reject("maintenance.copy_to")


def _write_duration(duration: Any) -> Any:
    return duration.total_seconds() if hasattr(duration, "total_seconds") else duration
