"""Count the requests that writes, opens and branch operations send to an S3 server, and measure their times.

Prints the number of requests, the number of requests that depend on each other, and the time if each request has an
additional latency of 20 ms. The argument is the number of commits to make (200 by default). The cost of the operations
must not depend on this number.
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

LATENCY = 20.0  # milliseconds added to every request


def told(proxy: Proxy, title: str, action: Callable[[], object]) -> None:
    """Run an action, and print its requests and its time on a slow store."""
    with requests_of(proxy) as made:
        start = time.perf_counter()
        action()
        took = time.perf_counter() - start
    print(f"{title:<44}{with_hops(made):<56}{took * 1000:6.0f} ms")


def writes(proxy: Proxy, graph: Graph) -> None:
    """Measure appends to one, two and three tables."""
    line = graph._handle.branch_state
    add(line, "warm", (PERSON, CITY, LIVES_IN))
    for keys in ((PERSON,), (PERSON, CITY), (PERSON, CITY, LIVES_IN)):
        told(proxy, f"append a row to {len(keys)} table(s)", partial(add, line, "x", keys))


def opens(proxy: Proxy, uri: str, age: int) -> None:
    """Measure opening a graph with a given number of commits."""
    for read_only in (True, False):
        how = "read-only" if read_only else "read-write"
        title = f"open {how} after {age} commits"
        told(proxy, title, partial(open_cold, uri, read_only=read_only))


def branches(proxy: Proxy, uri: str, tables: int, live: int) -> None:
    """Measure creating and deleting a branch in a graph with a given number of tables and branches."""
    graph = omnigraph.init(uri, wide_schema(tables))
    for n in range(live - 1):
        graph.branches.create(f"b{n}")
    proxy.latency_ms = LATENCY
    title = f"{tables} tables, {live} branches"
    told(proxy, f"create a branch, {title}", lambda: graph.branches.create("new"))
    told(proxy, f"delete a branch, {title}", lambda: graph.branches.delete("new", force=True))
    proxy.latency_ms = 0


def ageing(proxy: Proxy, graph: Graph, count: int) -> None:
    """Measure many publishes, and print how often each cost occurs and the highest cost."""
    costs: list[Cost] = []
    for n in range(count):
        with requests_of(proxy) as made:
            add(graph._handle.branch_state, f"r{n}")
        costs.append(cost_of_requests(made))
    print("\n".join(window(f"{count} publishes one after another", costs)))


def main(count: int) -> None:
    """Measure all operations on one server."""
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
