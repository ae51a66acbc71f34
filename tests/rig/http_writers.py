"""Clients that write through a server until they are stopped, and what became of each write.

A write is repeated with its idempotency key until the server acknowledges it, so that every write is settled in the
end. This module starts no server and injects no faults.
"""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import omnigraph
from tests.rig.http_server import HttpServer
from tests.rig.timeouts import PATIENCE

# Without a key property, a write that is applied twice leaves two rows.
SCHEMA = "node Mark { text: String }"
_ADD = "query add($t: String) { insert Mark { text: $t } }"
_MARKS = "match { $m: Mark } return { $m.text }"
_RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_PAUSE_SECONDS = 0.05


@dataclass(slots=True)
class WriteLog:
    """The outcomes of all writes of all clients."""

    commit_ids: dict[str, str] = field(default_factory=dict)
    longest_seconds: float = 0.0
    most_faults: int = 0
    repeated: int = 0
    replayed: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def figures(self) -> str:
        """One line for a report."""
        return (
            f"{len(self.commit_ids)} writes acknowledged, {self.repeated} repeated, {self.replayed} of them replayed;"
            f" longest wait {self.longest_seconds:.1f} s and {self.most_faults} faults; {dict(self.failures)}"
        )


@dataclass(slots=True)
class Writers:
    """Writing clients, each a thread with its own connection."""

    servers: Sequence[HttpServer]
    count: int
    log: WriteLog = field(default_factory=WriteLog)
    fault_count: Callable[[], int] = lambda: 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> "Writers":
        for number in range(self.count):
            server = self.servers[number % len(self.servers)]
            thread = threading.Thread(target=_Writer(self, server, f"w{number}").run)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop after the running writes are settled."""
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE)
            assert not thread.is_alive(), "a write is blocked"

    @property
    def is_stopped(self) -> bool:
        return self._stop.is_set()


class _Writer:
    """A client that writes again and again on one connection."""

    def __init__(self, writers: Writers, server: HttpServer, name: str) -> None:
        self._writers, self._server, self._name = writers, server, name
        self._connection = server.connect()

    def run(self) -> None:
        try:
            number = 0
            while not self._writers.is_stopped:
                self._settle(f"{self._name}-{number}")
                number += 1
        except Exception as error:
            self._writers.log.unexpected.append(repr(error))
            raise
        finally:
            self._connection.close()

    def _settle(self, text: str) -> None:
        """Repeat a write until it is acknowledged, and record how long that took."""
        log, started, faults_before = self._writers.log, time.monotonic(), self._writers.fault_count()
        attempts, document = 1, self._attempt(text)
        while document is None:
            time.sleep(_PAUSE_SECONDS)
            attempts, document = attempts + 1, self._attempt(text)
        with log.lock:
            log.commit_ids[text] = document["commit"]["graph_commit_id"]
            log.longest_seconds = max(log.longest_seconds, time.monotonic() - started)
            log.most_faults = max(log.most_faults, self._writers.fault_count() - faults_before)
            log.repeated += attempts > 1
            log.replayed += document["replayed"]

    def _attempt(self, text: str) -> dict[str, Any] | None:
        """Send a write once; return the answer, or None if the outcome is unknown or the server was busy."""
        body = json.dumps({"query": _ADD, "params": {"t": text}}).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"key-{text}"}
        try:
            self._connection.request("POST", "/graphs/default/mutate", body, headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._count_failure(type(error).__name__)
            return None
        if response.status in _RETRY_STATUSES:
            self._count_failure(str(response.status))
            return None
        assert response.status == 200, (response.status, answer)
        return {**json.loads(answer), "replayed": response.headers["Idempotent-Replay"] == "true"}

    def _count_failure(self, name: str) -> None:
        with self._writers.log.lock:
            self._writers.log.failures[name] += 1


def check_writes(uri: str, log: WriteLog) -> None:
    """Assert that the graph is sound, and holds each settled write exactly once and nothing else."""
    assert log.unexpected == []
    assert log.commit_ids
    graph = omnigraph.open(uri)
    texts = Counter(row["m.text"] for row in graph.query(_MARKS))
    assert texts == Counter(dict.fromkeys(log.commit_ids, 1))
    commit_ids = Counter(commit.id for commit in graph.log())
    assert all(commit_ids[commit_id] == 1 for commit_id in log.commit_ids.values())
    assert len(set(log.commit_ids.values())) == len(log.commit_ids)
    assert not graph.maintenance.check().findings
