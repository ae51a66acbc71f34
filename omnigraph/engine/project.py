"""Result columns: values of rows in the types that the plan declares; entities as structs.

Owns the shape of an entity in a result: `id`, `type`, then its properties. Blobs are left out:
queries never read them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog, Property
from omnigraph.storage.arrow import arrow_type
from omnigraph.values import ScalarType

from . import evaluate
from .context import Context
from .fetch import Column, RowSource, needs
from .rows import NULL, Binding, Rows

_KEPT = 512


def result_schema(catalog: Catalog, columns: Sequence[plan.Column]) -> pa.Schema:
    """Return the Arrow schema of a result."""
    return pa.schema([_field(catalog, one) for one in columns])


def _field(catalog: Catalog, column: plan.Column) -> pa.Field:
    if column.type is None and isinstance(column.value, plan.Entity):
        return pa.field(column.name, entity_type(catalog, column.value.type_name))
    if column.type is None:
        return pa.field(column.name, pa.string())
    return pa.field(column.name, arrow_type(column.type), nullable=column.type.nullable)


def entity_type(catalog: Catalog, type_name: str) -> pa.StructType:
    """Return the struct type of a node; for an interface, with what all its nodes share."""
    shown = shown_properties(catalog, type_name)
    fields = [pa.field("id", pa.string()), pa.field(type_member(shown), pa.string())]
    return pa.struct([*fields, *(pa.field(one.name, arrow_type(one.type)) for one in shown)])


def shown_properties(catalog: Catalog, type_name: str) -> list[Property]:
    """Return the properties of a type that a result contains."""
    owner = catalog.node(type_name) or catalog.interface(type_name)
    found = owner.properties if owner is not None else ()
    return [one for one in found if one.type.scalar is not ScalarType.BLOB]


def type_member(shown: Sequence[Property]) -> str:
    """Return `type`, prefixed with underscores while a property has that name."""
    name = "type"
    while any(one.name == name for one in shown):
        name = f"_{name}"
    return name


def columns_needed(catalog: Catalog, columns: Sequence[plan.Column]) -> set[Column]:
    """Return the columns that a projection reads."""
    found: set[Column] = set()
    for one in columns:
        found |= needs(one.value)
        if isinstance(one.value, plan.Entity):
            own = one.value
            shown = shown_properties(catalog, own.type_name)
            found |= {(own.variable, prop.name) for prop in shown}
    return found


# Keyed by identity, as plans are: the columns of a prepared query are always the same object.
_shapes: dict[tuple[int, int], tuple[Any, Any, pa.Schema, set[Column]]] = {}


def _shape(catalog: Catalog, columns: Sequence[plan.Column]) -> tuple[pa.Schema, set[Column]]:
    """Return the schema of a projection and the columns it reads; computed once."""
    key = (id(catalog), id(columns))
    found = _shapes.get(key)
    if found is None:
        if len(_shapes) >= _KEPT:
            _shapes.clear()
        needed = columns_needed(catalog, columns)
        found = _shapes[key] = (catalog, columns, result_schema(catalog, columns), needed)
    return found[2], found[3]


def project(
    context: Context,
    rows: Rows,
    columns: Sequence[plan.Column],
    scores: dict[plan.Ranking, pa.Array] | None = None,
) -> pa.Table:
    """Return the result columns of rows; each property is read once."""
    schema, needed = _shape(context.catalog, columns)
    source = RowSource(context, rows).prefetch(needed)
    arrays = []
    for column, field in zip(columns, schema, strict=True):
        if isinstance(column.value, plan.Score) and scores is not None:
            arrays.append(scores[column.value.ranking])
        elif isinstance(column.value, plan.Entity):
            arrays.append(entities(source, column.value))
        else:
            arrays.append(fitted(evaluate.column(source, column.value), field.type))
    return pa.table(arrays, schema=schema) if arrays else _empty(rows.count)


def _empty(count: int) -> pa.Table:
    return pa.table({"_": pa.nulls(count)}).select([])


def fitted(found: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array in the type that the plan declares."""
    return found if found.type == kind else found.cast(kind)


def entities(source: RowSource, entity: plan.Entity) -> pa.Array:
    """Return entities as structs; null where the variable is null."""
    binding = source.rows[entity.variable]
    kind = entity_type(source.context.catalog, entity.type_name)
    names = [source.column(entity.variable, "id"), _type_names(binding)]
    shown = [(field.name, field.type) for field in list(kind)[2:]]
    names += [fitted(source.column(entity.variable, name), own) for name, own in shown]
    missing = binding.ids == NULL
    mask = pa.array(missing) if bool(missing.any()) else None
    return pa.StructArray.from_arrays(names, fields=list(kind), mask=mask)


def _type_names(binding: Binding) -> pa.Array:
    names = pa.array([key.partition(":")[2] for key in binding.types], pa.string())
    kinds = np.zeros(len(binding.ids), np.int16) if binding.kinds is None else binding.kinds
    if len(names) == 0:
        return pa.nulls(len(binding.ids), pa.string())
    return names.take(pa.array(kinds, mask=binding.ids == NULL))
