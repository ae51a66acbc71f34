"""What a write, an open and a branch ask of an S3 server, and how long they take on a slow one.

Prints requests, those that wait for one another, and times with 20 ms of injected latency. Takes
the number of commits to make as its argument (200 by default); cost must not depend on it.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import omnigraph
from omnigraph.api.graph import Graph
from tests.cost.measurements import Cost, add, cost_of_requests, open_cold, wide_schema, window, with_hops
from tests.rig.proxy import Proxy, requests_of
from tests.rig.seaweed import seaweed
from tests.rig.writes import CITY, LIVES_IN, PERSON, SCHEMA

LATENCY = 20.0  # milliseconds on every request


def told(proxy: Proxy, title: str, action: Callable[[], object]) -> None:
    """Do something, and print what it asked for and how long it took on a slow store."""
    with requests_of(proxy) as made:
        start = time.perf_counter()
        action()
        took = time.perf_counter() - start
    print(f"{title:<44}{with_hops(made):<56}{took * 1000:6.0f} ms")


def writes(proxy: Proxy, graph: Graph) -> None:
    """Appends to one, two and three tables."""
    line = graph._handle.branch_state
    add(line, "warm", (PERSON, CITY, LIVES_IN))
    for keys in ((PERSON,), (PERSON, CITY), (PERSON, CITY, LIVES_IN)):
        told(proxy, f"append a row to {len(keys)} table(s)", partial(add, line, "x", keys))


def opens(proxy: Proxy, uri: str, age: int) -> None:
    """Opening a graph of a certain age."""
    for read_only in (True, False):
        how = "read-only" if read_only else "read-write"
        title = f"open {how} after {age} commits"
        told(proxy, title, partial(open_cold, uri, read_only=read_only))


def branches(proxy: Proxy, uri: str, tables: int, live: int) -> None:
    """Creating and deleting a branch beside others."""
    graph = omnigraph.init(uri, wide_schema(tables))
    for n in range(live - 1):
        graph.branches.create(f"b{n}")
    proxy.latency_ms = LATENCY
    title = f"{tables} tables, {live} branches"
    told(proxy, f"create a branch, {title}", lambda: graph.branches.create("new"))
    told(proxy, f"delete a branch, {title}", lambda: graph.branches.delete("new", force=True))
    proxy.latency_ms = 0


def ageing(proxy: Proxy, graph: Graph, count: int) -> None:
    """Many publishes: how often each cost occurs, and the worst single one."""
    costs: list[Cost] = []
    for n in range(count):
        with requests_of(proxy) as made:
            add(graph._handle.branch_state, f"r{n}")
        costs.append(cost_of_requests(made))
    print("\n".join(window(f"{count} publishes one after another", costs)))


def main(count: int) -> None:
    """Measure everything on one server."""
    with tempfile.TemporaryDirectory() as scratch, seaweed(Path(scratch)) as server:
        proxy = Proxy(server.port)
        os.environ.update(server.behind(proxy.port).environment)
        uri = f"s3://{server.bucket}/bench"
        graph = omnigraph.init(uri, SCHEMA)
        proxy.latency_ms = LATENCY
        writes(proxy, graph)
        proxy.latency_ms = 0
        for tables, live in ((2, 1), (2, 50), (112, 1)):
            branches(proxy, f"{uri}-{tables}-{live}", tables, live)
        ageing(proxy, graph, count)
        proxy.latency_ms = LATENCY
        del graph
        opens(proxy, uri, count + 4)
        proxy.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
