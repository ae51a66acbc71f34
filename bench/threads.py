"""Measure Omnigraph with 16 threads and with a pool of two processes, and the overhead of the public API.

`bench.peers` prints these figures. For queries of different sizes, they are the queries per second of 16 threads
compared with one thread, the queries per second of a pool of two processes compared with one process, and the
milliseconds that `graph.query` adds to `run_read`.
"""

import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, process_time
from typing import Any

from bench.peers_data import Inputs

THREADS = 16
PROCESSES = 2
_ASKED = {"point lookup": 1600, "two hops": 1600, "group by": 96}
_ROUNDS = 5  # one thread and many threads alternate, so that noise affects both equally


def throughput(engine: Any, given: Inputs) -> dict[str, dict[str, float]]:
    """Return figures for one thread and for many threads, such as queries per second, by query."""
    people = given.people
    kinds: dict[str, Callable[[int], Any]] = {
        "point lookup": lambda at: engine.point(people[at % len(people)]),
        "two hops": lambda at: engine.two_hops(people[at % len(people)]),
        "group by": lambda _: engine.group_by(),
    }
    found = {}
    for title, ask in kinds.items():
        count = _ASKED[title]
        _rate(ask, count // 2, 1)  # warm up the caches
        pairs = [(_rate(ask, count // 4, 1), _rate(ask, count // 2, THREADS)) for _ in range(_ROUNDS)]
        one, many, ratio = (statistics.median(each) for each in zip(*_with_ratio(pairs), strict=True))
        cores = statistics.median(_cores(ask, count // 2) for _ in range(_ROUNDS))
        cpu_one, cpu_many = (min(_cpu_time(ask, count // 2, n) for _ in range(_ROUNDS)) for n in (1, THREADS))
        found[title] = {"one": one, "many": many, "ratio": ratio, "cores": cores}
        found[title] |= {"cpu_one_us": cpu_one * 1e6, "cpu_many_us": cpu_many * 1e6}
    return found


def _cpu_time(ask: Callable[[int], Any], count: int, threads: int) -> float:
    """Return the CPU seconds per query.

    If they do not grow with the number of threads, the threads contend for no lock except the interpreter lock.
    """
    busy = process_time()
    _rate(ask, count, threads)
    return (process_time() - busy) / count


def pooled(engine: Any, given: Inputs) -> dict[str, dict[str, float]]:
    """Return the queries per second of one thread in this process and of a pool of processes, by query."""
    from bench.peers_engines import QUERIES

    people = given.people
    kinds: dict[str, tuple[str, Callable[[int], dict[str, Any]]]] = {
        "point lookup": ("point", lambda at: {"id": people[at % len(people)]}),
        "two hops": ("two_hops", lambda at: {"id": people[at % len(people)]}),
        "group by": ("group_by", lambda _: {}),
        "friends of friends": ("friends_of_friends", lambda _: {"ids": given.starts}),
    }
    found = {}
    with engine.graph.pool(PROCESSES) as pool:
        for title, (name, params) in kinds.items():

            def alone(at: int, name: str = name, params: Any = params) -> Any:
                return engine.graph.query(QUERIES, name=name, params=params(at)).to_records()

            def shared(at: int, name: str = name, params: Any = params) -> Any:
                return pool.query(QUERIES, name=name, params=params(at)).to_records()

            count = _ASKED.get(title, 24)
            _rate(alone, count // 2, 1)
            _rate(shared, count, PROCESSES * 2)
            pairs = [(_rate(alone, count // 4, 1), _rate(shared, count // 2, PROCESSES * 2)) for _ in range(_ROUNDS)]
            one, many, ratio = (statistics.median(each) for each in zip(*_with_ratio(pairs), strict=True))
            found[title] = {"one": one, "many": many, "ratio": ratio}
    return found


def _with_ratio(pairs: list[tuple[float, float]]) -> list[tuple[float, float, float]]:
    return [(one, many, many / one) for one, many in pairs]


def _rate(ask: Callable[[int], Any], count: int, threads: int) -> float:
    began = perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(ask, range(count)))
    return count / (perf_counter() - began)


def _cores(ask: Callable[[int], Any], count: int) -> float:
    """Return the CPU time of many threads divided by the elapsed time, which is the number of busy cores.

    A figure near 1 means that the interpreter lock is always held, so additional threads cannot increase the speed.
    """
    began, busy = perf_counter(), process_time()
    _rate(ask, count, THREADS)
    return (process_time() - busy) / (perf_counter() - began)


def overhead(engine: Any, given: Inputs) -> float:
    """Return the median milliseconds that a prepared query takes in addition to the time of the engine."""
    from bench.peers_engines import QUERIES
    from omnigraph.engine.run_query import run_read
    from omnigraph.lang.query import compile_queries

    graph = engine.graph
    prepared = graph.prepare(QUERIES, name="point")
    query = compile_queries(QUERIES, graph.schema.ir.catalog)[0]
    shown, differences = graph.snapshot, []
    for at in range(400):
        one = given.people[at % len(given.people)]
        began = perf_counter()
        prepared(id=one)
        middle = perf_counter()
        run_read(shown, query, {"id": one}, mode="python")
        differences.append((middle - began) - (perf_counter() - middle))
    return statistics.median(differences) * 1000
