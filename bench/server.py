"""Compare the server with calls in the same process and with two minimal Starlette applications.

Measures requests per second and CPU time per request for point lookups, for 10,000 rows as JSON and as Arrow, for
sending the same Arrow bytes without a database, and for writes by 1, 8 and 64 clients on one branch or on many. One of
the applications sends back what it receives, and the other one runs the query and does nothing else. The argument is
the number of requests in a round (2,000 by default).
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time

import omnigraph
from bench.http_load import LoadReport, LocalClient, Request, run_clients
from tests.rig.http_server import HttpServer, start_server, stop_server

SCHEMA = "node Person { name: String @key  age: I32?  city: String?  score: F64? }"
ROWS = 10_000
LOOKUP = "query lookup($name: String) { match { $p: Person { name: $name } } return { $p.name, $p.age } }"
ALL_ROWS = "match { $p: Person } return { $p.name, $p.age, $p.city, $p.score }"
INSERT = "query add($name: String) { insert Person { name: $name } }"
ARROW = "application/vnd.apache.arrow.stream"
CLIENTS = 8
WRITERS = (1, 8, 64)


def query_request(text: str, params: dict[str, str] | None = None, accept: str = "application/json") -> Request:
    """Return the request that runs a query."""
    body = json.dumps({"query": text, "params": params or {}}).encode()
    return Request("POST", "/graphs/default/query", body, accept)


def lookup_of(number: int) -> Request:
    """Return the request that looks up one person."""
    return query_request(LOOKUP, {"name": f"p{number % ROWS}"})


def write_of(number: int, branch: str, client: int, writers: int) -> Request:
    """Return the request that inserts a person with a new name."""
    name = f"{branch}-{writers}-{client}-{number}"
    body = json.dumps({"query": INSERT, "params": {"name": name}, "branch": branch}).encode()
    return Request("POST", "/graphs/default/mutate", body)


def make_graph(root: str) -> omnigraph.Graph:
    """Create a graph with 10,000 people."""
    graph = omnigraph.init(root, SCHEMA, durability="os")
    people = ({"name": f"p{n}", "age": n % 90, "city": f"c{n % 300}", "score": n / 7} for n in range(ROWS))
    graph.insert("Person", list(people))
    return graph


@contextmanager
def serving_graph(folder: Path, root: str) -> Iterator[HttpServer]:
    """Run a server whose limits are too high to affect the writers."""
    limit = {"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "1000", "OMNIGRAPH_LOG": "error"}
    server = start_server(folder, root, "--unauthenticated", variables=limit)
    try:
        yield server
        stop_server(server)
    finally:
        server.process.kill()


@contextmanager
def serving_app(module: str, argument: str) -> Iterator[tuple[int, int]]:
    """Run a minimal application, and yield its port and its process id."""
    command = [sys.executable, "-m", module, argument]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            yield int(process.stdout.readline()), process.pid
        finally:
            process.terminate()


def measure_embedded(graph: omnigraph.Graph, requests: int) -> LoadReport:
    """Run the lookups in this process, one after another."""
    started, busy = perf_counter(), process_time()
    for number in range(requests):
        graph.query(LOOKUP, params={"name": f"p{number % ROWS}"}).to_records()
    return LoadReport(requests, perf_counter() - started, process_time() - busy)


def best_of(rounds: int, measure: Callable[[], LoadReport]) -> LoadReport:
    """Return the round with the lowest CPU time per request, because noise can only increase it.

    The first round is not counted, because the engine loads frequently used columns into memory and becomes faster.
    """
    measure()
    return min((measure() for _ in range(rounds)), key=lambda report: report.cpu_micros)


def measure_lookups(graph: omnigraph.Graph, server: HttpServer, content: Path, requests: int) -> dict[str, LoadReport]:
    """Measure point lookups in this process and with one and several clients, and the minimal applications."""

    def lookups(port: int, pid: int, clients: int) -> LoadReport:
        share = requests // clients
        return run_clients(port, pid, clients, lambda client: [lookup_of(client * share + n) for n in range(share)])

    def echoes(port: int, pid: int) -> LoadReport:
        share = requests // CLIENTS
        echo = Request("POST", "/echo", lookup_of(1).body)
        return run_clients(port, pid, CLIENTS, lambda _: [echo] * share)

    reports = {"call in the same process": best_of(3, lambda: measure_embedded(graph, requests))}
    reports["server, 1 client"] = best_of(3, lambda: lookups(server.port, server.process.pid, 1))
    reports[f"server, {CLIENTS} clients"] = best_of(3, lambda: lookups(server.port, server.process.pid, CLIENTS))
    with serving_app("bench.query_app", graph.uri) as (port, pid):
        for clients in (1, CLIENTS):
            title = f"minimal query application, {clients} client{'s' if clients > 1 else ''}"
            reports[title] = best_of(3, lambda: lookups(port, pid, clients))  # noqa: B023 - called at once
    with serving_app("bench.echo_app", str(content)) as (port, pid):
        reports[f"minimal Starlette echo, {CLIENTS} clients"] = best_of(3, lambda: echoes(port, pid))
    return reports


def measure_rows(server: HttpServer, content: Path, rounds: int) -> dict[str, LoadReport]:
    """Measure 10,000 rows as JSON and as Arrow, and the same Arrow bytes sent by the minimal application."""
    as_arrow = query_request(ALL_ROWS, accept=ARROW)
    content.write_bytes(LocalClient(server.port).send(as_arrow))

    def repeat(port: int, pid: int, request: Request) -> LoadReport:
        return best_of(3, lambda: run_clients(port, pid, 1, lambda _: [request] * rounds))

    reports = {"JSON": repeat(server.port, server.process.pid, query_request(ALL_ROWS))}
    reports["Arrow"] = repeat(server.port, server.process.pid, as_arrow)
    with serving_app("bench.echo_app", str(content)) as (port, pid):
        reports["minimal Starlette, the same bytes"] = repeat(port, pid, Request("GET", "/file"))
    return reports


def measure_writes(server: HttpServer, writers: int, writes: int, *, on_one_branch: bool) -> LoadReport:
    """Measure single-row inserts, either on `main` or on a separate branch for each client."""
    client = LocalClient(server.port)
    branches = ["main"] * writers if on_one_branch else [f"w{writers}-{number}" for number in range(writers)]
    for branch in () if on_one_branch else branches:
        client.send(Request("POST", "/graphs/default/branches", json.dumps({"name": branch}).encode()))
    share = max(writes // writers, 1)
    return run_clients(
        server.port,
        server.process.pid,
        writers,
        lambda number: [write_of(n, branches[number], number, writers) for n in range(share)],
    )


def show_table(title: str, reports: dict[str, LoadReport]) -> None:
    """Print reports as a table."""
    print(f"\n{title}\n{'':>38} {'requests/s':>11} {'CPU us/request':>15}")
    for name, report in reports.items():
        print(f"{name:>38} {report.per_second:>11.1f} {report.cpu_micros:>15.1f}")


def main(requests: int) -> None:
    """Measure rows, lookups and writes, and print three tables."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, content = Path(scratch), Path(scratch, "rows.arrow")
        graph = make_graph(str(folder / "graph"))
        with serving_graph(folder / "server", graph.uri) as server:
            show_table(f"{ROWS} rows", measure_rows(server, content, max(requests // 20, 1)))
            show_table("point lookups", measure_lookups(graph, server, content, requests))
            writes = {
                f"{writers} clients, {where}": measure_writes(server, writers, requests // 4, on_one_branch=shared)
                for writers in WRITERS
                for where, shared in (("one branch", True), ("one branch each", False))
            }
            show_table("writes of one row", writes)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
