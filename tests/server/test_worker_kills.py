"""Workers that are killed while clients write: no acknowledged write is lost, doubled or blocked."""

import http.client
import math
import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph
from tests.rig.depth import repeats
from tests.rig.http_server import HttpServer, serving, wait_until, workers_of
from tests.rig.http_writers import SCHEMA, WriteLog, Writers, check_writes
from tests.rig.plugin import S3

CLIENTS = 8
KILLS = 50  # with the wait for an answer after each, about a minute on an idle machine
LONG_RUN_KILLS = repeats(60)  # OMNIGRAPH_TEST_DEPTH=5 runs 300 kills, which takes at least five minutes
# A write outlives a few kills at most: each worker that dies is replaced, and the others serve.
MOST_KILLS_DURING_A_WRITE = 30
# No write may be blocked for longer. Seconds are judged only in a run of full depth, which has the machine to itself.
MOST_BLOCKED_SECONDS = 10.0 if LONG_RUN_KILLS >= 300 else math.inf


class Killer:
    """Kills a random worker once per second.

    If no worker answers, it waits for one: on a slow machine, starting workers could otherwise die faster than they
    become ready, which would test the machine and not the server.
    """

    def __init__(self, server: HttpServer) -> None:
        self._server, self._random = server, random.Random(7)
        self.kills = 0

    def run(self, kills: int) -> None:
        while self.kills < kills:
            threading.Event().wait(1.0)
            wait_until(self._is_answering)
            workers = sorted(workers_of(self._server))
            if workers:
                os.kill(self._random.choice(workers), signal.SIGKILL)
                self.kills += 1

    def _is_answering(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            return self._server.get("/readyz").status == 200
        return False


def run_kills(folder: Path, uri: str, *, kills: int, workers: int) -> WriteLog:
    """Let clients write while workers are killed, and check the graph after the server has ended."""
    omnigraph.init(uri, SCHEMA, durability="os")
    with serving(folder, uri, "--unauthenticated", "--workers", str(workers)) as server:
        killer = Killer(server)
        with Writers([server], CLIENTS, fault_count=lambda: killer.kills) as writers:
            killer.run(kills)
    print(f"{kills} kills of {workers} workers:", writers.log.figures())
    check_writes(uri, writers.log)
    assert writers.log.most_faults <= MOST_KILLS_DURING_A_WRITE
    return writers.log


@pytest.mark.timeout(900)
def test_writes_survive_killed_workers(tmp_path: Path) -> None:
    """About one minute of kills."""
    log = run_kills(tmp_path, str(tmp_path / "graph"), kills=KILLS, workers=2)
    assert log.repeated, "no kill hit a write"


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_writes_survive_many_killed_workers_on_disk(tmp_path: Path) -> None:
    log = run_kills(tmp_path, str(tmp_path / "graph"), kills=LONG_RUN_KILLS, workers=4)
    assert log.longest_seconds <= MOST_BLOCKED_SECONDS, log.figures()


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_writes_survive_many_killed_workers_on_s3(tmp_path: Path, s3: S3) -> None:
    log = run_kills(tmp_path, s3.url, kills=LONG_RUN_KILLS, workers=4)
    assert log.longest_seconds <= MOST_BLOCKED_SECONDS, log.figures()
