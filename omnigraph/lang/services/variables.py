"""The variables and parameters in a query that may not parse, with the types that can be inferred for them.

Types come from bindings (`$p: Person`) and from the endpoints of traversals. Invalid text yields fewer variables, never
an error.
"""

from omnigraph.lang.query.check.scope import narrower_type
from omnigraph.lang.schema.catalog import Catalog, EdgeType, InterfaceType, NodeType, PropertyDefinition
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType, ScalarType

from .cursor import TextToken

_PATH_WORDS = frozenset({"any", "all", "walk", "trail", "acyclic", "simple"})
_ID = PropertyDefinition("id", PropertyType(ScalarType.STRING))
EntityType = NodeType | InterfaceType | EdgeType


@record
class InferredVariable:
    """A variable. `role` is `parameter`, `node`, `edge` or `path`, and `type_name` is None if the type is unknown."""

    name: str
    role: str
    type_name: str | None = None


def infer_variables(tokens: list[TextToken], catalog: Catalog | None) -> dict[str, InferredVariable]:
    """Return the variables in a declaration in order of appearance, without their `$`."""
    parameters_end = _parameters_end(tokens)
    variables = _read_parameters(tokens[:parameters_end])
    body = tokens[parameters_end:]
    for _ in range(2):  # the second pass uses the types of variables that are bound after their first use
        for index, token in enumerate(body):
            if token.kind == "variable":
                _read_use(body, index, variables, catalog)
    return variables


def entity_type(catalog: Catalog | None, type_name: str | None) -> EntityType | None:
    """Return the node type, interface or edge type with this name, or None if there is none."""
    if catalog is None or type_name is None:
        return None
    return catalog.node(type_name) or catalog.interface(type_name) or catalog.edge(type_name)


def properties_of(declared: EntityType | None) -> tuple[PropertyDefinition, ...]:
    """Return the properties that a query can read from entities of a type, including `id`, in name order."""
    if declared is None:
        return ()
    own = [definition for definition in declared.properties if definition.name != "id"]
    return tuple(sorted((_ID, *own), key=lambda definition: definition.name))


def other_endpoint(catalog: Catalog, edge: EdgeType, type_name: str | None) -> str | None:
    """Return the node type at the opposite end of an edge type, or None if neither end has the given type.

    If no type is given, return the target type.
    """
    if type_name is None or narrower_type(catalog, type_name, edge.source):
        return edge.target
    return edge.source if narrower_type(catalog, type_name, edge.target) else None


def _parameters_end(tokens: list[TextToken]) -> int:
    if not tokens or tokens[0].text != "query":
        return 0
    return next((index + 1 for index, token in enumerate(tokens) if token.text in (")", "{")), len(tokens))


def _read_parameters(tokens: list[TextToken]) -> dict[str, InferredVariable]:
    parameters: dict[str, InferredVariable] = {}
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if token.kind == "variable" and depth == 1:
            parameters[token.text[1:]] = InferredVariable(token.text[1:], "parameter", _type_after(tokens, index + 1))
    return parameters


def _type_after(tokens: list[TextToken], index: int) -> str | None:
    """Read a parameter's type, such as `[I32]?`, from the tokens after its name. Return None if there is no type."""
    if index >= len(tokens) or tokens[index].text != ":":
        return None
    parts = []
    for token in tokens[index + 1 : index + 6]:
        if token.kind not in ("word", "number") and token.text not in ("[", "]", "?", "("):
            break
        parts.append(token.text)
    text = "".join(parts)
    return (text + ")" if text.count("(") > text.count(")") else text) or None


def _read_use(
    tokens: list[TextToken], index: int, variables: dict[str, InferredVariable], catalog: Catalog | None
) -> None:
    name = tokens[index].text[1:]
    following = [token.text for token in tokens[index + 1 : index + 4]] + ["", "", ""]
    if following[0] == ":" and following[1][:1].isupper():
        _bind(variables, name, "node", following[1])
    elif following[0] == "=" and following[1] in _PATH_WORDS:
        _bind(variables, name, "path", None)
    else:
        _read_traversal(tokens, index, variables, catalog)


def _read_traversal(
    tokens: list[TextToken], index: int, variables: dict[str, InferredVariable], catalog: Catalog | None
) -> None:
    """If a traversal such as `$a $e:knows{1,3} $b` starts at this token, bind its variables."""
    source, position, edge_variable = tokens[index].text[1:], index + 1, None
    if _is_kind(tokens, position, "variable") and _text_at(tokens, position + 1) == ":":
        edge_variable, position = tokens[position].text[1:], position + 2
    if _text_at(tokens, position) == "<":
        position += 1
    if not _is_kind(tokens, position, "word"):
        return
    edge = catalog.edge_ignoring_case(tokens[position].text) if catalog is not None else None
    if edge is None:
        return
    if edge_variable is not None:
        _bind(variables, edge_variable, "edge", edge.name)
    target = _skip_edges_and_hops(tokens, position + 1)
    target_name = tokens[target].text[1:] if _is_kind(tokens, target, "variable") else None
    _bind_endpoints(variables, catalog, edge, source, target_name)


def _skip_edges_and_hops(tokens: list[TextToken], position: int) -> int:
    while _text_at(tokens, position) == "|":
        position += 2
    if _text_at(tokens, position) == ">":
        position += 1
    if _text_at(tokens, position) == "{":
        while position < len(tokens) and tokens[position].text != "}":
            position += 1
        position += 1
    return position


def _bind_endpoints(
    variables: dict[str, InferredVariable], catalog: Catalog | None, edge: EdgeType, source: str, target: str | None
) -> None:
    source_type = variables[source].type_name if source in variables else None
    target_type = variables[target].type_name if target in variables else None
    if catalog is None:
        return
    if source_type is None and target_type is not None:
        starts_at_target = narrower_type(catalog, target_type, edge.target)
        source_type = edge.source if starts_at_target else edge.target
    source_type = source_type or edge.source
    _bind(variables, source, "node", source_type)
    if target is not None:
        _bind(variables, target, "node", other_endpoint(catalog, edge, source_type))


def _bind(variables: dict[str, InferredVariable], name: str, role: str, type_name: str | None) -> None:
    existing = variables.get(name)
    if name == "_" or (existing is not None and (existing.role == "parameter" or existing.type_name is not None)):
        return
    variables[name] = InferredVariable(name, role, type_name)


def _text_at(tokens: list[TextToken], position: int) -> str:
    return tokens[position].text if position < len(tokens) else ""


def _is_kind(tokens: list[TextToken], position: int, kind: str) -> bool:
    return position < len(tokens) and tokens[position].kind == kind
