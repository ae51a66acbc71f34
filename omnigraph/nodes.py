"""Node and edge sets: chained calls that build one query of the query language.

Never a second engine: a chain only builds query text, which `to_query` shows, and every value is a
parameter. Sets are immutable; each call returns a new one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from omnigraph.errors import InputError, UsageError
from omnigraph.lang.schema.catalog import Catalog, Edge, Interface
from omnigraph.lang.schema.catalog import Node as NodeType
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.lazy import Lazy
from omnigraph.naming import quote_name, require_text
from omnigraph.predicate import declared, translate
from omnigraph.result import Result
from omnigraph.values import PropertyType, ScalarType

Run = Callable[[str, Mapping[str, Any]], Result]
Hops = int | tuple[int, int]
_TEXT = PropertyType(ScalarType.STRING)
_COUNT = PropertyType(ScalarType.I64)


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter of the query being built: its declared type and its value."""

    type: str
    value: Any


@dataclass(frozen=True, slots=True)
class Chain(Lazy):
    """The common base of node and edge sets: clauses, parameters, columns and order so far.

    `variable` stands for the entities of the set; `properties` are theirs, with system fields.
    """

    run: Run = field(repr=False)
    catalog: Catalog = field(repr=False)
    type_name: str
    variable: str
    properties: Mapping[str, PropertyType] = field(repr=False)
    clauses: tuple[str, ...] = ()
    given: Mapping[str, Given] = field(default_factory=dict, repr=False)
    columns: tuple[str, ...] | None = None
    order: tuple[tuple[str, bool], ...] = ()
    hops: int = 0
    most: str | None = None
    skipped: str | None = None

    # Building -----------------------------------------------------------------------------------

    def filter(self, predicate: str, /, **params: Any) -> Self:
        """Keep entities for which a predicate holds: `filter("age > $min", min=30)`.

        Write property names bare. `starts_with(name, 'A')` and `name starts_with 'A'` both work.
        """
        self._open("filter")
        owner = self.type_name
        prefix = f"${self.variable}."
        found = translate(predicate, self.properties, params, prefix=prefix, owner=owner)
        taken = {name: Given(found.types[name], value) for name, value in params.items()}
        clash = next((n for n in taken if n in self.given and self.given[n] != taken[n]), None)
        if clash is not None:
            message = f"${clash} already has another value"
            raise InputError(message, reason="duplicate parameter")
        return self._and(f"({found.text})", taken)

    def where(self, **values: Any) -> Self:
        """Keep entities whose properties have these values.

        None matches a missing property, a list matches any of its members; a list property must
        contain the value.
        """
        self._open("where")
        kept = self
        for name, value in values.items():
            kept = kept._equal(self._known(name), value)
        return kept

    def select(self, *names: str) -> Self:
        """Select the properties to return; the default is all except blobs."""
        return replace(self, columns=tuple(self._readable(name) for name in names))

    def order_by(self, *names: str) -> Self:
        """Sort by properties; `-age` sorts in descending order."""
        wanted = tuple((self._readable(n.removeprefix("-")), n.startswith("-")) for n in names)
        return replace(self, order=wanted)

    def limit(self, n: int) -> Self:
        """Return at most `n` entities."""
        name, given = self._parameter(_COUNT, n)
        return replace(self, most=name, given=given)

    def offset(self, n: int) -> Self:
        """Skip the first `n` entities."""
        name, given = self._parameter(_COUNT, n)
        return replace(self, skipped=name, given=given)

    # Running ------------------------------------------------------------------------------------

    def result(self) -> Result:
        """Run the query."""
        return self.run(self.to_query(), self.params)

    @property
    def params(self) -> dict[str, Any]:
        """The parameter values of `to_query`."""
        return {name: one.value for name, one in self.given.items()}

    def to_query(self) -> str:
        """Return the set as a query in the query language."""
        columns = self._columns()
        shown = [f"${self.variable}.{name} as {name}" for name in columns]
        order = [
            f"{name if name in columns else self._of(name)}{' desc' * down}"
            for name, down in self.order
        ]
        return self._text(shown, order, distinct=self.hops > 0)

    def count(self) -> int:
        """Return the number of entities."""
        if self.most or self.skipped:
            return len(self.ids())
        counted = f"distinct ${self.variable}.id" if self.hops else f"${self.variable}.id"
        text = self._text([f"count({counted}) as count"], [], distinct=False)
        return int(self.run(text, self.params).scalar())

    def exists(self) -> bool:
        """Return whether there is at least one entity."""
        first = self if self.most else self.limit(1)
        return bool(first.select("id").result())

    def ids(self) -> list[str]:
        """Return only the ids."""
        return self.select("id").result().scalars("id")

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return self.exists()

    # Helpers ------------------------------------------------------------------------------------

    def _text(self, shown: list[str], order: list[str], *, distinct: bool) -> str:
        declared = ", ".join(f"${name}: {one.type}" for name, one in self.given.items())
        lines = [f"query {self._name()}({declared}) {{", "    match {"]
        lines += [f"        {clause}" for clause in self.clauses]
        lines += ["    }", f"    return {'distinct ' * distinct}{{ {', '.join(shown)} }}"]
        lines += [f"    order {{ {', '.join(order)} }}"] if order else []
        lines += [f"    limit ${self.most}"] if self.most and shown[0][:6] != "count(" else []
        lines += [f"    offset ${self.skipped}"] if self.skipped else []
        return "\n".join([*lines, "}", ""])

    def _columns(self) -> list[str]:
        """Return the columns; after a hop ids keep entities distinct, and sort keys are added."""
        wanted = list(self.columns or self._all())
        if self.hops:
            wanted = ["id", *wanted] + [name for name, _ in self.order]
        return list(dict.fromkeys(wanted))

    def _all(self) -> Iterator[str]:
        blobs = {n for n, kind in self.properties.items() if kind.scalar is ScalarType.BLOB}
        return (name for name in self.properties if name not in blobs)

    def _name(self) -> str:
        return "nodes"

    def _of(self, name: str) -> str:
        return f"${self.variable}.{name}"

    def _equal(self, name: str, value: Any) -> Self:
        kind = self.properties[name]
        if value is None:
            return self._and(f"{self._of(name)} is null", {})
        self._check_enum(name, kind, value)
        if isinstance(value, list | tuple | set | frozenset) and not kind.is_list:
            wanted, sign, value = PropertyType(kind.scalar, is_list=True), "in", list(value)
        elif kind.is_list:
            wanted, sign = kind.element(), "contains"
        else:
            wanted, sign = kind, "="
        parameter, given = self._parameter(wanted, value)
        return replace(self, given=given)._and(f"{self._of(name)} {sign} ${parameter}", {})

    def _check_enum(self, name: str, kind: PropertyType, value: Any) -> None:
        """Refuse a value that no entity can have: it is a mistake, not an empty result."""
        known = kind.enum_values or ()
        for one in value if isinstance(value, list | tuple | set | frozenset) else (value,):
            if known and isinstance(one, str) and str(getattr(one, "value", one)) not in known:
                told = f"'{one}' is not a value of {self.type_name}.{name}"
                hint = did_you_mean(one, known, f"one of {', '.join(known)}")
                raise InputError(told, reason="unknown enum value", hint=hint)

    def _parameter(self, kind: PropertyType, value: Any) -> tuple[str, dict[str, Given]]:
        name = f"p{len(self.given)}"
        return name, {**self.given, name: Given(declared(kind, value), value)}

    def _and(self, clause: str, given: Mapping[str, Given]) -> Self:
        return replace(self, clauses=(*self.clauses, clause), given={**self.given, **given})

    def _open(self, what: str) -> None:
        if self.most or self.skipped:
            raise UsageError(reason=f"{what} must come before limit and offset")

    def _known(self, name: str) -> str:
        if name not in self.properties:
            raise InputError(
                f"{self.type_name} has no property '{name}'",
                reason="unknown property",
                hint=did_you_mean(name, self.properties),
            )
        return name

    def _readable(self, name: str) -> str:
        if self.properties[self._known(name)].scalar is ScalarType.BLOB:
            message = f"{self.type_name}.{name} is a blob and cannot be selected or sorted by"
            raise InputError(message, reason="blob property")
        return name


@dataclass(frozen=True, slots=True)
class NodeSet(Chain):
    """Nodes of one type, or of one interface.

    After a hop along edges each node occurs once, and its id is among the columns.
    """

    def out(self, edge: str, *, hops: Hops = 1) -> "NodeSet":
        """Return the nodes at the targets of outgoing edges."""
        return self._step(edge, hops, "out")

    def in_(self, edge: str, *, hops: Hops = 1) -> "NodeSet":
        """Return the nodes at the sources of incoming edges."""
        return self._step(edge, hops, "in")

    def both(self, edge: str, *, hops: Hops = 1) -> "NodeSet":
        """Return the neighbours along edges in either direction."""
        return self._step(edge, hops, "both")

    def _step(self, name: str, hops: Hops, way: str) -> "NodeSet":
        self._open("a hop along edges")
        edge = _edge(self.catalog, name)
        here, there = (edge.source, edge.target)[:: -1 if way == "in" else 1]
        if here != self.type_name or (way == "both" and here != there):
            raise InputError(
                f"{edge.name} leads from {edge.source} to {edge.target}; it cannot be followed"
                f" {way} from {self.type_name}",
                reason="wrong edge",
            )
        low, high = (hops, hops) if isinstance(hops, int) else hops
        bounds = "" if (low, high) == (1, 1) else f"{{{int(low)},{int(high)}}}"
        new = f"n{self.hops + 1}"
        word = _word(edge)
        ends = {"out": (self.variable, new), "in": (new, self.variable)}
        left, right = ends.get(way, (self.variable, new))
        clause = f"${left} {f'<{word}>' if way == 'both' else word}{bounds} ${right}"
        moved = self._and(clause, {})
        known = _properties(_node(self.catalog, there))
        return replace(
            moved,
            type_name=there,
            variable=new,
            properties=known,
            hops=self.hops + 1,
            columns=None,
            order=(),
        )


@dataclass(frozen=True, slots=True)
class EdgeSet(Chain):
    """Edges of one type: their ids, endpoints and properties."""

    def _name(self) -> str:
        return "edges"


def node_set(run: Run, catalog: Catalog, type_name: str) -> NodeSet:
    """Return all nodes of a type or interface."""
    found = _node(catalog, type_name)
    return NodeSet(run, catalog, found.name, "n0", _properties(found), (f"$n0: {found.name}",))


def edge_set(run: Run, catalog: Catalog, name: str) -> EdgeSet:
    """Return all edges of a type."""
    edge = _edge(catalog, name)
    known = {"id": _TEXT, "from": _TEXT, "to": _TEXT, **_declared(edge)}
    clauses = (f"$n0: {edge.source}", f"$n0 $e0:{_word(edge)} $n1")
    return EdgeSet(run, catalog, edge.name, "e0", known, clauses)


def _properties(one: NodeType | Interface) -> dict[str, PropertyType]:
    return {"id": _TEXT, **_declared(one)}


def _declared(one: NodeType | Interface | Edge) -> dict[str, PropertyType]:
    return {prop.name: prop.type for prop in one.properties}


def _node(catalog: Catalog, name: str) -> NodeType | Interface:
    require_text(name, "type")
    found = catalog.node(name) or catalog.interface(name)
    if found is None:
        known = [*(one.name for one in catalog.nodes), *(one.name for one in catalog.interfaces)]
        message = f"unknown node type {quote_name(name)}"
        raise InputError(message, reason="unknown type", hint=did_you_mean(name, known))
    return found


def _edge(catalog: Catalog, name: str) -> Edge:
    found = catalog.edge_by_word(require_text(name, "type"))
    if found is None:
        known = [one.name for one in catalog.edges]
        message = f"unknown edge type {quote_name(name)}"
        raise InputError(message, reason="unknown type", hint=did_you_mean(name, known))
    return found


def _word(edge: Edge) -> str:
    """Return the name of an edge type as queries spell it."""
    return edge.name[0].lower() + edge.name[1:]


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its id, its type and its properties.

    >>> ada = Node("ada", "Person", {"age": 36})
    >>> ada["age"], ada.age
    (36, 36)
    """

    id: str
    type: str
    properties: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.id if name == "id" else self.properties[name]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.properties:
            return self.properties[name]
        raise AttributeError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return the id and the properties in one dict."""
        return {"id": self.id, **self.properties}
