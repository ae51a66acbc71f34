"""Build the mutation text and the records for the convenience methods (update, delete and connect_nodes).

Values are never inserted into query text. Instead, each value is passed as a parameter with the type of its property.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import is_dataclass
from typing import Any

from omnigraph.api.builders.argument_names import name_arguments
from omnigraph.api.builders.predicates import parameter_declaration, translate_predicate
from omnigraph.errors import InputError, KeyConflict, ParameterError, UsageError
from omnigraph.ingest.edge_endpoints import with_stored_endpoints
from omnigraph.lang.schema.catalog import ENDPOINT_COLUMNS, Catalog, EdgeType, NodeType
from omnigraph.lang.schema.declared_order import declared_key_columns
from omnigraph.lang.schema.ir import SchemaIR, ordered_key_columns
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.values import PropertyType, ScalarType, entity_id
from omnigraph.values.coerce import coerce_parameter

_STRING_TYPE = PropertyType(ScalarType.STRING)
_ENDPOINT_TYPES = {"from": _STRING_TYPE, "to": _STRING_TYPE}

MutationText = tuple[str, dict[str, Any]]


def build_update(
    catalog: Catalog, type_name: str, predicate: str, new_values: Mapping[str, Any], arguments: Mapping[str, Any]
) -> MutationText:
    """Return a mutation that sets properties, and its parameters."""
    entity_type = resolve_type(catalog, type_name)
    property_types = {declared_property.name: declared_property.type for declared_property in entity_type.properties}
    if not isinstance(new_values, Mapping):
        raise UsageError(reason=f"set must be a mapping of property names to values, not {type(new_values).__name__}")
    if not new_values:
        raise UsageError(reason="`set` must contain at least one property")
    parameter_types, assignments = dict[str, str](), list[str]()
    for parameter_index, (property_name, value) in enumerate(new_values.items()):
        if property_name not in property_types:
            raise _unassignable_property(entity_type, property_name)
        parameter_types[f"p{parameter_index}"] = parameter_declaration(property_types[property_name], value)
        assignments.append(f"{property_name}: $p{parameter_index}")
    condition, condition_types = _translate_condition(entity_type, predicate, arguments)
    header = _query_header("update", parameter_types | condition_types)
    body = f"update {entity_type.name} set {{ {', '.join(assignments)} }} where {condition}"  # noqa: S608
    values = dict(zip(parameter_types, new_values.values(), strict=True))
    return f"{header} {{ {body} }}", values | dict(arguments)


def name_assignments(new_values: Mapping[str, Any]) -> AbstractContextManager[None]:
    """In errors about an update's parameters, replace the parameter names with the names of the properties to set."""
    return name_arguments({f"p{index}": f"set: {property_name}" for index, property_name in enumerate(new_values)})


def _unassignable_property(entity_type: NodeType | EdgeType, property_name: Any) -> InputError:
    if isinstance(entity_type, EdgeType) and property_name in _ENDPOINT_TYPES:
        message = f"'{property_name}' is an endpoint of {entity_type.name} and cannot be changed"
        return InputError(message, reason="endpoint", hint="delete the edge and insert it again")
    property_names = [declared_property.name for declared_property in entity_type.properties]
    return InputError(
        f"{entity_type.name} has no property '{property_name}'",
        reason="unknown property",
        hint=did_you_mean(str(property_name), property_names),
    )


def build_delete(catalog: Catalog, type_name: str, predicate: str, arguments: Mapping[str, Any]) -> MutationText:
    """Return a mutation that deletes entities, and its parameters."""
    entity_type = resolve_type(catalog, type_name)
    condition, parameter_types = _translate_condition(entity_type, predicate, arguments)
    header = _query_header("delete", parameter_types)
    body = f"delete {entity_type.name} where {condition}"
    return f"{header} {{ {body} }}", dict(arguments)


def _translate_condition(
    entity_type: NodeType | EdgeType, predicate: str, arguments: Mapping[str, Any]
) -> tuple[str, dict[str, str]]:
    property_types = {"id": _STRING_TYPE, **(_ENDPOINT_TYPES if isinstance(entity_type, EdgeType) else {})}
    property_types |= {declared_property.name: declared_property.type for declared_property in entity_type.properties}
    translated = translate_predicate(predicate, property_types, arguments, owner=entity_type.name)
    return translated.text, dict(translated.types)


def _query_header(verb: str, parameter_types: Mapping[str, str]) -> str:
    declarations = ", ".join(f"${parameter_name}: {type_name}" for parameter_name, type_name in parameter_types.items())
    return f"query {verb}_rows({declarations})"


@contextmanager
def suggest_upsert() -> Iterator[None]:
    """Replace a key conflict's hint with one that suggests `upsert` instead of a load mode."""
    try:
        yield
    except KeyConflict as error:
        error.hint = "use `upsert` to change existing entities"
        raise


def normalize_records(records: tuple[Any, ...]) -> Any:
    """Return records in a form that a load accepts: a list of records, or a single batch unchanged."""
    if len(records) != 1:
        return list(records)
    (single_argument,) = records
    is_one_record = isinstance(single_argument, Mapping) or (
        is_dataclass(single_argument) and not isinstance(single_argument, type)
    )
    return [single_argument] if is_one_record else single_argument


def build_edge_load(ir: SchemaIR, edge_type: str, edge_tuples: Iterable[tuple[Any, ...]]) -> Any:
    """Return edges in a form that a load accepts, with the endpoints' keys converted to ids."""
    edge = resolve_type(ir.catalog, edge_type, "edge", ignore_case=True)
    records = [_build_edge_record(ir, edge, item) for item in edge_tuples]
    # Without an envelope, a load would choose a node type if one has the same name.
    is_ambiguous = ir.catalog.node(edge_type) is not None
    return [_wrap_edge_record(edge, record) for record in records] if is_ambiguous else {edge_type: records}


def _wrap_edge_record(edge: EdgeType, record: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: value for name, value in record.items() if name not in _ENDPOINT_TYPES}
    return {"edge": edge.name, "from": record["from"], "to": record["to"], "data": properties}


def _build_edge_record(ir: SchemaIR, edge: EdgeType, edge_tuple: tuple[Any, ...]) -> dict[str, Any]:
    source_key, target_key, *properties = require_edge_tuple(edge_tuple)
    endpoint_ids = {
        "from": resolve_node_id(ir, edge.source, source_key),
        "to": resolve_node_id(ir, edge.target, target_key),
    }
    return {**(dict(properties[0]) if properties and properties[0] else {}), **endpoint_ids}


def require_edge_tuple(edge_tuple: Any) -> tuple[Any, ...]:
    """Return an edge as a tuple of its endpoints and, optionally, its properties, or raise `InputError`."""
    if not isinstance(edge_tuple, tuple | list) or len(edge_tuple) not in (2, 3):
        message = "an edge must be (from, to) or (from, to, properties)"
        raise InputError(message, reason="not an edge")
    return tuple(edge_tuple)


def resolve_node_id(ir: SchemaIR, type_name: str, key: Any) -> str:
    """Return a node's id. `key` is a value, a tuple, list or mapping of key members, or an id.

    A tuple or list has the order of the `@key(...)` in the schema, which may differ from the order in the id.
    If the type has no key, or if the key is composite and a string is passed, the value is taken to be the id.
    """
    node = ir.catalog.node(type_name)
    return str(key) if node is None else _resolve_keyed_id(ir, node, key)


def resolve_edge_id(ir: SchemaIR, edge: EdgeType, key: Any) -> str:
    """Return an edge's id. Endpoints in the key can be given as node ids or node keys.

    In a mapping, the endpoints are called `from` and `to`, or `src` and `dst`.
    """
    return _resolve_keyed_id(ir, edge, with_stored_endpoints(key) if isinstance(key, Mapping) else key)


def _resolve_keyed_id(ir: SchemaIR, entity_type: NodeType | EdgeType, key: Any) -> str:
    key_columns = ordered_key_columns(ir, entity_type.name, entity_type.kind)
    if not key_columns or (len(key_columns) > 1 and isinstance(key, str)):
        return str(key)
    key_values = key if isinstance(key, Mapping) else _name_key_members(ir, entity_type, key)
    stored_values = [
        _stored_key_value(ir, entity_type, column_name, key_values.get(column_name)) for column_name in key_columns
    ]
    return entity_id([entity_type.column_type(name) for name in key_columns], stored_values, key_columns)


def _name_key_members(ir: SchemaIR, entity_type: NodeType | EdgeType, key: Any) -> dict[str, Any]:
    key_values = list(key) if isinstance(key, tuple | list) else [key]
    key_columns = declared_key_columns(ir, entity_type)
    if len(key_values) != len(key_columns):
        message = f"incomplete key for {entity_type.name}; expected ({', '.join(key_columns)})"
        raise InputError(message, reason="incomplete key")
    return dict(zip(key_columns, key_values, strict=True))


def _stored_key_value(ir: SchemaIR, entity_type: NodeType | EdgeType, column_name: str, value: Any) -> Any:
    is_node_key = column_name in ENDPOINT_COLUMNS and not (value is None or isinstance(value, str))
    if isinstance(entity_type, EdgeType) and is_node_key:
        return resolve_node_id(ir, entity_type.source if column_name == "src" else entity_type.target, value)
    return _coerce_key_member(entity_type.name, entity_type.column_type(column_name), column_name, value)


def _coerce_key_member(type_name: str, property_type: PropertyType, column_name: str, value: Any) -> Any:
    try:
        return coerce_parameter(property_type, value, parameter_name=column_name, mode="python")
    except ParameterError as error:
        raise InputError(
            f"key {type_name}.{column_name}: expected {error.expected}, got {error.actual}",
            reason="invalid key",
            hint=f"pass the {column_name} of the {type_name}",
        ) from None
