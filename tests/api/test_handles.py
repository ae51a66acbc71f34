"""Handles with threads, coroutines, processes, signals and imports."""

import asyncio
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.api import threads
from omnigraph.api.async_graph import AsyncGraph
from omnigraph.errors import Cancelled, InputError, OmnigraphError, ReadOnlyError
from omnigraph.values.cancellation import STOP_EVENT
from tests.api.conftest import SCHEMA
from tests.rig.graph_hosts import open_again
from tests.rig.timeouts import PATIENCE

COUNT = "match { $p: Person } return { count($p) as n }"
HEAVY = {"lance", "pyarrow", "pandas", "polars", "pyspark", "numpy", "boto3", "obstore", "duckdb"}


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, socket\n"
        "def refuse(*_): raise AssertionError('a socket')\n"
        "socket.socket = refuse\n"
        "import omnigraph\n"
        "print(','.join(sorted(name.partition('.')[0] for name in sys.modules)))"
    )
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert set(shown.strip().split(",")) & HEAVY == set()


def test_every_public_name_can_be_imported() -> None:
    for name in omnigraph.__all__:
        assert getattr(omnigraph, name) is not None
    assert dir(omnigraph) == sorted(omnigraph.__all__)
    with pytest.raises(AttributeError):
        _ = omnigraph.nothing


@pytest.mark.parametrize("many", [(4, 3), pytest.param((16, 4), marks=pytest.mark.full)])
def test_readers_see_whole_commits_while_others_write(graph: Graph, many: tuple[int, int]) -> None:
    """Each commit moves one unit between two nodes: every read must find the same sum."""
    graph.insert("Firm", {"name": "a", "size": 100}, {"name": "b", "size": 100})
    total = "match { $f: Firm  $f.size is not null } return { sum($f.size) as n, count($f) as k }"
    stop, found = threading.Event(), list[Any]()

    def read() -> None:
        found.append(tuple(graph.query(total).one().values()))
        while not stop.is_set():
            found.append(tuple(graph.query(total).one().values()))

    def write(number: int) -> None:
        mine = open_again(graph)
        for step in range(5):
            moved = number * 10 + step
            firms = [{"name": "a", "size": 100 + moved}, {"name": "b", "size": 100 - moved}]
            mine.load({"Firm": firms}, mode="merge")

    readers = [threading.Thread(target=read) for _ in range(many[0])]
    writers = [threading.Thread(target=write, args=(n,)) for n in range(many[1])]
    for one in (*readers, *writers):
        one.start()
    for one in writers:
        one.join()
    stop.set()
    for one in readers:
        one.join()
    assert found
    assert {(float(total), count) for total, count in found} == {(200.0, 2)}


def test_many_coroutines_share_one_handle(graph: Graph) -> None:
    async def work() -> list[int]:
        async with await omnigraph.aopen(graph.uri) as there:
            done = await there.insert("Person", {"name": "eve"})
            assert done.nodes == {"Person": 1}
            found = await asyncio.gather(*(there.query(COUNT) for _ in range(100)))
            node = await there.node("Person", "eve")
            assert node is not None
            past = await there.at("HEAD~1")
            assert (await past.query(COUNT)).scalar() == 4
            return [one.scalar() for one in found]

    assert asyncio.run(work()) == [5] * 100


def test_write_cancelled_before_publishing_has_no_effect(graph: Graph) -> None:
    head = graph.head.id
    there = AsyncGraph(graph)

    async def work() -> None:
        with graph._handle.branch_state.writer_slot():  # somebody else is writing: ours must wait
            task = asyncio.create_task(there.insert("Person", {"name": "eve"}))
            while (
                not graph._handle.branch_state._waiting_writers or len(graph._handle.branch_state._waiting_writers) < 2
            ):
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert graph.refresh().head.id == head
    assert graph.node("Person", "eve") is None


def test_write_queued_in_the_thread_pool_can_be_cancelled(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(1)
    monkeypatch.setattr(threads, "_pool", pool)
    held = threading.Event()

    async def work() -> None:
        busy = asyncio.create_task(threads.run(held.wait))
        task = asyncio.create_task(AsyncGraph(graph).insert("Person", {"name": "eve"}))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.set()
        await busy

    asyncio.run(work())
    pool.shutdown()
    assert graph.node("Person", "eve") is None


def test_cancellation_raises_an_error_with_no_effect(graph: Graph) -> None:
    stop = threading.Event()
    stop.set()
    token = STOP_EVENT.set(stop)
    try:
        with pytest.raises(Cancelled) as error:
            graph.insert("Person", {"name": "eve"})
    finally:
        STOP_EVENT.reset(token)
    assert error.value.effect == "none"
    assert graph.node("Person", "eve") is None


class StopsAtCheck(threading.Event):
    """An event that is set from its nth check on."""

    def __init__(self, check_number: int) -> None:
        super().__init__()
        self.remaining_checks = check_number

    def is_set(self) -> bool:
        self.remaining_checks -= 1
        return self.remaining_checks <= 0


def test_running_query_stops_when_its_caller_is_gone(graph: Graph) -> None:
    query = "match { $a: Person  $b: Person  $c: Person } return { $a.name, $b.name, $c.name } order { $a.name }"
    graph.query(query)  # fills the caches, so that the following runs make equally many checks
    stop = StopsAtCheck(1_000_000)
    token = STOP_EVENT.set(stop)
    try:
        graph.query(query)
        check_count = 1_000_000 - stop.remaining_checks
        stop.remaining_checks = check_count  # the last check: after most of the work
        with pytest.raises(Cancelled, match="the query was cancelled") as error:
            graph.query(query)
        stop.remaining_checks = 1
        with pytest.raises(Cancelled), graph.stream(query) as stream:
            list(stream)
    finally:
        STOP_EVENT.reset(token)
    assert check_count > 1
    assert error.value.effect == "none"
    assert graph.query(COUNT).scalar() == 4


def test_acting_graph_has_its_own_actor_and_read_set(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "somebody")
    ada, nobody = graph.acting("ada"), graph.acting(None)
    graph.query(COUNT)
    ada.insert("Person", {"name": "eve"})
    commit = nobody.insert("Person", {"name": "fay"}).commit
    assert commit is not None
    assert (ada.head.actor, commit.actor) == ("ada", None)
    with pytest.raises(InputError, match="reserved"):
        graph.acting("omnigraph:recovery")
    past = graph.at("HEAD").acting("ada")
    with pytest.raises(ReadOnlyError):
        past.insert("Person", {"name": "gil"})


def test_handles_can_be_pickled(graph: Graph) -> None:
    graph.branches.create("b")
    handles = [graph, graph.checkout("b"), graph.at("HEAD~1"), graph.revisions.pin()]
    for handle in handles:
        again = pickle.loads(pickle.dumps(handle))
        assert again.branch_name == handle.branch_name
        assert again.head.id == handle.head.id
        assert again.read_only == handle.read_only
        assert again.query(COUNT).scalar() == 4


def test_a_pickled_handle_holds_no_secrets(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    root = graph._handle.store.root
    options = {"aws_secret_access_key": "s3cret", "aws_session_token": "t0ken", "timeout": "5s"}
    object.__setattr__(root, "options", options)
    object.__setattr__(root, "scheme", "s3")
    facts = graph._handle.__reduce__()
    assert b"s3cret" not in pickle.dumps(facts[1])
    assert b"t0ken" not in pickle.dumps(facts[1])
    assert facts[1][1]["storage_options"] == {"timeout": "5s"}


SPAWNED = """
import multiprocessing as mp, sys, omnigraph

def count(graph):
    return graph.query("match { $p: Person } return { count($p) as n }").scalar()

if __name__ == "__main__":
    graph = omnigraph.open(sys.argv[1], durability="os")
    assert count(graph) == 4
    with mp.get_context(sys.argv[2]).Pool(2) as pool:
        print(pool.map(count, [graph, graph.at("HEAD~1")]))
"""

FORKED = """
import os, sys, omnigraph
graph = omnigraph.open(sys.argv[1], durability="os")
assert graph.nodes("Person").count() == 4
child = os.fork()
if child == 0:
    try:
        graph.insert("Person", {"name": "eve"})
    except omnigraph.errors.UsageError as error:
        os._exit(7 if "spawn" in error.hint else 1)
    os._exit(2)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), graph.nodes("Person").count())
"""


def test_pickled_handles_work_in_other_processes(graph: Graph, tmp_path: Path) -> None:
    script = tmp_path / "spawned.py"
    script.write_text(SPAWNED)
    shown = subprocess.check_output([sys.executable, str(script), graph.uri, "spawn"], text=True, timeout=PATIENCE)
    assert shown == "[4, 4]\n"


def test_a_handle_refuses_to_work_in_a_forked_process(graph: Graph) -> None:
    """Lance ends a forked process now and then: an error is better."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, graph.uri],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.stdout == "7 4\n", ended.stderr


SLOW = """
import signal, sys, omnigraph
graph = omnigraph.open(sys.argv[1], durability="os")
text = "match { $a: Person $b: Person $c: Person $d: Person $e: Person $f: Person $g: Person" \\
    " $h: Person $i: Person $j: Person $a.age > $j.age } return { count($a) as n }"
try:
    # Inside the try: the signal may come as soon as the word is out.
    print("ready", flush=True)
    while True:
        graph.query(text)
except KeyboardInterrupt:
    print("interrupted", graph.nodes("Person").count())
except omnigraph.errors.OmnigraphError as error:
    print(type(error).__name__, graph.nodes("Person").count())
"""


def test_an_interrupt_ends_a_query_and_the_handle_stays_usable(graph: Graph) -> None:
    with subprocess.Popen([sys.executable, "-c", SLOW, graph.uri], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        started.send_signal(signal.SIGINT)
        answer = started.stdout.readline()
        assert started.wait(PATIENCE) == 0
    word, count = answer.split()
    assert word in ("interrupted", "ResourceLimitExceeded")
    assert count == "4"


def test_query_over_its_limits_raises_an_error(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_MEMORY", "1000")
    with pytest.raises(OmnigraphError) as error:
        graph.query("match { $a: Person $b: Person $c: Person } return { $a.name, $b.name }")
    assert error.value.code == "ResourceLimitExceeded"
    monkeypatch.delenv("OMNIGRAPH_QUERY_MEMORY")
    assert graph.query(COUNT).scalar() == 4


def test_temporary_graph_is_removed_after_its_with_block() -> None:
    from omnigraph import testing

    text = '{"type":"Person","data":{"name":"x"}}\n'
    with testing.graph(SCHEMA, text, actor="ada") as made:
        assert made.nodes("Person").ids() == ["x"]
        assert made.head.actor == "ada"
        where = Path(made.uri)
        assert where.exists()
    assert not where.exists()


def test_garbage_collected_handle_emits_no_warning(tmp_path: Path) -> None:
    import gc

    omnigraph.init(tmp_path / "g", SCHEMA, durability="os").query(COUNT)
    gc.collect()


def test_graph_has_a_notebook_card(graph: Graph) -> None:
    html = graph._repr_html_()
    assert "node:Person" in html
    assert graph.head.id in html
    assert len(html) < 20_000
