"""Search for nodes of one type by text or vector."""

from typing import Any

from omnigraph.api.results.json_encoding import iter_json_rows
from omnigraph.errors import InputError
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.server import engine_access
from omnigraph.server.call import ServerCall
from omnigraph.server.models.entities import SearchMatchOutput, SearchOutput
from omnigraph.server.models.requests import SearchRequest
from omnigraph.server.wire.answer import Answer, json_answer

from .reads import query_timeout


def search(call: ServerCall) -> Answer:
    """Return the best matches with their scores."""
    body = call.body_as(SearchRequest)
    graph = call.graph_for_read(body.branch, body.snapshot).refresh()
    node_type = resolve_type(graph.schema.ir.catalog, body.type_, "node")
    if all(declared.name != body.property for declared in node_type.properties):
        raise InputError(f"{node_type.name} has no such property", reason="unknown property")
    text, params = _build_query(body, node_type.name)
    result = graph.query(engine_access.query_text(text), params=params, timeout=query_timeout(call, None))
    matches = [
        SearchMatchOutput(id=node.pop("id"), type=node.pop("type"), properties=node, score=score)
        for node, score in ((row["n"], row["score"]) for row in iter_json_rows(result.table))
    ]
    return json_answer(SearchOutput(matches=matches, graph_commit_id=str(result.commit_id)))


def _build_query(body: SearchRequest, type_name: str) -> tuple[str, dict[str, Any]]:
    """Return the text of a search query, with names taken from the schema, and the values as its parameters."""
    if (body.text is None) == (body.vector is None):
        raise InputError("a search requires either `text` or `vector`", reason="invalid body")
    reference = f"$n.{body.property}"
    if body.text is not None:
        match, ranking, kind = f"$n: {type_name}  search({reference}, $q)", f"bm25({reference}, $q)", "String"
    else:
        vector = body.vector or []
        match, ranking, kind = f"$n: {type_name}", f"nearest({reference}, $q)", f"Vector({len(vector)})"
    body_text = f"match {{ {match} }} return {{ $n, {ranking} as score }} order {{ {ranking} }} limit {body.limit}"
    return f"query search($q: {kind}) {{ {body_text} }}", {"q": body.text if body.text is not None else body.vector}
