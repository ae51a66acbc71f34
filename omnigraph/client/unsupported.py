"""What a graph on a server cannot do, and what to do instead.

`LIMITATIONS` is the only list of the unsupported members. The how-to page shows it, and a test checks that the page and
the list agree.
"""

from typing import NoReturn

from omnigraph.errors import NotSupportedRemotely

_LOCAL = "open the graph where its files are stored"

LIMITATIONS: dict[str, str] = {
    "snapshot": "use `graph.at(revision)` to read a past state, and `graph.schema` for the types",
    "table": "Lance datasets need direct access to the files; use `graph.query` or `graph.export`",
    "scan": "lazy scans need direct access to the files; use `graph.stream`",
    "duckdb": "DuckDB views need direct access to the files; pass a query result to DuckDB",
    "pool": "not needed, because the server runs queries in its own processes",
    "acting": "open the graph with the token of the other actor, because the token determines the actor",
    "schema.contract": "use `graph.schema.source`",
    "schema.ir": "permanent ids are not sent to clients; use `graph.schema.current`",
    "idempotency_key=…, strategy=function": "a retry calls the function again, and a different result would"
    " change the request; pass `ours`, `theirs` or a dict as `strategy`",
    "engine='spark'": "Spark jobs need direct access to the files",
    "spark": "Spark jobs need direct access to the files",
    "maintenance.copy_to": f"{_LOCAL}, and run `omnigraph copy` there; or use `graph.export`",
}


def reject(member: str, *, what: str | None = None) -> NoReturn:
    """Raise `NotSupportedRemotely` for a member of `LIMITATIONS`."""
    raise NotSupportedRemotely(
        f"{what or f'`{member}`'} is not available for a graph on a server",
        what=what or member,
        hint=LIMITATIONS[member],
    )


def reject_if(condition: object, member: str) -> None:
    """Raise `NotSupportedRemotely` for a member of `LIMITATIONS` if a condition holds."""
    if condition:
        reject(member)
