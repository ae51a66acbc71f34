"""Routes for the server itself."""

from omnigraph.server.models import answers
from omnigraph.server.route_model import HTML, PLAIN, Route

SYSTEM_ROUTES = (
    Route(
        "GET",
        "/healthz",
        "health",
        "Report that the server is running",
        "system:health",
        is_public=True,
        answer=answers.HealthOutput,
    ),
    Route(
        "GET",
        "/readyz",
        "ready",
        "Report whether this worker accepts requests",
        "system:ready",
        is_public=True,
        answer=answers.ReadinessOutput,
        statuses=(503,),
        lane="loop",
    ),
    Route("GET", "/openapi.json", "openapi", "Describe all operations", "system:openapi", is_public=True, answer=dict),
    Route(
        "GET", "/docs", "docs", "Show all operations as a web page", "system:docs_page", is_public=True, answers=(HTML,)
    ),
    Route(
        "GET",
        "/metrics",
        "metrics",
        "Return metrics for Prometheus",
        "system:metrics",
        action="admin",
        answers=(PLAIN,),
        statuses=(401, 403),
    ),
    Route(
        "GET",
        "/whoami",
        "whoami",
        "Return the caller and their permission",
        "system:whoami",
        answer=answers.WhoamiOutput,
        statuses=(401,),
    ),
    Route(
        "GET",
        "/graphs",
        "listGraphs",
        "List the graphs on this server",
        "system:list_graphs",
        action="graph_list",
        answer=answers.GraphListResponse,
        statuses=(401, 403),
    ),
)
