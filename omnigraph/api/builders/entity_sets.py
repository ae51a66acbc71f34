"""Node and edge sets: chained calls that build a single query.

A chain only builds query text, which `to_query` returns, and every value is passed as a parameter. Sets are immutable,
so each call returns a new set.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Never, Self

from omnigraph.api.builders.argument_names import name_arguments
from omnigraph.api.builders.predicates import parameter_declaration, property_in_queries, translate_predicate
from omnigraph.api.builders.type_lookup import require_node_type
from omnigraph.api.results.lazy_result import LazyResult
from omnigraph.api.results.result import Result
from omnigraph.errors import InputError, UsageError
from omnigraph.lang.schema.catalog import Catalog, EdgeType, InterfaceType, NodeType
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.values import PropertyType, ScalarType

QueryRunner = Callable[[str, Mapping[str, Any]], Result]
HopRange = int | tuple[int, int]
_STRING_TYPE = PropertyType(ScalarType.STRING)
_COUNT_TYPE = PropertyType(ScalarType.I64)


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A parameter in the query being built, with its declared type and its value.

    If the parameter's name is generated, `argument` is the name of the caller's argument.
    """

    type: str
    value: Any
    argument: str | None = None


@dataclass(frozen=True, slots=True)
class EntitySet(LazyResult):
    """Base class for node and edge sets. It holds the clauses, parameters, columns and sort order collected so far.

    `variable` is the query variable for the entities. `properties` are the entities' properties, including system
    fields.
    """

    run_query: QueryRunner = field(repr=False)
    catalog: Catalog = field(repr=False)
    type_name: str
    variable: str
    properties: Mapping[str, PropertyType] = field(repr=False)
    clauses: tuple[str, ...] = ()
    parameters: Mapping[str, QueryParameter] = field(default_factory=dict, repr=False)
    columns: tuple[str, ...] | None = None
    order: tuple[tuple[str, bool], ...] = ()
    hops: int = 0
    limit_parameter: str | None = None
    offset_parameter: str | None = None

    # Building -----------------------------------------------------------------------------------

    def filter(self, predicate: str, /, **params: Any) -> Self:
        """Keep the entities that match a predicate, as in `filter("age > $min", min=30)`.

        Write property names without a prefix. Both `starts_with(name, 'A')` and `name starts_with
        'A'` work.
        """
        self._require_no_limit("`filter`")
        owner = self.type_name
        property_prefix = f"${self.variable}."
        translated = translate_predicate(predicate, self.properties, params, prefix=property_prefix, owner=owner)
        new_parameters = {
            parameter_name: QueryParameter(translated.types[parameter_name], value)
            for parameter_name, value in params.items()
        }
        conflicting_name = next(
            (
                candidate_name
                for candidate_name in new_parameters
                if candidate_name in self.parameters
                and self.parameters[candidate_name] != new_parameters[candidate_name]
            ),
            None,
        )
        if conflicting_name is not None:
            message = f"parameter ${conflicting_name} already has a different value"
            raise InputError(message, reason="duplicate parameter")
        return self._add_clause(f"({translated.text})", new_parameters)

    def where(self, *predicates: Never, **values: Any) -> Self:
        """Keep the entities whose properties have the given values.

        None matches entities whose property is null, and a list matches entities whose value is in the list. A list
        property matches if it contains the given value.
        """
        if predicates:
            reason = "`where` accepts values by property name, as in where(age=30)"
            raise UsageError(reason=reason, hint=f"write .filter({json.dumps(predicates[0], default=str)})")
        self._require_no_limit("`where`")
        filtered_set = self
        for property_name, value in values.items():
            filtered_set = filtered_set._filter_equal(self._require_property(property_name), value)
        return filtered_set

    def select(self, *names: str) -> Self:
        """Select the properties to return. By default, all properties except blobs are returned."""
        return replace(self, columns=tuple(self._require_readable(property_name) for property_name in names))

    def order_by(self, *names: str) -> Self:
        """Sort by the given properties. `-age` sorts in descending order."""
        sort_keys = tuple(
            (self._require_readable(sort_name.removeprefix("-")), sort_name.startswith("-")) for sort_name in names
        )
        return replace(self, order=sort_keys)

    def limit(self, n: int) -> Self:
        """Return at most `n` entities."""
        parameter_name, parameters = self._add_parameter(_COUNT_TYPE, n, "limit")
        return replace(self, limit_parameter=parameter_name, parameters=parameters)

    def offset(self, n: int) -> Self:
        """Skip the first `n` entities."""
        parameter_name, parameters = self._add_parameter(_COUNT_TYPE, n, "offset")
        return replace(self, offset_parameter=parameter_name, parameters=parameters)

    # Running ------------------------------------------------------------------------------------

    def result(self) -> Result:
        """Run the query."""
        return self._run(self.to_query())

    @property
    def params(self) -> dict[str, Any]:
        """The parameter values for the query text that `to_query` returns."""
        return {name: parameter.value for name, parameter in self.parameters.items()}

    def to_query(self) -> str:
        """Return the set as query text."""
        columns = self._returned_columns()
        return_items = [f"${self.variable}.{column_name} as {column_name}" for column_name in columns]
        order_items = [
            f"{name if name in columns else self._property_reference(name)}{' desc' * descending}"
            for name, descending in self.order
        ]
        return self._build_query(return_items, order_items, distinct=self.hops > 0)

    def count(self) -> int:
        """Return the number of entities."""
        if self.limit_parameter or self.offset_parameter:
            return len(self.ids())
        counted_expression = f"distinct ${self.variable}.id" if self.hops else f"${self.variable}.id"
        query_text = self._build_query([f"count({counted_expression}) as count"], [], distinct=False)
        return int(self._run(query_text).scalar())

    def exists(self) -> bool:
        """Return whether there is at least one entity."""
        limited_set = self if self.limit_parameter else self.limit(1)
        return bool(limited_set.select("id").result())

    def ids(self) -> list[str]:
        """Return only the ids."""
        return self.select("id").result().scalars("id")

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return self.exists()

    # Helpers ------------------------------------------------------------------------------------

    def _run(self, query_text: str) -> Result:
        arguments = {name: parameter.argument for name, parameter in self.parameters.items() if parameter.argument}
        with name_arguments(arguments):
            return self.run_query(query_text, self.params)

    def _build_query(self, return_items: list[str], order_items: list[str], *, distinct: bool) -> str:
        declarations = ", ".join(
            f"${parameter_name}: {parameter.type}" for parameter_name, parameter in self.parameters.items()
        )
        query_lines = [f"query {self._query_name()}({declarations}) {{", "    match {"]
        query_lines += [f"        {clause}" for clause in self.clauses]
        query_lines += ["    }", f"    return {'distinct ' * distinct}{{ {', '.join(return_items)} }}"]
        query_lines += [f"    order {{ {', '.join(order_items)} }}"] if order_items else []
        query_lines += (
            [f"    limit ${self.limit_parameter}"] if self.limit_parameter and return_items[0][:6] != "count(" else []
        )
        query_lines += [f"    offset ${self.offset_parameter}"] if self.offset_parameter else []
        return "\n".join([*query_lines, "}", ""])

    def _returned_columns(self) -> list[str]:
        """Return the columns to select. After a traversal, they include the id and the sort keys."""
        column_names = list(self.columns or self._readable_names())
        if self.hops:
            column_names = ["id", *column_names] + [sort_name for sort_name, _ in self.order]
        return list(dict.fromkeys(column_names))

    def _readable_names(self) -> Iterator[str]:
        blob_names = {
            property_name
            for property_name, property_type in self.properties.items()
            if property_type.scalar is ScalarType.BLOB
        }
        return (property_name for property_name in self.properties if property_name not in blob_names)

    def _query_name(self) -> str:
        return "nodes"

    def _property_reference(self, property_name: str) -> str:
        return f"${self.variable}.{property_name}"

    def _filter_equal(self, property_name: str, value: Any) -> Self:
        property_type = self.properties[property_name]
        if value is None:
            return self._add_clause(f"{self._property_reference(property_name)} is null", {})
        self._check_enum(property_name, property_type, value)
        if isinstance(value, list | tuple | set | frozenset) and not property_type.is_list:
            parameter_type = PropertyType(property_type.scalar, is_list=True)
            comparison = "in"
            value = list(value)
        elif property_type.is_list:
            parameter_type, comparison = property_type.element_type(), "contains"
        else:
            parameter_type, comparison = property_type, "="
        parameter_name, parameters = self._add_parameter(parameter_type, value, f"where: {property_name}")
        return replace(self, parameters=parameters)._add_clause(
            f"{self._property_reference(property_name)} {comparison} ${parameter_name}", {}
        )

    def _check_enum(self, property_name: str, property_type: PropertyType, value: Any) -> None:
        """Reject a value that is not a member of the enum, instead of returning an empty result."""
        enum_values = property_type.enum_values or ()
        for member in value if isinstance(value, list | tuple | set | frozenset) else (value,):
            if enum_values and isinstance(member, str) and str(getattr(member, "value", member)) not in enum_values:
                message = f"'{member}' is not a valid value for {self.type_name}.{property_name}"
                hint = did_you_mean(member, enum_values, f"expected one of {', '.join(enum_values)}")
                raise InputError(message, reason="unknown enum value", hint=hint)

    def _add_parameter(
        self, parameter_type: PropertyType, value: Any, argument: str
    ) -> tuple[str, dict[str, QueryParameter]]:
        parameter_name = f"p{len(self.parameters)}"
        parameter = QueryParameter(parameter_declaration(parameter_type, value), value, argument)
        return parameter_name, {**self.parameters, parameter_name: parameter}

    def _add_clause(self, clause: str, new_parameters: Mapping[str, QueryParameter]) -> Self:
        return replace(self, clauses=(*self.clauses, clause), parameters={**self.parameters, **new_parameters})

    def _require_no_limit(self, operation: str) -> None:
        if self.limit_parameter or self.offset_parameter:
            raise UsageError(reason=f"{operation} must come before `limit` and `offset`")

    def _require_property(self, property_name: str) -> str:
        property_name = property_in_queries(property_name, self.properties)
        if property_name not in self.properties:
            raise InputError(
                f"{self.type_name} has no property '{property_name}'",
                reason="unknown property",
                hint=did_you_mean(property_name, self.properties),
            )
        return property_name

    def _require_readable(self, property_name: str) -> str:
        property_name = self._require_property(property_name)
        if self.properties[property_name].scalar is ScalarType.BLOB:
            message = f"{self.type_name}.{property_name} is a blob and cannot be selected or used for sorting"
            raise InputError(message, reason="blob property")
        return property_name


@dataclass(frozen=True, slots=True)
class NodeSet(EntitySet):
    """Nodes of one type or interface.

    After a traversal, each node occurs once, and the result has an `id` column.
    """

    def out(self, edge: str, *, hops: HopRange = 1) -> "NodeSet":
        """Return the nodes at the targets of outgoing edges."""
        return self._follow_edges(edge, hops, "out")

    def in_(self, edge: str, *, hops: HopRange = 1) -> "NodeSet":
        """Return the nodes at the sources of incoming edges."""
        return self._follow_edges(edge, hops, "in")

    def both(self, edge: str, *, hops: HopRange = 1) -> "NodeSet":
        """Return the nodes at the other end of edges in either direction."""
        return self._follow_edges(edge, hops, "both")

    def _follow_edges(self, edge_name: str, hops: HopRange, direction: str) -> "NodeSet":
        self._require_no_limit("a traversal")
        edge = resolve_type(self.catalog, edge_name, "edge", ignore_case=True)
        start_type, end_type = (edge.source, edge.target)[:: -1 if direction == "in" else 1]
        if start_type != self.type_name or (direction == "both" and start_type != end_type):
            raise InputError(
                f"{edge.name} edges go from {edge.source} to {edge.target} and cannot be followed"
                f" in direction '{direction}' from {self.type_name}",
                reason="wrong edge",
            )
        min_hops, max_hops = (hops, hops) if isinstance(hops, int) else hops
        hop_bounds = "" if (min_hops, max_hops) == (1, 1) else f"{{{int(min_hops)},{int(max_hops)}}}"
        new_variable = f"n{self.hops + 1}"
        edge_keyword = _edge_keyword(edge)
        edge_word = f"<{edge_keyword}>" if direction == "both" else edge_keyword
        left, right = self.variable, new_variable
        if direction == "in":
            left, right = right, left
        extended_set = self._add_clause(f"${left} {edge_word}{hop_bounds} ${right}", {})
        end_properties = _node_properties(require_node_type(self.catalog, end_type))
        return replace(
            extended_set,
            type_name=end_type,
            variable=new_variable,
            properties=end_properties,
            hops=self.hops + 1,
            columns=None,
            order=(),
        )


@dataclass(frozen=True, slots=True)
class EdgeSet(EntitySet):
    """Edges of one type, with their ids, endpoints and properties."""

    def _query_name(self) -> str:
        return "edges"


def node_set(run_query: QueryRunner, catalog: Catalog, type_name: str) -> NodeSet:
    """Return all nodes of a type or interface."""
    node_type = require_node_type(catalog, type_name)
    return NodeSet(run_query, catalog, node_type.name, "n0", _node_properties(node_type), (f"$n0: {node_type.name}",))


def edge_set(run_query: QueryRunner, catalog: Catalog, type_name: str) -> EdgeSet:
    """Return all edges of a given type."""
    edge = resolve_type(catalog, type_name, "edge", ignore_case=True)
    edge_properties = {"id": _STRING_TYPE, "from": _STRING_TYPE, "to": _STRING_TYPE, **_declared_properties(edge)}
    clauses = (f"$n0: {edge.source}", f"$n0 $e0:{_edge_keyword(edge)} $n1")
    return EdgeSet(run_query, catalog, edge.name, "e0", edge_properties, clauses)


def _node_properties(node_type: NodeType | InterfaceType) -> dict[str, PropertyType]:
    return {"id": _STRING_TYPE, **_declared_properties(node_type)}


def _declared_properties(entity_type: NodeType | InterfaceType | EdgeType) -> dict[str, PropertyType]:
    return {declared_property.name: declared_property.type for declared_property in entity_type.properties}


def _edge_keyword(edge: EdgeType) -> str:
    """Return an edge type's name as it is written in queries."""
    return edge.name[0].lower() + edge.name[1:]
