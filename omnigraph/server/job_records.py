"""The stored states of maintenance jobs: one small file per job, in a folder that all processes of a server share.

Workers write the states of their jobs. If a worker dies, the supervisor marks its jobs as failed. This module must load
quickly, because the supervisor also imports it.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from omnigraph.errors import InternalError, OmnigraphError, Shutdown
from omnigraph.values import clock_and_ids

from .models.entities import JobOutput

_RETRY_HINT = "start the job again; whatever it has already published remains in the graph"


class JobRecord(msgspec.Struct, kw_only=True):
    """The stored state of a job, and the id of the process that runs it."""

    graph_id: str
    process_id: int
    job: JobOutput


_decoder = msgspec.json.Decoder(JobRecord)


def jobs_folder(runtime_directory: str) -> Path:
    """Return the folder of a server's job records."""
    return Path(runtime_directory, "jobs")


def write_record(folder: Path, record: JobRecord) -> None:
    """Store the state of a job, so that readers see either the previous or the new state."""
    path = folder / f"{record.job.job_id}.json"
    temporary = path.with_suffix(f".{threading.get_ident()}")
    temporary.write_bytes(msgspec.json.encode(record, enc_hook=str))
    temporary.replace(path)


def read_record(folder: Path, job_id: str) -> JobRecord | None:
    """Return the state of a job, or None if there is no record of it."""
    try:
        return _decoder.decode((folder / f"{job_id}.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def read_records(folder: Path) -> Iterator[JobRecord]:
    """Yield the states of all jobs, newest first."""
    for path in sorted(folder.glob("*.json"), reverse=True):
        record = read_record(folder, path.stem)
        if record is not None:
            yield record


def fail_interrupted_job(folder: Path, record: JobRecord) -> None:
    """Report a job as failed because it did not finish before its worker was stopped."""
    reason = "the job did not finish before its worker was stopped"
    _fail_job(folder, record, Shutdown(reason, effect="unknown", hint=_RETRY_HINT))


def fail_jobs_of_dead_worker(folder: Path, process_id: int) -> None:
    """Mark the running jobs of a dead worker as failed."""
    for record in read_records(folder):
        if record.process_id == process_id and record.job.state == "running":
            reason = "the worker that ran the job exited unexpectedly"
            _fail_job(folder, record, InternalError(reason, effect="unknown", hint=_RETRY_HINT))


def _fail_job(folder: Path, record: JobRecord, error: OmnigraphError) -> None:
    record.job.state = "failed"
    record.job.error = error.to_json(public=True)
    record.job.finished_at = clock_and_ids.now_micros()
    write_record(folder, record)
