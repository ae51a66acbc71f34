"""Query text for `graph.search`, which finds the nodes of a type by text, by a vector, or by both.

Names come from the schema, and values are passed as parameters. This module runs nothing.
"""

from collections.abc import Sequence
from typing import Any

from omnigraph.errors import InputError
from omnigraph.lang.schema.catalog import Catalog, Index, NodeType, PropertyDefinition
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.records.frozen import record
from omnigraph.values import ScalarType
from omnigraph.values.describe_value import describe

PropertyNames = str | Sequence[str] | None


@record
class SearchTerms:
    """What to search for. `properties` names the properties to search if the type has several candidates."""

    type_name: str
    text: str | None
    vector: Any
    k: int
    properties: PropertyNames


def build_search(catalog: Catalog, request: SearchTerms) -> tuple[str, dict[str, Any]]:
    """Return the query text and the parameters for a search.

    Each row contains `id`, all properties except blobs and vectors, and the score. The best matches come first.
    """
    node_type = resolve_type(catalog, request.type_name, "node")
    _check_request(request)
    clauses, rankings, declarations, arguments = [f"$n: {node_type.name}"], list[str](), ["$k: I64"], {"k": request.k}
    chosen = _chosen_properties(node_type, request)
    values: dict[str, Any] = {"text": request.text, "vector": request.vector}
    if request.vector is not None:
        prop = _select_property(node_type, "vector", chosen)
        rankings.append(f"nearest($n.{prop.name}, $vector)")
        declarations.append(f"$vector: Vector({prop.type.vector_dim})")
    if request.text is not None:
        reference = f"$n.{_select_property(node_type, 'text', chosen).name}"
        clauses += [f"search({reference}, $text)"] if request.vector is None else []
        rankings.append(f"bm25({reference}, $text)")
        declarations.append("$text: String")
    ranking = rankings[0] if len(rankings) == 1 else f"rrf({', '.join(rankings)})"
    arguments |= {name: value for name, value in values.items() if value is not None}
    returned = ", ".join([*_returned_properties(node_type), f"{ranking} as {_score_name(node_type)}"])
    body = f"match {{ {'  '.join(clauses)} }} return {{ {returned} }} order {{ {ranking} }} limit $k"
    return f"query search({', '.join(declarations)}) {{ {body} }}", arguments


def _check_request(request: SearchTerms) -> None:
    if request.text is None and request.vector is None:
        raise InputError("a search requires text, a vector or both", reason="nothing to search for")
    if request.text is not None and not isinstance(request.text, str):
        raise InputError(f"the text of a search must be a string, got {describe(request.text)}", reason="not a string")
    if not isinstance(request.k, int) or isinstance(request.k, bool) or request.k < 1:
        raise InputError(f"k must be a positive integer, got {describe(request.k)}", reason="not positive")


def _chosen_properties(node_type: NodeType, request: SearchTerms) -> list[PropertyDefinition]:
    """Return the properties that the request names. Raise `InputError` if one of them cannot be searched."""
    names = [request.properties] if isinstance(request.properties, str) else list(request.properties or ())
    by_name = {prop.name: prop for prop in node_type.properties}
    for name in names:
        if name not in by_name:
            hint = did_you_mean(str(name), by_name)
            raise InputError(f"{node_type.name} has no property {describe(name)}", reason="unknown property", hint=hint)
        kind = _searchable_kind(by_name[name])
        if kind is None or getattr(request, kind) is None:
            expected = "a String or Vector property" if kind is None else f"`{kind}`"
            raise InputError(f"searching {node_type.name}.{name} requires {expected}", reason="not searched")
    return [by_name[name] for name in names]


def _searchable_kind(prop: PropertyDefinition) -> str | None:
    if prop.type.is_list or prop.type.enum_values:
        return None
    return {ScalarType.STRING: "text", ScalarType.VECTOR: "vector"}.get(prop.type.scalar)


def _select_property(node_type: NodeType, kind: str, chosen: Sequence[PropertyDefinition]) -> PropertyDefinition:
    """Return the property to search: the chosen one, the only indexed one, or the only one outside the key."""
    candidates = [prop for prop in node_type.properties if _searchable_kind(prop) == kind]
    indexed = [prop for prop in candidates if prop.name in _fulltext_properties(node_type)]
    not_in_key = [prop for prop in candidates if prop.name not in (node_type.key or ())]
    selected = [prop for prop in chosen if prop in candidates] or indexed or not_in_key or candidates
    if len(selected) == 1:
        return selected[0]
    if not candidates:
        raise InputError(f"{node_type.name} has no {kind} property", reason="nothing to search")
    names = ", ".join(prop.name for prop in selected)
    hint = f"select the one to search, such as properties={selected[0].name!r}"
    raise InputError(f"{node_type.name} has several {kind} properties: {names}", reason="ambiguous", hint=hint)


def _fulltext_properties(node_type: NodeType) -> set[str]:
    indexes = (constraint for constraint in node_type.constraints if isinstance(constraint, Index))
    return {index.columns[0] for index in indexes if ("kind", "fulltext") in index.options}


def _returned_properties(node_type: NodeType) -> list[str]:
    hidden = (ScalarType.BLOB, ScalarType.VECTOR)
    names = ["id", *(prop.name for prop in node_type.properties if prop.type.scalar not in hidden)]
    return [f"$n.{name} as {name}" for name in names]


def _score_name(node_type: NodeType) -> str:
    """Return the name of the score column: `score`, or `search_score` if the type has a property `score`."""
    return "search_score" if any(prop.name == "score" for prop in node_type.properties) else "score"
