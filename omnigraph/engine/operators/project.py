"""Build the result columns: values converted to the types that the plan declares, with entities as structs.

This module defines the structure of an entity in a result: `id`, `type`, the endpoints `from` and `to` (for an edge),
and then the properties. Blobs are omitted, because queries never read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions import evaluate
from omnigraph.engine.result_rows import ProjectedRows
from omnigraph.lang.query import plan, plan_paths
from omnigraph.lang.schema.catalog import Catalog, PropertyDefinition
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import ScalarType

from .fetch import RowSource, VariableColumn, columns_read
from .path_values import path_column, path_struct_type
from .rows import NULL_ROW, Rows, VariableBinding

_MAX_CACHED_SHAPES = 512
_ENDPOINT_COLUMNS = {"from": "src", "to": "dst"}


def result_schema(catalog: Catalog, columns: Sequence[plan.PlanColumn]) -> pa.Schema:
    """Return the Arrow schema of a result."""
    return pa.schema([_result_field(catalog, column) for column in columns])


def _result_field(catalog: Catalog, column: plan.PlanColumn) -> pa.Field:
    if column.type is None and isinstance(column.value, plan.Entity):
        return pa.field(column.name, entity_struct_type(catalog, column.value))
    if isinstance(column.value, plan_paths.PathEntity):
        return pa.field(column.name, path_struct_type(column.value))
    if column.type is None:
        return pa.field(column.name, pa.string())
    return pa.field(column.name, arrow_type(column.type), nullable=column.type.nullable)


def entity_struct_type(catalog: Catalog, entity: plan.Entity) -> pa.StructType:
    """Return the struct type for a node or an edge.

    If the entity can have several types, the struct contains only the properties that these types share.
    """
    shown_properties = visible_properties(catalog, entity)
    identity_fields = [pa.field("id", pa.string()), pa.field(type_field_name(shown_properties), pa.string())]
    endpoint_fields = [pa.field(endpoint_name, pa.string()) for endpoint_name in _endpoint_columns(entity)]
    return pa.struct(
        [
            *identity_fields,
            *endpoint_fields,
            *(
                pa.field(visible_property.name, arrow_type(visible_property.type))
                for visible_property in shown_properties
            ),
        ]
    )


def _endpoint_columns(entity: plan.Entity) -> dict[str, str]:
    """Return a mapping from the result name of each endpoint to the column that stores it."""
    return _ENDPOINT_COLUMNS if entity.edge_types else {}


def visible_properties(catalog: Catalog, entity: plan.Entity) -> list[PropertyDefinition]:
    """Return the properties of an entity that appear in results."""
    if entity.edge_types:
        declared_properties = _shared_edge_properties(catalog, entity.edge_types)
    else:
        declared_type = catalog.node(entity.type_name) or catalog.interface(entity.type_name)
        declared_properties = declared_type.properties if declared_type is not None else ()
    return [
        declared_property
        for declared_property in declared_properties
        if declared_property.type.scalar is not ScalarType.BLOB
    ]


def _shared_edge_properties(catalog: Catalog, edge_types: Sequence[str]) -> tuple[PropertyDefinition, ...]:
    """Return the properties that all edge types declare with the same type; nullability may differ."""
    first_type, *other_types = [edge for name in edge_types if (edge := catalog.edge(name)) is not None]

    def is_shared(declared_property: PropertyDefinition) -> bool:
        others = [edge_type.property(declared_property.name) for edge_type in other_types]
        nullable_type = declared_property.type.as_nullable(True)
        return all(other is not None and other.type.as_nullable(True) == nullable_type for other in others)

    return tuple(filter(is_shared, first_type.properties))


def type_field_name(properties: Sequence[PropertyDefinition]) -> str:
    """Return `type`, prefixed with as many underscores as needed to avoid a clash with a property name."""
    field_name = "type"
    while any(declared_property.name == field_name for declared_property in properties):
        field_name = f"_{field_name}"
    return field_name


def projected_columns(catalog: Catalog, columns: Sequence[plan.PlanColumn]) -> set[VariableColumn]:
    """Return the columns that a projection reads."""
    read_columns: set[VariableColumn] = set()
    for column in columns:
        read_columns |= columns_read(column.value)
        if isinstance(column.value, plan.Entity):
            entity = column.value
            property_names = [entity_property.name for entity_property in visible_properties(catalog, entity)]
            read_columns |= {(entity.variable, name) for name in (*_endpoint_columns(entity).values(), *property_names)}
    return read_columns


@dataclass(frozen=True, slots=True, eq=False)
class ProjectionShape:
    """The parts of a projection that do not depend on its rows.

    If all result columns are stored columns, which need no evaluation, `stored_columns` holds the variable and the name
    of each. Otherwise, it is None.
    """

    catalog: Catalog
    columns: Sequence[plan.PlanColumn]
    schema: pa.Schema
    types: tuple[pa.DataType, ...]
    names_by_variable: dict[str, list[str]]
    stored_columns: tuple[VariableColumn, ...] | None


# Like plans, entries are keyed by object identity, because a prepared query always uses the same columns object. Each
# entry keeps its catalog and columns alive, so that their ids cannot be reused.
_shape_cache: dict[tuple[int, int], ProjectionShape] = {}


def projection_shape(catalog: Catalog, columns: Sequence[plan.PlanColumn]) -> ProjectionShape:
    """Return the parts of a projection that do not depend on its rows. They are computed once and cached."""
    cache_key = (id(catalog), id(columns))
    cached_shape = _shape_cache.get(cache_key)
    if cached_shape is None:
        if len(_shape_cache) >= _MAX_CACHED_SHAPES:
            _shape_cache.clear()
        cached_shape = _shape_cache[cache_key] = _build_shape(catalog, columns)
    return cached_shape


def _build_shape(catalog: Catalog, columns: Sequence[plan.PlanColumn]) -> ProjectionShape:
    schema = result_schema(catalog, columns)
    names_by_variable: dict[str, list[str]] = {}
    for variable, column_name in sorted(projected_columns(catalog, columns)):
        names_by_variable.setdefault(variable, []).append(column_name)
    stored_columns = None
    if columns and all(isinstance(column.value, plan.PropertyValue | plan.SystemValue) for column in columns):
        stored_columns = tuple(next(iter(columns_read(column.value))) for column in columns)
    return ProjectionShape(catalog, columns, schema, tuple(schema.types), names_by_variable, stored_columns)


def project(
    context: ExecutionContext,
    rows: Rows,
    columns: Sequence[plan.PlanColumn],
    scores: dict[plan.Ranking, pa.Array] | None = None,
) -> pa.Table:
    """Return the result columns for rows as a table."""
    return project_rows(context, rows, columns, scores).to_table()


def project_rows(
    context: ExecutionContext,
    rows: Rows,
    columns: Sequence[plan.PlanColumn],
    scores: dict[plan.Ranking, pa.Array] | None = None,
) -> ProjectedRows:
    """Return the result columns for rows, reading each property once."""
    shape = projection_shape(context.catalog, columns)
    source = RowSource(context, rows)
    for variable, column_names in shape.names_by_variable.items():
        source.fetch(variable, column_names)
    if shape.stored_columns is not None:
        arrays = [
            array if (array := source.fetched[stored_column]).type == result_type else array.cast(result_type)
            for stored_column, result_type in zip(shape.stored_columns, shape.types, strict=True)
        ]
        return ProjectedRows(shape.schema, arrays, rows.count)
    return ProjectedRows(shape.schema, _evaluate_columns(source, shape, scores), rows.count)


def _evaluate_columns(
    source: RowSource, shape: ProjectionShape, scores: dict[plan.Ranking, pa.Array] | None
) -> list[pa.Array]:
    arrays = []
    for column, result_type in zip(shape.columns, shape.types, strict=True):
        if isinstance(column.value, plan.Score) and scores is not None:
            arrays.append(scores[column.value.ranking])
        elif isinstance(column.value, plan.Entity):
            arrays.append(entity_column(source, column.value, result_type))
        elif isinstance(column.value, plan_paths.PathEntity):
            arrays.append(path_column(source, column.value))
        else:
            arrays.append(cast_to(evaluate.evaluate_value(source, column.value), result_type))
    return arrays


def cast_to(array: pa.Array, target_type: pa.DataType) -> pa.Array:
    """Cast an array to the type that the plan declares."""
    return array if array.type == target_type else array.cast(target_type)


def entity_column(source: RowSource, entity: plan.Entity, struct_type: pa.StructType) -> pa.Array:
    """Return entities as structs, or null where the variable is null."""
    binding = source.rows[entity.variable]
    children = [source.column(entity.variable, "id"), _type_name_column(binding)]
    endpoint_columns = _endpoint_columns(entity)
    children += [
        cast_to(source.column(entity.variable, endpoint_columns.get(field.name, field.name)), field.type)
        for field in list(struct_type)[2:]
    ]
    null_mask = binding.row_ids == NULL_ROW
    struct_mask = pa.array(null_mask) if bool(null_mask.any()) else None
    return pa.StructArray.from_arrays(children, fields=list(struct_type), mask=struct_mask)


def _type_name_column(binding: VariableBinding) -> pa.Array:
    type_names = pa.array([table_key.type_name for table_key in binding.table_keys], pa.string())
    type_indexes = np.zeros(len(binding.row_ids), np.int16) if binding.type_indexes is None else binding.type_indexes
    if len(type_names) == 0:
        return pa.nulls(len(binding.row_ids), pa.string())
    return type_names.take(pa.array(type_indexes, mask=binding.row_ids == NULL_ROW))
