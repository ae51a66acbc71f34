"""Mutations: insert, update, delete.

Owns targets, assignments and the `where` of a statement (T10 to T14, T16, T3, T7, D2). Constraints
on data, such as keys and ranges, are checked when the statement runs.
"""

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.names import did_you_mean

from .assignments import assignments
from .rows import row_condition
from .scope import Scope


def check_write(scope: Scope, name: m.Name, body: m.WriteBody) -> plan.WritePlan | None:
    """Return the plan of a mutation, or None after reporting what is wrong."""
    _check_mixture(scope, name, body)
    statements = [_statement(scope, one) for one in body.statements]
    found = tuple(one for one in statements if one is not None)
    return plan.WritePlan(found) if len(found) == len(statements) else None


def _check_mixture(scope: Scope, name: m.Name, body: m.WriteBody) -> None:
    """Deletes act on the committed state, other statements also on earlier ones: never mix them."""
    deletes = [one for one in body.statements if isinstance(one, m.Delete)]
    if deletes and len(deletes) < len(body.statements):
        message = f"query `{name.text}` mixes `delete` with `insert` or `update`"
        hint = "use two queries, on a branch if they must take effect together"
        scope.report.error(deletes[0].type_name.span, message, "D2", hint=hint)


def _statement(scope: Scope, node: m.Statement) -> plan.WriteStatement | None:
    target = _target(scope, node.type_name)
    match node:
        case m.Insert():
            return _insert(scope, node, target)
        case m.Update():
            return _update(scope, node, target)
        case m.Delete():
            return _delete(scope, node, target)


def _target(scope: Scope, name: m.Name) -> Node | Edge | None:
    found = scope.catalog.node(name.text) or scope.catalog.edge(name.text)
    if found is None:
        known = [one.name for one in scope.catalog.nodes]
        known += [one.name for one in scope.catalog.edges]
        hint = did_you_mean(name.text, known)
        message = f"unknown type `{name.text}`"
        scope.report.error(name.span, message, "T10", hint=hint)
    return found


def _insert(scope: Scope, node: m.Insert, target: Node | Edge | None) -> plan.InsertRow | None:
    assigned = assignments(scope, target, node.assignments)
    if target is None:
        return None
    if not node.assignments:
        scope.report.error(node.type_name.span, "an insert without assignments", "T10")
    given = {one.name.text for one in node.assignments}
    missing = _missing(target, given) if node.assignments else []
    if missing:
        message = f"{target.name} needs {_listed(missing)}"
        scope.report.error(node.type_name.span, message, "T12")
    return plan.InsertRow("node" if isinstance(target, Node) else "edge", target.name, assigned)


def _missing(target: Node | Edge, given: set[str]) -> list[str]:
    wanted = ["from", "to"] if isinstance(target, Edge) else []
    for one in target.properties:
        embedded = one.embed is not None and one.embed.source in given
        if not one.type.nullable and one.default is None and not embedded:
            wanted.append(one.name)
    return [name for name in wanted if name not in given]


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _update(scope: Scope, node: m.Update, target: Node | Edge | None) -> plan.UpdateRows | None:
    if isinstance(target, Edge):
        message = f"{target.name} is an edge type, and edges cannot be updated"
        hint = "delete the edge and insert it again"
        scope.report.error(node.type_name.span, message, "T16", hint=hint)
        return None
    assigned = assignments(scope, target, node.assignments)
    where = row_condition(scope, target, node.where)
    if target is None:
        return None
    if not node.assignments:
        scope.report.error(node.type_name.span, "an update without assignments", "T10")
    for one in node.assignments:
        if one.name.text in (target.key or ()):
            message = f"`{one.name.text}` is part of the key of {target.name} and cannot change"
            hint = "delete the node and insert it again"
            scope.report.error(one.name.span, message, hint=hint)
    return plan.UpdateRows(target.name, assigned, where) if where is not None else None


def _delete(scope: Scope, node: m.Delete, target: Node | Edge | None) -> plan.DeleteRows | None:
    where = row_condition(scope, target, node.where)
    if target is None or where is None:
        return None
    if isinstance(target, Edge):
        return plan.DeleteRows("edge", target.name, where)
    incident = [e.name for e in scope.catalog.edges if target.name in (e.source, e.target)]
    return plan.DeleteRows("node", target.name, where, tuple(sorted(incident)))
