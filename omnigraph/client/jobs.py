"""Run a maintenance job on a server and wait for its result. A job continues if the client stops waiting.

Both the Python client and the command line use this module, so it imports neither Arrow nor the schema language.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.errors import Cancelled

from .exchange import Exchange
from .failures import build_error

_FIRST_POLL_SECONDS, _MAX_POLL_SECONDS = 0.05, 2.0
Document = Mapping[str, Any]
Watch = Callable[[Document], object]


def start_job(exchange: Exchange, kind: str, body: Document) -> Document:
    """Start a job and return its initial state."""
    job: Document = exchange.post("maintenance", kind, body=body)
    return job


def wait_for_job(exchange: Exchange, job: Document, watch: Watch = lambda _: None) -> Any:
    """Request the state of a job at growing intervals until it ends, and return its result.

    `watch` is called with each state.
    """
    pause = _FIRST_POLL_SECONDS
    while job["state"] == "running":
        watch(job)
        time.sleep(pause)
        pause = min(pause * 2, _MAX_POLL_SECONDS)
        job = exchange.get("jobs", job["job_id"])
    if job["state"] == "failed":
        raise build_error(job["error"])
    if job["state"] == "cancelled":
        raise Cancelled(f"the job {job['job_id']} was cancelled")
    return job["result"]


def watch_progress(report: Callable[[str], object]) -> Watch:
    """Return a function that reports the progress of a job each time it changes."""
    shown: str | None = None

    def watch(job: Document) -> None:
        nonlocal shown
        progress = job.get("progress")
        if progress is not None and progress != shown:
            shown = progress
            report(progress)

    return watch


def read_counts(report: Callable[[int, int], object]) -> Callable[[str], object]:
    """Return a function that parses a progress text such as `3 10`, and passes both numbers to `report`."""

    def report_counts(text: str) -> None:
        numbers = text.split()
        if len(numbers) == 2 and all(map(str.isdecimal, numbers)):
            report(int(numbers[0]), int(numbers[1]))

    return report_counts
