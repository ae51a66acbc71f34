"""Translate a short Cypher statement into the query language, for use in a hint.

Translation is best-effort: only simple patterns, conditions, columns and writes are supported.
"""

import re
from collections.abc import Iterator

from .foreign_words import edge_word, rewrite_expression, split_list, type_name, variable_name

_NODE = re.compile(r"\s*\(\s*(\w*)\s*(?::\s*(\w+))?\s*(\{[^{}]*\})?\s*\)\s*")
_EDGE = re.compile(r"\s*(<)?-\s*\[\s*(\w*)\s*:\s*(\w+)\s*(?:\*\s*(\d+)\s*\.\.\s*(\d+))?\s*\]\s*-(>)?\s*")
_CHANGE = r"SET\s+(?P<set>.+?)|(?:DETACH\s+)?DELETE\s+(?P<delete>\w+)"
_TAIL = r"(?:\s+ORDER\s+BY\s+(?P<order>.+?))?(?:\s+SKIP\s+(?P<skip>\d+))?(?:\s+LIMIT\s+(?P<limit>\d+))?"
_READ_OR_CHANGE = re.compile(
    rf"MATCH\s+(?P<pattern>.+?)(?:\s+WHERE\s+(?P<where>.+?))?\s+(?:RETURN\s+(?P<columns>.+?){_TAIL}|{_CHANGE})\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_CREATE = re.compile(r"(CREATE|MERGE)\s*\(\s*\w*\s*:\s*(\w+)\s*(\{[^{}]*\})\s*\)\s*;?\s*", re.IGNORECASE)


def translate_cypher(statement: str) -> str | None:
    """Return the body of an equivalent query, or None if the statement is not supported.

    >>> translate_cypher("MATCH (a:Person {name: 'Ann'})-[:KNOWS]->(b) WHERE b.age > 3 RETURN b.name AS n")
    'match { $a: Person { name: "Ann" } $a knows $b $b.age > 3 } return { $b.name as n }'
    """
    created = _CREATE.fullmatch(statement)
    if created is not None:
        verb = "insert" if created[1].upper() == "CREATE" else "upsert"
        return f"{verb} {type_name(created[2])} {_properties(created[3])}"
    parts = _READ_OR_CHANGE.fullmatch(statement)
    if parts is None:
        return None
    clauses = [clause for pattern in split_list(parts["pattern"]) for clause in _pattern_clauses(pattern)]
    if parts["where"]:
        clauses.append(_expression(parts["where"]))
    return f"match {{ {' '.join(clauses)} }} {_result(parts)}"


def _result(parts: re.Match[str]) -> str:
    if parts["delete"]:
        return f"delete ${variable_name(parts['delete'])}"
    if parts["set"]:
        return _update(parts["set"])
    columns = re.sub(r"(?i)^distinct\s+", "", parts["columns"])
    distinct = "distinct " * (columns != parts["columns"])
    result = f"return {distinct}{{ {_expression(columns)} }}"
    aliases = set(re.findall(r"(?i)\bAS\s+(\w+)", columns))
    if parts["order"]:
        result += f" order {{ {_expression(parts['order'], aliases)} }}"
    result += f" limit {parts['limit']}" if parts["limit"] else ""
    return result + (f" offset {parts['skip']}" if parts["skip"] else "")


def _update(settings: str) -> str:
    """Return an update statement if exactly one variable is updated, or an empty string otherwise."""
    items = [re.fullmatch(r"(\w+)\.(\w+)\s*=\s*(.+)", item, re.DOTALL) for item in split_list(settings)]
    assignments = [f"{item[2]}: {_expression(item[3])}" for item in items if item is not None]
    variables = {item[1] if item is not None else "" for item in items}
    if len(variables) != 1 or "" in variables:
        return ""
    return f"update ${variable_name(variables.pop())} set {{ {', '.join(assignments)} }}"  # noqa: S608 - our own language


def _expression(text: str, aliases: set[str] | None = None) -> str:
    """Rewrite an expression, turning every bare word that is not an alias into a variable."""

    def write_name(name: str) -> str:
        return name if aliases is not None and name in aliases else f"${variable_name(name)}"

    return re.sub(r"\bas \$", "as ", rewrite_expression(text, write_name))


def _properties(braces: str) -> str:
    """Return a property list such as `{ name: "Ann" }`."""
    pairs = (item.partition(":") for item in split_list(braces.strip("{} \t\n")) if item)
    values = (f"{name.strip()}: {_expression(value)}" for name, _, value in pairs)
    return f"{{ {', '.join(values)} }}"


def _pattern_clauses(pattern: str) -> Iterator[str]:
    """Yield a binding for each typed node in a path, followed by the path's traversals."""
    traversals: list[str] = []
    node = _NODE.match(pattern)
    while node is not None:
        if node[2]:
            properties = f" {_properties(node[3])}" if node[3] else ""
            yield f"${_node_name(node)}: {type_name(node[2])}{properties}"
        edge = _EDGE.match(pattern, node.end())
        next_node = _NODE.match(pattern, edge.end()) if edge is not None else None
        end = node.end()
        if edge is not None and next_node is not None:
            traversals.append(_traversal(_node_name(node), edge, _node_name(next_node)))
        elif pattern[end:].strip():
            yield pattern[end:]  # leave an unsupported pattern unchanged, so that the result does not parse
        node = next_node
    yield from traversals


def _node_name(node: re.Match[str]) -> str:
    return variable_name(node[1]) or (variable_name(node[2])[:1] if node[2] else "_")


def _traversal(left: str, edge: re.Match[str], right: str) -> str:
    word = edge_word(edge[3])
    if not edge[1] and not edge[6]:
        word = f"<{word}>"
    if edge[1]:
        left, right = right, left
    prefix = f"${variable_name(edge[2])}:" if edge[2] else ""
    hops = f"{{{edge[4]},{edge[5]}}}" if edge[4] else ""
    return f"${left} {prefix}{word}{hops} ${right}"
