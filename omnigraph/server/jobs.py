"""Maintenance jobs: operations that continue after their request, with a state that every worker can read.

A job runs in a thread of the worker that accepted it. Its state is a small file in a folder that all workers share. The
supervisor removes the folder when the server stops. A job whose worker died is reported as failed.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.errors import NotFound, OmnigraphError
from omnigraph.values import clock_and_ids
from omnigraph.values.clock_and_ids import is_ulid

from .models.entities import JobOutput
from .wire.errors import encode_error

ReportProgress = Callable[[str], None]
JobWork = Callable[[ReportProgress], Any]
_MAX_REMEMBERED = 200


class JobRecord(msgspec.Struct, kw_only=True):
    """The stored state of a job, with the process that runs it."""

    graph_id: str
    process_id: int
    job: JobOutput


_decoder = msgspec.json.Decoder(JobRecord)


class JobStore:
    """The jobs of all workers of a server."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def start(self, graph_id: str, kind: str, actor: str | None, work: JobWork, roots: tuple[str, ...]) -> JobOutput:
        """Start a job in a thread and return its initial state."""
        self._directory.mkdir(parents=True, exist_ok=True)
        job = JobOutput(
            job_id=clock_and_ids.new_ulid(),
            kind=kind,
            state="running",
            actor_id=actor,
            started_at=clock_and_ids.now_micros(),
        )
        record = JobRecord(graph_id=graph_id, process_id=os.getpid(), job=job)
        self._write_record(record)
        first_state = msgspec.structs.replace(job)
        threading.Thread(
            target=self._run_job, args=(record, work, roots), name=f"omnigraph-job-{kind}", daemon=True
        ).start()
        self._forget_oldest()
        return first_state

    def find(self, graph_id: str, job_id: str) -> JobOutput:
        """Return a job of a graph; raise `NotFound` if the server has no record of it."""
        path = self._directory / f"{job_id}.json"
        record = self._read_record(path) if is_ulid(job_id) else None
        if record is None or record.graph_id != graph_id:
            raise NotFound(what="job")
        return record.job

    def list(self, graph_id: str) -> list[JobOutput]:
        """Return the jobs of a graph, newest first."""
        paths = sorted(self._directory.glob("*.json"), reverse=True)
        records = filter(None, map(self._read_record, paths))
        return [record.job for record in records if record.graph_id == graph_id]

    def _run_job(self, record: JobRecord, work: JobWork, roots: tuple[str, ...]) -> None:
        job = record.job

        def report(text: str) -> None:
            job.progress = text
            self._write_record(record)

        try:
            job.result, job.state = work(report), "succeeded"
        except Exception as error:
            job.state = "failed"
            job.error = msgspec.json.decode(encode_error(error, job.job_id, roots=roots).body)
            if not isinstance(error, OmnigraphError):
                from .log_output import LOGGER

                LOGGER.error("job failed", exc_info=error, extra={"facts": {"job": job.job_id}})
        job.finished_at = clock_and_ids.now_micros()
        self._write_record(record)

    def _write_record(self, record: JobRecord) -> None:
        path = self._directory / f"{record.job.job_id}.json"
        temporary = path.with_suffix(f".{threading.get_ident()}")
        temporary.write_bytes(msgspec.json.encode(record, enc_hook=str))
        temporary.replace(path)

    def _read_record(self, path: Path) -> JobRecord | None:
        try:
            record = _decoder.decode(path.read_bytes())
        except (OSError, msgspec.DecodeError):
            return None
        if record.job.state == "running" and not _is_running(record.process_id):
            record.job.state = "failed"
            record.job.error = {"error": "the worker running this job exited", "effect": "unknown"}
        return record

    def _forget_oldest(self) -> None:
        for path in sorted(self._directory.glob("*.json"))[:-_MAX_REMEMBERED]:
            path.unlink(missing_ok=True)


def _is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def hide_locations(value: Any, roots: tuple[str, ...], shown: str) -> Any:
    """Return a report in which the storage location of a graph is replaced by the location that clients see."""
    if isinstance(value, dict):
        return {name: hide_locations(member, roots, shown) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [hide_locations(item, roots, shown) for item in value]
    if isinstance(value, str):
        for root in roots:
            value = value.replace(root, shown)
    return value
