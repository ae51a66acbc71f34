"""Find the rows that a `match` selects for an update or a delete.

This module runs the match on the stored rows and all earlier writes of the operation. It requires everything that the
match read to stay unchanged until the commit. It also rejects a match that assigns different values to the same
property of an entity.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.execution_context import ExecutionContext
from omnigraph.engine.expressions.evaluate import is_constant, resolve_constant
from omnigraph.engine.query_caches import shared_caches
from omnigraph.engine.query_limits import QueryLimits, QueryMeter
from omnigraph.engine.run_query import execute_plan, rewritten_plan
from omnigraph.errors import AmbiguousAssignment, InternalError, PropertyValueError
from omnigraph.ingest.columns import stored_column
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import EdgeType, NodeType, PropertyDefinition
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.rules.delta import as_single_array
from omnigraph.storage.arrow import arrow_type
from omnigraph.values.table_key import TableKey

from .overlay import Overlay, ParamValues
from .overlay_snapshot import overlay_snapshot

CoerceValue = Callable[[NodeType | EdgeType, PropertyDefinition, Any], Any]


def tables_read_by(read_plan: plan.ReadPlan) -> tuple[TableKey, ...]:
    """Return the tables whose content determines which rows a match returns."""
    return tuple(dict.fromkeys(_tables_of(read_plan.operators)))


def _tables_of(operators: Sequence[plan.Operator]) -> Iterator[TableKey]:
    for operator in operators:
        match operator:
            case plan.NodeScan():
                yield from (TableKey.node(name) for name in operator.implementers or (operator.type_name,))
            case plan.Expand():
                yield from (TableKey.edge(step.edge_type) for step in operator.steps)
                yield TableKey.node(operator.target_type)
            case plan.FindPaths():
                yield from (TableKey.edge(step.edge_type) for step in operator.steps)
                yield TableKey.node(operator.node_type)
            case plan.AntiJoin() | plan.LeftJoin():
                yield from _tables_of(operator.inner)


def matched_ids(overlay: Overlay, read_plan: plan.ReadPlan, params: ParamValues) -> pa.Array:
    """Return the distinct ids in the first column of a match, skipping nulls."""
    return as_single_array(_run_match(overlay, read_plan, params)["id"]).drop_null().unique()


def matched_values(
    overlay: Overlay, statement: plan.MatchedUpdate, params: ParamValues, coerce_value: CoerceValue
) -> tuple[pa.Array, dict[str, pa.Array]]:
    """Return the ids of the matched entities and, in the same order, the values for each assigned property.

    Raises:
        AmbiguousAssignment: Two matched rows assign different values to the same property of an entity.

    """
    matches = _run_match(overlay, statement.matched, params)
    matches = matches.filter(pc.is_valid(matches["id"])).combine_chunks()
    _reject_ambiguous(statement, matches)
    ids = as_single_array(matches["id"])
    entity_type = type_for_key(overlay.catalog, TableKey.of(statement.kind, statement.type_name))
    columns: dict[str, pa.Array] = {}
    for assignment in statement.assignments:
        declared_property = entity_type.property(assignment.name)
        if declared_property is None:
            raise InternalError(reason=f"{entity_type.name} has no property {assignment.name}")
        if is_constant(assignment.value):
            constant = coerce_value(entity_type, declared_property, resolve_constant(assignment.value, params))
            stored_constant = stored_column(declared_property.type, [constant])
            columns[assignment.name] = stored_constant.take(pa.array([0] * len(ids), pa.int64()))
        else:
            values = as_single_array(matches[assignment.name])
            columns[assignment.name] = stored_values(entity_type, declared_property, ids, values, coerce_value)
    return ids, columns


def _run_match(overlay: Overlay, read_plan: plan.ReadPlan, params: ParamValues) -> pa.Table:
    for table_key in tables_read_by(read_plan):
        if table_key in overlay.txn.base.state.tables:
            overlay.lookup.require_same_content(table_key)
    context = ExecutionContext(
        overlay_snapshot(overlay), overlay.catalog, params, QueryMeter(QueryLimits.default()), shared_caches()
    )
    try:
        return execute_plan(context, rewritten_plan(read_plan, overlay.ir))
    finally:
        context.meter.leave_gate()


def stored_values(
    entity_type: NodeType | EdgeType,
    declared_property: PropertyDefinition,
    ids: pa.Array,
    values: pa.Array,
    coerce_value: CoerceValue,
) -> pa.Array:
    """Convert the values from the matched rows to the type of the property. Only numbers need conversion."""
    if values.null_count and not declared_property.type.nullable:
        first_null = pc.index(pc.is_null(values), True).as_py()
        raise PropertyValueError(
            type_name=entity_type.name,
            property=declared_property.name,
            entity_id=ids[first_null].as_py(),
            expected=declared_property.type.display(),
            actual="null",
        )
    if values.type == arrow_type(declared_property.type):
        return values
    coerced_values = [coerce_value(entity_type, declared_property, value) for value in values.to_pylist()]
    return stored_column(declared_property.type, coerced_values)


def _reject_ambiguous(statement: plan.MatchedUpdate, matches: pa.Table) -> None:
    """Raise an error if an entity occurs twice. Rows are distinct, so rows with the same id assign different values."""
    ids = as_single_array(matches["id"])
    if len(ids.unique()) == len(ids):
        return
    counts = {pair["values"]: pair["counts"] for pair in ids.value_counts().to_pylist()}
    repeated_id = next(entity_id for entity_id, count in counts.items() if count > 1)
    rows = matches.filter(pc.equal(matches["id"], repeated_id)).slice(0, 2).to_pylist()
    property_name = next(name for name in matches.column_names if rows[0][name] != rows[1][name])
    raise AmbiguousAssignment(
        type_name=statement.type_name,
        entity_id=repeated_id,
        property=property_name,
        first_value=_plain_value(rows[0][property_name]),
        second_value=_plain_value(rows[1][property_name]),
    )


def _plain_value(value: Any) -> Any:
    """Convert a value to a JSON value. None becomes the string "null", because errors omit attributes that are None."""
    if value is None:
        return "null"
    return value if isinstance(value, str | int | float) else str(value)
