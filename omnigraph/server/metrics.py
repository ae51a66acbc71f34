"""Prometheus metrics of all workers: latency by route and status, rejections, running requests and memory.

A request only increments counters. Whatever has to be measured, such as memory, is measured at intervals.
"""

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from omnigraph.history.activity import Activity, add_activity_listener

if TYPE_CHECKING:
    from .worker_state import WorkerState

DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_MEMORY_FILE = Path("/proc/self/statm")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class ServerMetrics:
    """The metrics of one worker. `render` returns the metrics of all workers."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        is_shared = DIRECTORY_VARIABLE in os.environ
        self.requests = Histogram(
            "omnigraph_request_seconds",
            "Duration of requests",
            ["route", "method", "status"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.rejections = Counter(
            "omnigraph_rejections", "Requests rejected by a limit", ["status"], registry=self._registry
        )
        self._feed_reads = Counter(
            "omnigraph_feed_reads",
            "Reads of branch heads and of pages of changes, for clients that follow the change feed",
            ["kind"],
            registry=self._registry,
        )
        self._in_flight = Gauge(
            "omnigraph_lane_calls",
            "Calls running or waiting in a lane",
            ["lane"],
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._graphs = Gauge(
            "omnigraph_open_graphs", "Number of graphs served", registry=self._registry, multiprocess_mode="livemax"
        )
        self._probes = Counter(
            "omnigraph_freshness_probes",
            "Requests to storage that look for newer commits on a branch",
            registry=self._registry,
        )
        self._repeated_publishes = Counter(
            "omnigraph_publish_retries",
            "Writes that were published (swap) or planned (plan) again because another write was published first",
            ["step"],
            registry=self._registry,
        )
        self._resident_bytes = Gauge(
            "omnigraph_worker_resident_bytes",
            "Resident memory of each worker, measured every two seconds",
            registry=self._registry,
            multiprocess_mode="liveall",
        )
        self._is_shared = is_shared
        # The time series by their labels, because finding one takes longer than changing it.
        self._request_series, self._lane_series = cache(self.requests.labels), cache(self._in_flight.labels)
        # Labels are looked up only once, and a counter is reported as 0 until the first event.
        self._activity_counters: dict[Activity, Counter] = {
            "freshness_probe": self._probes,
            "repeated_swap": self._repeated_publishes.labels("swap"),
            "repeated_plan": self._repeated_publishes.labels("plan"),
        }
        add_activity_listener(self._count_activity)

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        """Record one finished request."""
        self._request_series(route, method, status).observe(seconds)
        if status in (429, 503):
            self.rejections.labels(str(status)).inc()

    def observe_lane(self, lane: str, call_count: int) -> None:
        """Record a lane's new number of calls as soon as it changes, because any worker may report the metrics."""
        self._lane_series(lane).set(call_count)

    def count_feed_read(self, kind: Literal["head", "page"]) -> None:
        """Count a read of a branch head or a page of changes on behalf of clients that follow the change feed."""
        self._feed_reads.labels(kind).inc()

    def _count_activity(self, activity: Activity) -> None:
        self._activity_counters[activity].inc()

    def observe_memory(self) -> None:
        """Record the memory that this worker currently uses."""
        resident_bytes = _read_resident_bytes()
        if resident_bytes is not None:
            self._resident_bytes.set(resident_bytes)

    def render(self, state: "WorkerState") -> bytes:
        """Return the metrics of all workers in the Prometheus text format."""
        self._graphs.set(len(state.graphs))
        self.observe_memory()
        if not self._is_shared:
            return generate_latest(self._registry)
        all_workers = CollectorRegistry()
        MultiProcessCollector(all_workers)  # type: ignore[no-untyped-call]
        return generate_latest(all_workers)


def _read_resident_bytes() -> int | None:
    """Return this process's resident memory, or None if the system does not report it."""
    try:
        return int(_MEMORY_FILE.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
