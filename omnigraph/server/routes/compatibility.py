"""Routes of version 0.3, which clients of that version call without a graph prefix."""

from dataclasses import replace

from omnigraph.server.models import answers, entities, requests
from omnigraph.server.route_model import GRAPH_PREFIX, Route

from . import statuses
from .data import LOAD_ROUTE, MUTATE_ROUTE

_RUN = Route(
    "GET",
    f"{GRAPH_PREFIX}/runs/{{run_id}}",
    "getRun",
    "Return 404, because runs no longer exist",
    "compatibility:missing_run",
    action="read",
    answer=entities.RunListOutput,
    statuses=statuses.READ,
    deprecated=True,
    successor="commits",
)

COMPATIBILITY_ROUTES = (
    Route(
        "POST",
        f"{GRAPH_PREFIX}/read",
        "read",
        "Run a read query with the field names of version 0.3",
        "compatibility:read",
        action="read",
        body=requests.ReadRequest,
        body_limit="query",
        answer=answers.ReadRowsOutput,
        statuses=statuses.READ_BODY,
        deprecated=True,
        successor="query",
    ),
    replace(
        MUTATE_ROUTE,
        path=f"{GRAPH_PREFIX}/change",
        operation="change",
        summary="Run a mutation with the field names of version 0.3",
        deprecated=True,
        successor="mutate",
    ),
    replace(
        LOAD_ROUTE,
        path=f"{GRAPH_PREFIX}/ingest",
        operation="ingest",
        summary="Load NDJSON text with the field names of version 0.3",
        deprecated=True,
        successor="load",
    ),
    Route(
        "GET",
        f"{GRAPH_PREFIX}/healthz",
        "graphHealth",
        "Report that the server is running",
        "system:health",
        is_public=True,
        answer=answers.HealthOutput,
        statuses=(400, 404),
    ),
    Route(
        "GET",
        f"{GRAPH_PREFIX}/runs",
        "listRuns",
        "Return an empty list, because runs no longer exist",
        "compatibility:list_runs",
        action="read",
        answer=entities.RunListOutput,
        statuses=statuses.READ,
        deprecated=True,
        successor="commits",
    ),
    _RUN,
    replace(_RUN, method="POST", path=f"{_RUN.path}/abort", operation="abortRun", action="change"),
    replace(_RUN, method="POST", path=f"{_RUN.path}/publish", operation="publishRun", action="change"),
)
