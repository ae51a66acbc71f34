"""A graph of a few nodes, and two ways to evaluate a `match` on it.

`rows_of_plan` runs the operators of a plan one after the other. `rows_of_tree` knows nothing of
plans: it tries every assignment of nodes to variables and keeps those the text allows. Both take
single hops only and give a bag of rows.
"""

from collections.abc import Iterator
from itertools import product

from omnigraph.lang.query import model as m
from omnigraph.lang.query import plan

Node = str
Row = dict[str, Node | None]

AGES: dict[Node, int | None] = {"p1": 1, "p2": 2, "p3": None, "p4": 1, "f1": 1, "f2": None}
EDGES: dict[str, list[tuple[Node, Node]]] = {
    "Knows": [("p1", "p2"), ("p1", "p2"), ("p2", "p3"), ("p3", "p1"), ("p4", "p4"), ("p2", "p4")],
    "WorksAt": [("p1", "f1"), ("p2", "f1"), ("p3", "f2")],
}
PERSONS = ("a", "b", "c")
FIRMS = ("f", "g")


def nodes_of(type_name: str) -> list[Node]:
    return [node for node in AGES if node[0] == type_name[0].lower()]


# The plan ---------------------------------------------------------------------------------------


def rows_of_plan(operators: tuple[plan.Operator, ...], rows: list[Row]) -> list[Row]:
    for operator in operators:
        rows = [new for row in rows for new in _step(operator, row)]
    return rows


def _step(operator: plan.Operator, row: Row) -> Iterator[Row]:
    match operator:
        case plan.NodeScan():
            assert operator.variable not in row
            for node in nodes_of(operator.type_name):
                yield from _tested(row | {operator.variable: node}, operator.filters)
        case plan.Expand():
            yield from _expand(operator, row)
        case plan.CloseCycle():
            yield from [row] if row[operator.left] == row[operator.right] else []
        case plan.Filter():
            yield from _tested(row, (operator.predicate,))
        case plan.AntiJoin():
            given = {name: row[name] for name in operator.outer}
            yield from [] if rows_of_plan(operator.inner, [given]) else [row]
        case plan.LeftJoin():
            yield from _left(operator, row)


def _left(operator: plan.LeftJoin, row: Row) -> Iterator[Row]:
    given = {name: row[name] for name in operator.outer}
    found = rows_of_plan(operator.inner, [given])
    assert not set(operator.introduced) & set(row)
    for inner in found or [dict.fromkeys(operator.introduced)]:
        yield row | {name: inner[name] for name in operator.introduced}


def _expand(operator: plan.Expand, row: Row) -> Iterator[Row]:
    assert operator.target not in row
    pairs: list[tuple[str, Node]] = []
    for step in operator.steps:
        for number, (source, target) in enumerate(EDGES[step.edge_type]):
            ways = {"out": [(source, target)], "in": [(target, source)]}
            ways["both"] = list(dict.fromkeys(ways["out"] + ways["in"]))
            ends = [end for start, end in ways[step.direction] if start == row[operator.source]]
            pairs += [(f"{step.edge_type}{number}", end) for end in ends]
    if operator.edge_variable is None:
        pairs = [("", end) for end in dict.fromkeys(end for _, end in pairs)]
    for edge, end in pairs:
        new = row | ({operator.edge_variable: edge} if operator.edge_variable else {})
        assert end in nodes_of(operator.target_type)
        if operator.target is not None:
            new = new | {operator.target: end}
        yield from _tested(new, operator.target_filters)


def _tested(row: Row, tests: tuple[plan.Predicate, ...]) -> Iterator[Row]:
    yield from [row] if all(_holds(test, row) for test in tests) else []


def _holds(test: plan.Predicate, row: Row) -> bool:
    if isinstance(test, plan.IsNull):
        return (_value(test.operand, row) is None) is not test.negated
    assert isinstance(test, plan.Compare)
    sides = _value(test.left, row), _value(test.right, row)
    return None not in sides and (sides[0] == sides[1]) is (test.operator == "=")


def _value(value: plan.Value, row: Row) -> object:
    if isinstance(value, plan.Constant):
        return value.value
    assert isinstance(value, plan.PropertyValue | plan.SystemValue)
    node = row[value.variable]
    if isinstance(value, plan.SystemValue):
        return node
    return None if node is None else AGES[node]


# The text ---------------------------------------------------------------------------------------


def rows_of_tree(clauses: tuple[m.Clause, ...], outside: Row) -> list[Row]:
    """Every row that a list of clauses allows beside the variables bound outside."""
    own = sorted({n for c in clauses for n in _named(c)} - set(outside))
    choices = [nodes_of("Person" if name in PERSONS else "Firm") for name in own]
    rows: list[Row] = []
    for chosen in product(*choices):
        row = outside | dict(zip(own, chosen, strict=True))
        rows += [row] * _ways(clauses, row)
    seen = set(outside)
    for clause in clauses:
        rows = _later(clause, rows, seen)
        seen |= _visible(clause) if isinstance(clause, m.OptionalMatch) else _named(clause)
    return rows


def _named(clause: m.Clause) -> set[str]:
    match clause:
        case m.Binding():
            return {clause.variable.name}
        case m.Traversal():
            return {clause.source.name, clause.target.name} - {"_"}
    return set()


def _visible(clause: m.OptionalMatch) -> set[str]:
    names: set[str] = set()
    for inner in clause.clauses:
        names |= _visible(inner) if isinstance(inner, m.OptionalMatch) else _named(inner)
    return names


def _ways(clauses: tuple[m.Clause, ...], row: Row) -> int:
    """In how many ways the edges of the clauses exist: 0 when a clause does not hold."""
    ways = 1
    for clause in clauses:
        if isinstance(clause, m.Traversal):
            ways *= _edges(clause, row)
        elif isinstance(clause, m.Binding):
            ages = [one.value.text for one in clause.predicates if isinstance(one.value, m.Literal)]
            node = row[clause.variable.name]
            ways *= node is not None and all(str(AGES[node]) == age for age in ages)
    return ways


def _edges(clause: m.Traversal, row: Row) -> int:
    ends = [None if n == "_" else n for n in (clause.source.name, clause.target.name)]
    edges = EDGES["Knows" if clause.edges[0].text == "knows" else "WorksAt"]
    # Between two types the written order is irrelevant; within one it counts, unless undirected.
    both_ways = clause.undirected or (clause.edges[0].text == "worksAt" and any(ends))
    ways = edges + [(b, a) for a, b in edges if a != b] if both_ways else edges
    fits = [pair for pair in ways if all(end is None or row[end] == node for end, node in zip(ends, pair, strict=True))]
    return len(fits) if clause.edge_variable is not None else len(set(fits))


def _later(clause: m.Clause, rows: list[Row], seen: set[str]) -> list[Row]:
    match clause:
        case m.Filter():
            return [row for row in rows if _passes(clause.condition, row)]
        case m.Negation():
            return [row for row in rows if not rows_of_tree(clause.clauses, _seen(row, seen))]
        case m.OptionalMatch():
            new = _visible(clause) - seen
            return [row | more for row in rows for more in _maybe(clause, _seen(row, seen), new)]
    return rows


def _seen(row: Row, seen: set[str]) -> Row:
    return {name: node for name, node in row.items() if name in seen}


def _maybe(clause: m.OptionalMatch, given: Row, new: set[str]) -> list[Row]:
    found = rows_of_tree(clause.clauses, given)
    return [{n: row[n] for n in new} for row in found] or [dict.fromkeys(new)]


def _passes(condition: m.Condition, row: Row) -> bool:
    assert isinstance(condition, m.Comparison)
    sides = []
    for side in (condition.left, condition.right):
        if isinstance(side, m.Field):
            node = row[side.variable]
            sides.append(None if node is None or AGES[node] is None else str(AGES[node]))
        else:
            assert isinstance(side, m.Literal)
            sides.append(side.text)
    return None not in sides and (sides[0] == sides[1]) is (condition.operator == "=")
