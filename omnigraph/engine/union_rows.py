"""Unions: combine the results of several reads into one table, with or without duplicate rows.

All parts run on the same snapshot and share the same limits. Rows with equal sort keys stay in the order of the parts,
and in their original order within each part.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query import plan

from .execution_context import ExecutionContext
from .expressions.row_values import RowValues
from .expressions.value_codes import Numbers
from .operators.group import distinct_rows
from .operators.order import SortKeyFunction, sorted_positions
from .operators.project import cast_to, result_schema
from .operators.rows import IntArray

PartFunction = Callable[[ExecutionContext, plan.ReadPlan], pa.Table]


def union_table(
    context: ExecutionContext, union_plan: plan.UnionPlan, bounds: tuple[int, int | None], execute_part: PartFunction
) -> pa.Table:
    """Return the rows of a union.

    `bounds` holds the offset of the first row and the end offset, which is None if there is no limit.
    """
    schema = result_schema(context.catalog, union_plan.columns)
    table = pa.concat_tables([_part_table(context, part, schema, execute_part) for part in union_plan.parts])
    table = table.combine_chunks()
    if not union_plan.keeps_duplicates:
        table = table.take(pa.array(distinct_rows(table)))
    offset, max_rows = bounds
    if union_plan.order:
        sort_keys = [_sort_key(table, sort_key) for sort_key in union_plan.order]
        table = table.take(pa.array(sorted_positions(context, table.num_rows, sort_keys, max_rows)))
    return table.slice(offset, None if max_rows is None else max_rows - offset)


def _part_table(
    context: ExecutionContext, part: plan.ReadPlan, schema: pa.Schema, execute_part: PartFunction
) -> pa.Table:
    """Return the rows of one part, cast to the column types of the union.

    They count toward the query's memory limit.
    """
    table = execute_part(context, part)
    context.meter.charge_bytes(table.nbytes)
    columns: Sequence[pa.ChunkedArray] = table.columns
    arrays = [cast_to(column, result_field.type) for column, result_field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _sort_key(table: pa.Table, sort_key: plan.SortKey) -> SortKeyFunction:
    column = table.column(sort_key.column or "").combine_chunks()
    if pa.types.is_struct(column.type):  # a node sorts by its id
        column = pc.struct_field(column, "id")

    def key_order(positions: IntArray, limit: int | None) -> Numbers:
        return RowValues(column.take(pa.array(positions))).sort_numbers(descending=sort_key.descending, limit=limit)

    return key_order
