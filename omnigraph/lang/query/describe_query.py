"""Describe what a compiled query returns, reads and writes, without running it.

Clients and tools receive this description as an operation descriptor. Its JSON form is part of the wire format and must
not change. Descriptors use the same column names as results.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal as OneOf

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType, ScalarType

from . import plan, plan_paths

TypeKind = OneOf["node", "edge"]

_SCALAR_KINDS = {
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
    """A result column, with its name and the kind of values it contains."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None

    def to_json(self) -> dict[str, object]:
        """Return the column as a JSON object without empty members."""
        members: dict[str, object] = {
            "name": self.name,
            "kind": self.kind,
            "nullable": self.nullable,
            "item_kind": self.item_kind,
            "vector_dim": self.vector_dim,
        }
        return {member_name: member_value for member_name, member_value in members.items() if member_value is not None}


@record
class TypeRef:
    """A node or edge type that a query reads or writes."""

    kind: TypeKind
    type_name: str

    def to_json(self) -> dict[str, object]:
        """Return the type as a JSON object."""
        return {"kind": self.kind, "type_name": self.type_name}


@record
class Operation:
    """A query's descriptor. `result` is empty if the query is a mutation."""

    result: tuple[ResultColumn, ...]
    reads: tuple[TypeRef, ...]
    writes: tuple[TypeRef, ...]

    def to_json(self) -> dict[str, object]:
        """Return a JSON object with the members `result`, `reads` and `writes`."""
        return {
            "result": [entry.to_json() for entry in self.result],
            "reads": [entry.to_json() for entry in self.reads],
            "writes": [entry.to_json() for entry in self.writes],
        }


def describe_plan(query_plan: plan.Plan, catalog: Catalog) -> Operation:
    """Return a plan's descriptor."""
    if isinstance(query_plan, plan.ReadPlan):
        return Operation(_describe_columns(query_plan), _sort_types(_read_types(query_plan.operators, catalog)), ())
    if isinstance(query_plan, plan.UnionPlan):
        read_types = {read_type for part in query_plan.parts for read_type in _read_types(part.operators, catalog)}
        return Operation(_describe_union_columns(query_plan), _sort_types(read_types), ())
    written_types = frozenset(_written_types(query_plan))
    types_read = frozenset(_types_read_by_write(query_plan, catalog))
    return Operation((), _sort_types(types_read | written_types), _sort_types(written_types))


def _describe_columns(read_plan: plan.ReadPlan) -> tuple[ResultColumn, ...]:
    optional_variables = frozenset(_optional_variables(read_plan.operators))
    return tuple(_describe_column(plan_column, optional_variables) for plan_column in read_plan.columns)


def _describe_union_columns(union_plan: plan.UnionPlan) -> tuple[ResultColumn, ...]:
    """Return a union's columns. A column is nullable if it is nullable in any part."""
    columns_by_part = [_describe_columns(part) for part in union_plan.parts]
    nullable_columns = [any(column.nullable for column in same) for same in zip(*columns_by_part, strict=True)]
    return tuple(
        replace(_describe_column(plan_column, frozenset()), nullable=is_nullable)
        for plan_column, is_nullable in zip(union_plan.columns, nullable_columns, strict=True)
    )


def kind_word(property_type: PropertyType) -> str:
    """Return the word that descriptors use for a property type.

    >>> kind_word(PropertyType(ScalarType.U32))
    'int'
    >>> kind_word(PropertyType(ScalarType.I32, is_list=True))
    'list'
    """
    return "list" if property_type.is_list else _SCALAR_KINDS[property_type.scalar]


def _describe_column(plan_column: plan.PlanColumn, optional_variables: frozenset[str]) -> ResultColumn:
    column_type = plan_column.type
    if column_type is None:
        column_value = plan_column.value
        may_be_missing = (
            isinstance(column_value, plan.Entity | plan_paths.PathEntity)
            and column_value.variable in optional_variables
        )
        return ResultColumn(plan_column.name, "object", may_be_missing)
    return describe_value_kind(plan_column.name, column_type)


def describe_value_kind(name: str, value_type: PropertyType) -> ResultColumn:
    """Describe a result column or a parameter by its name, kind and nullability.

    >>> describe_value_kind("tags", PropertyType(ScalarType.STRING, is_list=True)).to_json()
    {'name': 'tags', 'kind': 'list', 'nullable': False, 'item_kind': 'string'}
    """
    item_kind = _SCALAR_KINDS[value_type.scalar] if value_type.is_list else None
    return ResultColumn(name, kind_word(value_type), value_type.nullable, item_kind, value_type.vector_dim)


def _optional_variables(operators: Iterable[plan.Operator]) -> Iterator[str]:
    for operator in operators:
        if isinstance(operator, plan.LeftJoin):
            yield from operator.introduced


def _read_types(operators: Iterable[plan.Operator], catalog: Catalog) -> Iterator[TypeRef]:
    for operator in operators:
        match operator:
            case plan.NodeScan():
                node_types = operator.implementers
                if catalog.node(operator.type_name) is not None:
                    node_types = (operator.type_name,)
                yield from (TypeRef("node", node_type) for node_type in node_types)
            case plan.Expand() | plan.FindPaths():
                for step in operator.steps:
                    yield from _edge_and_endpoint_types(step.edge_type, catalog)
            case plan.AntiJoin() | plan.LeftJoin():
                yield from _read_types(operator.inner, catalog)


def _edge_and_endpoint_types(edge_type: str, catalog: Catalog) -> Iterator[TypeRef]:
    yield TypeRef("edge", edge_type)
    edge = catalog.edge(edge_type)
    if edge is not None:
        yield from (TypeRef("node", edge.source), TypeRef("node", edge.target))


def _written_types(write_plan: plan.WritePlan) -> Iterator[TypeRef]:
    for statement in write_plan.statements:
        match statement:
            case plan.DeleteRows() | plan.MatchedDelete():
                yield TypeRef(statement.kind, statement.type_name)
                yield from (TypeRef("edge", edge_type) for edge_type in statement.cascades)
            case _:
                yield TypeRef(statement.kind, statement.type_name)


def _types_read_by_write(write_plan: plan.WritePlan, catalog: Catalog) -> Iterator[TypeRef]:
    for statement in write_plan.statements:
        if isinstance(statement, plan.InsertRow | plan.UpsertRow) and statement.kind == "edge":
            yield from _edge_and_endpoint_types(statement.type_name, catalog)
        elif isinstance(statement, plan.MatchedUpdate | plan.MatchedDelete):
            yield from _read_types(statement.matched.operators, catalog)


def _sort_types(type_refs: Iterable[TypeRef]) -> tuple[TypeRef, ...]:
    return tuple(sorted(set(type_refs), key=lambda type_ref: (type_ref.kind != "node", type_ref.type_name)))
