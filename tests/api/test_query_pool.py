"""A query pool answers like the graph itself, survives the death of a process, and leaves no process behind."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import AsyncGraph, errors
from omnigraph.api.query_pool import QueryPool

SCHEMA = "node Person { name: String @key  age: I32?  born: Date? }  edge Knows: Person -> Person"
OLDER = "query older($than: I32) { match { $p: Person  $p.age > $than } return { $p.name } order { $p.name } }"
COUNT = "match { $p: Person } return { count($p) as n }"
SLOW = 'match { $a: Person { name: "p0" }  $p = walk $a <knows>{1,60} $b } return { count($p) as n }'


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[omnigraph.Graph]:
    graph = omnigraph.init(tmp_path_factory.mktemp("pool") / "graph", SCHEMA, durability="os")
    graph.insert("Person", *({"name": f"p{number}", "age": number} for number in range(8)))
    graph.connect_nodes("Knows", [("p0", "p1"), ("p1", "p2"), ("p2", "p0")])
    yield graph
    graph.close()


@pytest.fixture(scope="module")
def pool(graph: omnigraph.Graph) -> Iterator[QueryPool]:
    with graph.pool(processes=2) as pool:
        yield pool


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_pool_answers_like_the_graph(graph: omnigraph.Graph, pool: QueryPool, tmp_path: Path) -> None:
    for options in ({"than": 3}, {"params": {"than": 5}}, {"than": 3, "at": "main~1"}, {"than": 3, "branch": "main"}):
        own: Any = graph.query(OLDER, **options)
        pooled = pool.query(OLDER, **options)
        assert (pooled.table, pooled.commit_id, pooled.query_name) == (own.table, own.commit_id, own.query_name)
        assert (pooled.params, pooled.target, pooled.warnings) == (own.params, own.target, own.warnings)
    (tmp_path / "older.gq").write_text(OLDER)
    assert pool.query(tmp_path / "older.gq", name="older", than=6).scalars() == ["p7"]


def test_many_threads_share_a_pool_and_map_keeps_the_order(pool: QueryPool) -> None:
    expected = [7 - than for than in range(8)]
    assert [len(result) for result in pool.map(OLDER, ({"than": than} for than in range(8)))] == expected
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(lambda than: len(pool.query(OLDER, than=than)), range(8))) == expected


def test_errors_are_those_of_the_graph(graph: omnigraph.Graph, pool: QueryPool) -> None:
    for text, options in (
        ("match {", {}),
        (OLDER, {"than": "x"}),
        (COUNT, {"branch": "none"}),
        (SLOW, {"timeout": 0.0}),
    ):
        with pytest.raises(errors.OmnigraphError) as own:
            graph.query(text, **options)
        with pytest.raises(type(own.value)) as pooled:
            pool.query(text, **options)
        assert pooled.value.code == own.value.code
    with pytest.raises(Exception, match="pickle"):
        pool.query(OLDER, than=threading.Lock())
    assert pool.query(COUNT).scalar() == 8  # every process still answers the right question
    assert pool.query(COUNT).scalar() == 8


def test_large_results_are_whole(tmp_path: Path) -> None:
    names = [f"{number:06}" + "x" * 60 for number in range(12_000)]
    with omnigraph.init(tmp_path / "graph", SCHEMA, durability="os") as graph:
        graph.insert("Person", *({"name": name} for name in names))
        with graph.pool(1) as pool:
            result = pool.query("match { $p: Person } return { $p.name as name } order { name }")
    assert result.table.nbytes > 800_000
    assert result.scalars() == names  # the rows outlive the process


def test_a_pool_follows_the_branch_or_stays_at_its_commit(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA, durability="os") as graph:
        graph.insert("Person", {"name": "first"})
        with graph.pool(1) as pool, graph.at("HEAD").pool(1) as pinned:
            for number in range(3):
                assert pool.query(COUNT).scalar() == number + 1
                graph.insert("Person", {"name": f"p{number}"})
            assert (pool.query(COUNT).scalar(), pinned.query(COUNT).scalar()) == (4, 1)
            assert pool.query(COUNT, at="HEAD~1").scalar() == 3


def test_a_process_that_dies_is_reported_and_replaced(graph: omnigraph.Graph) -> None:
    with graph.pool(1) as pool:
        assert pool.query(COUNT).scalar() == 8
        before = pool.process_ids
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(pool.query, SLOW)
            while not pool._busy:
                time.sleep(0.01)
            os.kill(next(iter(pool._busy)).process.pid, signal.SIGKILL)
            with pytest.raises(errors.QueryProcessDied, match="-9") as caught:
                answer.result()
        assert caught.value.effect == "none"
        assert [pool.query(COUNT).scalar() for _ in range(2)] == [8] * 2
        assert (len(pool.process_ids), pool.process_ids != before) == (1, True)


def test_a_process_that_dies_while_idle_is_replaced_without_an_error(graph: omnigraph.Graph) -> None:
    with graph.pool(1) as pool:
        assert pool.query(COUNT).scalar() == 8
        (process_id,) = pool.process_ids
        os.kill(process_id, signal.SIGKILL)
        os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOWAIT)
        assert pool.query(COUNT).scalar() == 8
        assert pool.process_ids != (process_id,)


def outcome_in_thread(pool: QueryPool) -> Any:
    """Return the result of a query or its error; a query that waits forever fails the test when the pool is closed."""
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(pool.query, COUNT)
        try:
            return answer.exception(timeout=60) or answer.result().scalar()
        finally:
            if not answer.done():
                pool.close()


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_a_process_that_cannot_be_started_leaves_its_place_in_the_pool(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str
) -> None:
    with graph.pool(1) as pool:
        assert pool.query(COUNT).scalar() == 8
        (process_id,) = pool.process_ids
        monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
        if state == "busy":
            with ThreadPoolExecutor(1) as threads:
                answer = threads.submit(pool.query, SLOW)
                while not pool._busy:
                    time.sleep(0.01)
                os.kill(process_id, signal.SIGKILL)
                assert "-9" in str(answer.exception())
        else:
            os.kill(process_id, signal.SIGKILL)
            os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOWAIT)
        for _ in range(2):
            error = outcome_in_thread(pool)
            assert isinstance(error, errors.QueryProcessDied)
            assert "cannot be started" in str(error.hint)
        monkeypatch.undo()
        assert outcome_in_thread(pool) == 8


def test_a_pool_of_a_removed_graph_keeps_reporting_it(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA, durability="os")
    with graph.pool(2) as pool:
        shutil.rmtree(tmp_path / "graph")
        for _ in range(5):
            assert isinstance(outcome_in_thread(pool), errors.OmnigraphError)
        assert len(pool.process_ids) == 2


def test_closing_ends_every_process_even_during_a_query(graph: omnigraph.Graph) -> None:
    pool = graph.pool(2)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(pool.query, SLOW)
        while not pool._busy:
            time.sleep(0.01)
        process_ids = pool.process_ids
        pool.close()
        with pytest.raises(errors.QueryProcessDied):
            answer.result()
    pool.close()
    assert not any(map(is_running, process_ids))
    with pytest.raises(errors.UsageError, match="closed"):
        pool.query(COUNT)


def test_processes_end_with_the_program_that_started_them(graph: omnigraph.Graph) -> None:
    """A program needs no guard for its main module, and may be killed at any time."""
    code = (
        f"import omnigraph, sys; pool = omnigraph.open({graph.uri!r}, read_only=True).pool(2);"
        f"print(pool.query({COUNT!r}).scalar(), *pool.process_ids, flush=True); sys.stdin.read()"
    )
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert program.stdout is not None
    count, *process_ids = map(int, program.stdout.readline().split())
    assert (count, all(map(is_running, process_ids))) == (8, True)
    program.kill()
    program.communicate()
    deadline = time.monotonic() + 60
    while any(map(is_running, process_ids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, process_ids))


def test_a_pool_of_no_process_is_refused(graph: omnigraph.Graph) -> None:
    with pytest.raises(errors.InputError, match="0 processes"):
        graph.pool(0)


def test_asynchronous_programs_use_a_pool(graph: omnigraph.Graph) -> None:
    async def main() -> tuple[list[int], list[int]]:
        async with await AsyncGraph(graph).pool(2) as pool:
            counts = await asyncio.gather(*(pool.query(OLDER, than=than) for than in (1, 5)))
            mapped = [len(result) async for result in pool.map(OLDER, [{"than": 6}, {"than": 2}])]
            return [len(result) for result in counts], mapped

    assert asyncio.run(main()) == ([6, 2], [1, 5])
