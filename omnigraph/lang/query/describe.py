"""What a compiled query returns, reads and writes, without running it.

Owns the operation descriptor that clients and tools see; its JSON is a wire form and must not
change. Column names are those of the results.
"""

from collections.abc import Iterable, Iterator
from typing import Literal as OneOf

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.record import record
from omnigraph.values import PropertyType, ScalarType

from . import plan

TypeKind = OneOf["node", "edge"]

_KINDS = {
    ScalarType.STRING: "string",
    ScalarType.BLOB: "blob",
    ScalarType.BOOL: "bool",
    ScalarType.I32: "int",
    ScalarType.U32: "int",
    ScalarType.I64: "bigint",
    ScalarType.U64: "bigint",
    ScalarType.F32: "float",
    ScalarType.F64: "float",
    ScalarType.DATE: "date",
    ScalarType.DATETIME: "datetime",
    ScalarType.VECTOR: "vector",
}


@record
class ResultColumn:
    """One result column: its name and the kind of its values."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None

    def to_json(self) -> dict[str, object]:
        """Return the members that a client reads; members without a value are omitted."""
        found: dict[str, object] = {
            "name": self.name,
            "kind": self.kind,
            "nullable": self.nullable,
            "item_kind": self.item_kind,
            "vector_dim": self.vector_dim,
        }
        return {name: value for name, value in found.items() if value is not None}


@record
class TypeRef:
    """A node or edge type."""

    kind: TypeKind
    type_name: str

    def to_json(self) -> dict[str, object]:
        """Return the members that a client reads."""
        return {"kind": self.kind, "type_name": self.type_name}


@record
class Operation:
    """The descriptor of a query; `result` is empty for a mutation."""

    result: tuple[ResultColumn, ...]
    reads: tuple[TypeRef, ...]
    writes: tuple[TypeRef, ...]

    def to_json(self) -> dict[str, object]:
        """Return `{result, reads, writes}`."""
        return {
            "result": [one.to_json() for one in self.result],
            "reads": [one.to_json() for one in self.reads],
            "writes": [one.to_json() for one in self.writes],
        }


def describe(what: plan.Plan, catalog: Catalog) -> Operation:
    """Return the descriptor of a plan."""
    if isinstance(what, plan.ReadPlan):
        optional = frozenset(_optional(what.operators))
        result = tuple(_column(one, optional) for one in what.columns)
        return Operation(result, _sorted(_reads(what.operators, catalog)), ())
    writes = frozenset(_written(what))
    reads = frozenset(_read_by(what, catalog))
    return Operation((), _sorted(reads | writes), _sorted(writes))


def kind_of(kind: PropertyType) -> str:
    """Return the word for a type in descriptors.

    >>> kind_of(PropertyType(ScalarType.U32)), kind_of(PropertyType(ScalarType.I32, is_list=True))
    ('int', 'list')
    """
    return "list" if kind.is_list else _KINDS[kind.scalar]


def _column(column: plan.Column, optional: frozenset[str]) -> ResultColumn:
    kind = column.type
    if kind is None:
        entity = column.value
        missing = isinstance(entity, plan.Entity) and entity.variable in optional
        return ResultColumn(column.name, "object", missing)
    item = _KINDS[kind.scalar] if kind.is_list else None
    return ResultColumn(column.name, kind_of(kind), kind.nullable, item, kind.vector_dim)


def _optional(operators: Iterable[plan.Operator]) -> Iterator[str]:
    for operator in operators:
        if isinstance(operator, plan.LeftJoin):
            yield from operator.introduced


def _reads(operators: Iterable[plan.Operator], catalog: Catalog) -> Iterator[TypeRef]:
    for operator in operators:
        match operator:
            case plan.NodeScan():
                names = operator.implementers
                if catalog.node(operator.type_name) is not None:
                    names = (operator.type_name,)
                yield from (TypeRef("node", name) for name in names)
            case plan.Expand():
                for step in operator.steps:
                    yield from _edge_and_ends(step.edge_type, catalog)
            case plan.AntiJoin() | plan.LeftJoin():
                yield from _reads(operator.inner, catalog)


def _edge_and_ends(name: str, catalog: Catalog) -> Iterator[TypeRef]:
    yield TypeRef("edge", name)
    edge = catalog.edge(name)
    if edge is not None:
        yield from (TypeRef("node", edge.source), TypeRef("node", edge.target))


def _written(write: plan.WritePlan) -> Iterator[TypeRef]:
    for statement in write.statements:
        match statement:
            case plan.UpdateRows():
                yield TypeRef("node", statement.type_name)
            case plan.InsertRow():
                yield TypeRef(statement.kind, statement.type_name)
            case plan.DeleteRows():
                yield TypeRef(statement.kind, statement.type_name)
                yield from (TypeRef("edge", name) for name in statement.cascades)


def _read_by(write: plan.WritePlan, catalog: Catalog) -> Iterator[TypeRef]:
    for statement in write.statements:
        if isinstance(statement, plan.InsertRow) and statement.kind == "edge":
            yield from _edge_and_ends(statement.type_name, catalog)


def _sorted(found: Iterable[TypeRef]) -> tuple[TypeRef, ...]:
    return tuple(sorted(set(found), key=lambda one: (one.kind != "node", one.type_name)))
