"""Diagnose a server for `omnigraph doctor`: the connection, the versions, the token, the graph and the clock.

Failures are reported instead of raised.
"""

from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime

import omnigraph
from omnigraph.cli.server_target import ServerTarget
from omnigraph.client.exchange import Exchange
from omnigraph.client.locations import parse_graph_address
from omnigraph.errors import OmnigraphError
from omnigraph.maintenance.doctor import EnvironmentDiagnosis, diagnose_skew
from omnigraph.values import clock_and_ids

_CLOCK_HINT = "commit times are taken from the server's clock: correct the clock that is wrong"


def diagnose_server(target: ServerTarget) -> Iterator[EnvironmentDiagnosis]:
    """Diagnose the server of a graph. If the server cannot be reached, nothing else is diagnosed."""
    exchange = Exchange(parse_graph_address(target.uri), token=target.token)
    checks: dict[str, Callable[[Exchange, str], EnvironmentDiagnosis]] = {
        "server": _check_version,
        "token": _check_token,
        "graph": _check_graph,
        "server clock": _check_clock,
    }
    try:
        for name, run_check in checks.items():
            try:
                yield run_check(exchange, target.uri)
            except OmnigraphError as error:
                yield EnvironmentDiagnosis(name, "error", error.message, error.advice)
                return
    finally:
        exchange.close()


def _check_version(exchange: Exchange, _: str) -> EnvironmentDiagnosis:
    version = exchange.get_from_server("healthz")["version"]
    description = f"{exchange.server}, version {version}"
    if version == omnigraph.__version__:
        return EnvironmentDiagnosis("server", "ok", description)
    hint = f"this program has version {omnigraph.__version__}: install the same version on both machines"
    return EnvironmentDiagnosis("server", "warning", description, hint)


def _check_token(exchange: Exchange, _: str) -> EnvironmentDiagnosis:
    caller = exchange.get_from_server("whoami")
    if caller["authentication"] == "open":
        return EnvironmentDiagnosis("token", "ok", "the server requires no token")
    return EnvironmentDiagnosis("token", "ok", f"{caller['actor_id']}, permission {caller['permission']}")


def _check_graph(exchange: Exchange, uri: str) -> EnvironmentDiagnosis:
    document = exchange.get("snapshot")
    version = document["internal_schema_version"]
    return EnvironmentDiagnosis("graph", "ok", f"{uri}, storage format {version}, head {document['graph_commit_id']}")


def _check_clock(exchange: Exchange, _: str) -> EnvironmentDiagnosis:
    """Compare the server's clock with this machine's clock. The server reports whole seconds."""
    reply = exchange.fetch("GET", ("limits",), {})
    server_clock = parsedate_to_datetime(reply.headers["Date"])
    return diagnose_skew("server clock", server_clock, clock_and_ids.now_micros(), _CLOCK_HINT)
