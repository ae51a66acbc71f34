"""Prometheus metrics of all workers: latency by route and status, rejections, running requests and memory."""

import os
from functools import cache
from typing import TYPE_CHECKING, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

if TYPE_CHECKING:
    from .worker_state import WorkerState

DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
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
        self._is_shared = is_shared
        # The time series by their labels, because finding one takes longer than changing it.
        self._request_series, self._lane_series = cache(self.requests.labels), cache(self._in_flight.labels)

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

    def render(self, state: "WorkerState") -> bytes:
        """Return the metrics of all workers in the Prometheus text format."""
        self._graphs.set(len(state.graphs))
        if not self._is_shared:
            return generate_latest(self._registry)
        all_workers = CollectorRegistry()
        MultiProcessCollector(all_workers)  # type: ignore[no-untyped-call]
        return generate_latest(all_workers)
