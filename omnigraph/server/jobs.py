"""Maintenance jobs: operations that continue after their request ends, with a state that every worker can read.

A job runs in a thread of the worker that accepted it. A worker that is stopped or replaced finishes its jobs first. The
supervisor removes the records when the server stops.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.errors import NotFound, OmnigraphError, Shutdown
from omnigraph.values import clock_and_ids
from omnigraph.values.clock_and_ids import is_ulid

from .job_records import JobRecord, fail_interrupted_job, read_record, read_records, write_record
from .log_output import LOGGER
from .models.entities import JobOutput
from .wire.errors import encode_error

ReportProgress = Callable[[str], None]
JobWork = Callable[[ReportProgress], Any]
_MAX_REMEMBERED = 200


class JobStore:
    """The jobs of all workers of a server, and the threads of this worker's jobs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, JobRecord] = {}
        self._changes = threading.Condition()
        self._is_closed = False

    def start(self, graph_id: str, kind: str, actor: str | None, work: JobWork, roots: tuple[str, ...]) -> JobOutput:
        """Start a job in a thread and return its initial state; raise `Shutdown` if the worker is stopping."""
        self._folder.mkdir(parents=True, exist_ok=True)
        job = JobOutput(
            job_id=clock_and_ids.new_ulid(),
            kind=kind,
            state="running",
            actor_id=actor,
            started_at=clock_and_ids.now_micros(),
        )
        record = JobRecord(graph_id=graph_id, process_id=os.getpid(), job=job)
        first_state = msgspec.structs.replace(job)
        with self._changes:
            if self._is_closed:
                raise Shutdown()
            self._running[job.job_id] = record
            write_record(self._folder, record)
        threading.Thread(
            target=self._run_job, args=(record, work, roots), name=f"omnigraph-job-{kind}", daemon=True
        ).start()
        self._forget_oldest()
        return first_state

    def find(self, graph_id: str, job_id: str) -> JobOutput:
        """Return a job of a graph; raise `NotFound` if the server has no record of it."""
        record = read_record(self._folder, job_id) if is_ulid(job_id) else None
        if record is None or record.graph_id != graph_id:
            hint = "only the server that started the job has a record of the job, and only until that server stops"
            raise NotFound(what="job", hint=hint)
        return record.job

    def list(self, graph_id: str) -> list[JobOutput]:
        """Return the jobs of a graph, newest first."""
        return [record.job for record in read_records(self._folder) if record.graph_id == graph_id]

    def close(self, deadline: float) -> None:
        """Start no further jobs, wait for the running jobs until a deadline, and report unfinished jobs as failed.

        The deadline is a time on the monotonic clock. Unfinished jobs must not continue afterward, so the worker must
        exit without waiting for their threads.
        """
        with self._changes:
            self._is_closed = True
            while self._running and (seconds := deadline - clock_and_ids.monotonic()) > 0:
                self._changes.wait(seconds)
            for record in self._running.values():
                fail_interrupted_job(self._folder, record)
                _log_end(record)
            self._running.clear()

    def _run_job(self, record: JobRecord, work: JobWork, roots: tuple[str, ...]) -> None:
        def report(text: str) -> None:
            self._update(record, progress=text)

        try:
            self._update(record, result=work(report), state="succeeded")
        except Exception as error:
            if not isinstance(error, OmnigraphError):
                LOGGER.error("job failed", exc_info=error, extra={"facts": {"job": record.job.job_id}})
            description = msgspec.json.decode(encode_error(error, record.job.job_id, roots=roots).body)
            self._update(record, error=description, state="failed")

    def _update(self, record: JobRecord, **members: Any) -> None:
        """Update members of a job's record, unless the worker has already reported the job as interrupted."""
        job = record.job
        with self._changes:
            if job.job_id not in self._running:
                return
            for name, value in members.items():
                setattr(job, name, value)
            if job.state != "running":
                job.finished_at = clock_and_ids.now_micros()
                del self._running[job.job_id]
                _log_end(record)
            write_record(self._folder, record)
            self._changes.notify_all()

    def _forget_oldest(self) -> None:
        for path in sorted(self._folder.glob("*.json"))[:-_MAX_REMEMBERED]:
            path.unlink(missing_ok=True)


def _log_end(record: JobRecord) -> None:
    job = record.job
    facts = {"job": job.job_id, "kind": job.kind, "state": job.state, "graph": record.graph_id, "actor": job.actor_id}
    LOGGER.info("job", extra={"facts": facts})
