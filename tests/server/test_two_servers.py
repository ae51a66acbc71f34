"""Two servers with two workers each on one graph in S3: reads after writes, conditional writes, and a paused server."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

import omnigraph
from tests.rig.depth import repeats
from tests.rig.http_server import HttpServer, Reply, serving, workers_of
from tests.rig.http_writers import SCHEMA, Writers, check_writes
from tests.rig.plugin import S3

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

GRAPH = "/graphs/default"
ADD = "query add($t: String) { insert Mark { text: $t } }"
FIND = "query find($t: String) { match { $m: Mark  $m.text = $t } return { $m.text } }"
PAUSE_SECONDS = min(repeats(6), 60)  # OMNIGRAPH_TEST_DEPTH=10 pauses for a minute
WRITES, ROUNDS, CONTENDERS = 40, 10, 8


@pytest.fixture
def servers(s3: S3, tmp_path: Path) -> Iterator[Sequence[HttpServer]]:
    """Two servers of the same graph."""
    omnigraph.init(s3.url, SCHEMA)
    with ExitStack() as stack:
        arguments = (s3.url, "--unauthenticated", "--workers", "2")
        yield [stack.enter_context(serving(tmp_path / name, *arguments)) for name in ("first", "second")]


def test_an_acknowledged_write_is_read_by_every_worker(servers: Sequence[HttpServer]) -> None:
    stale_reads = 0
    for number in range(WRITES):
        writer, text = servers[number % 2], f"m{number}"
        assert writer.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"t": text}}).status == 200
        # Each request has its own connection, so both workers of a server answer some of them.
        for server in (*servers, *servers):
            stale_reads += server.rows(FIND, params={"t": text}) != [{"m.text": text}]
    assert stale_reads == 0


def test_exactly_one_of_many_conditional_writers_wins(servers: Sequence[HttpServer], s3: S3) -> None:
    for round_number in range(ROUNDS):
        commit = servers[round_number % 2].head()
        statuses = [reply.status for reply in write_at_once(servers, commit, round_number)]
        assert sorted(statuses) == [200] + [412] * (CONTENDERS - 1)
    assert len(omnigraph.open(s3.url).query("match { $m: Mark } return { $m.text }")) == ROUNDS


def write_at_once(servers: Sequence[HttpServer], commit: str, round_number: int) -> list[Reply]:
    """Send one conditional write per contender, all on the same commit and at the same time."""
    barrier, replies = threading.Barrier(CONTENDERS), list[Reply]()

    def write(number: int) -> None:
        body = {"query": ADD, "params": {"t": f"r{round_number}-{number}"}}
        barrier.wait()
        headers = {"Omnigraph-If-Graph-Commit": commit}
        replies.append(servers[number % 2].post(f"{GRAPH}/mutate/if-graph-commit", body, headers=headers))

    run_threads([lambda number=number: write(number) for number in range(CONTENDERS)])  # type: ignore[misc]
    return replies


def run_threads(calls: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_paused_server_loses_and_doubles_nothing(servers: Sequence[HttpServer], s3: S3) -> None:
    paused = servers[0]
    with Writers(servers, 8) as writers:
        wait_for_writes(writers, 20)
        processes = [paused.process.pid, *workers_of(paused)]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        count = len(writers.log.commit_ids)
        threading.Event().wait(PAUSE_SECONDS)
        wait_for_writes(writers, count + 20)  # the other server writes on
        for process in processes:
            os.kill(process, signal.SIGCONT)
        wait_for_writes(writers, len(writers.log.commit_ids) + 20)
    print(f"paused for {PAUSE_SECONDS} s:", writers.log.figures())
    check_writes(s3.url, writers.log)


def wait_for_writes(writers: Writers, count: int) -> None:
    """Wait until this many writes are acknowledged."""
    while len(writers.log.commit_ids) < count and not writers.log.unexpected:
        threading.Event().wait(0.05)
