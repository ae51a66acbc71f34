"""The inputs for the rules that involve all records: ids, endpoints and unique tuples.

This module defines the columns of these inputs. Rows that were written are read back from their fragments, and all
other rows are sent as task reports; both have the same columns. Tasks create these rows as Arrow batches for a
DataFrame.
"""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.rules.delta import Positions

from .report_rows import KEY_ROWS, TUPLE_ROWS
from .staged_fragments import MakeRows, StagedFragment
from .unique_tuples import encode_tuples, unique_groups

ReportBatches = Iterator[pa.RecordBatch]
_SYSTEM_COLUMNS = ("id", "src", "dst")


def key_batches(
    entity_type: NodeType | EdgeType, type_number: int, rows: pa.Table, positions: Positions, *, ids_generated: bool
) -> ReportBatches:
    """Yield `KEY_ROWS` batches; generated ids are omitted, because no other record can refer to them."""
    if not rows.num_rows or (ids_generated and isinstance(entity_type, NodeType)):
        return
    endpoint_arrays = {"src": rows["src"], "dst": rows["dst"]} if isinstance(entity_type, EdgeType) else {}
    known_ids = None if ids_generated else rows["id"]
    yield KEY_ROWS.batch(rows.num_rows, type=type_number, id=known_ids, spot=positions, **endpoint_arrays)


def tuple_batches(
    entity_type: NodeType | EdgeType, type_number: int, rows: pa.Table, positions: Positions
) -> ReportBatches:
    """Yield `TUPLE_ROWS` batches; a key needs no tuple, because it determines the id."""
    for group_number, unique_columns in enumerate(unique_groups(entity_type)):
        tuple_texts = encode_tuples(entity_type, rows, unique_columns)
        has_value = pc.is_valid(tuple_texts).to_numpy(zero_copy_only=False)
        value_mask = pa.array(has_value)
        if has_value.any():
            yield TUPLE_ROWS.batch(
                int(has_value.sum()),
                type=type_number,
                grp=group_number,
                id=rows["id"].filter(value_mask),
                value=tuple_texts.filter(value_mask),
                spot=positions[has_value],
            )


def key_columns(fragment: StagedFragment) -> list[str]:
    """Return a fragment's id and endpoint columns, without the id column if all ids were generated."""
    columns = [] if fragment.ids_generated else ["id"]
    return columns + (["src", "dst"] if fragment.table_key.is_edge else [])


def make_key_rows(table_keys: Sequence[str]) -> MakeRows:
    """Return a function that converts fragment rows to `KEY_ROWS`."""

    def make(fragment: StagedFragment, batch: pa.RecordBatch, positions: Positions) -> ReportBatches:
        system_arrays = {column: batch.column(column) for column in _SYSTEM_COLUMNS if column in batch.schema.names}
        type_number = table_keys.index(fragment.table_key)
        yield KEY_ROWS.batch(batch.num_rows, type=type_number, spot=positions, **system_arrays)

    return make


def tuple_columns(schema_ir: SchemaIR) -> Callable[[StagedFragment], list[str]]:
    """Return a function that lists a fragment's id column and the columns in its `@unique` constraints."""
    return lambda fragment: sorted(
        {
            "id",
            *(
                column
                for column_group in unique_groups(type_for_key(schema_ir.catalog, fragment.table_key))
                for column in column_group
            ),
        }
    )


def make_tuple_rows(schema_ir: SchemaIR, table_keys: Sequence[str]) -> MakeRows:
    """Return a function that converts fragment rows to `TUPLE_ROWS`."""

    def make(fragment: StagedFragment, batch: pa.RecordBatch, positions: Positions) -> ReportBatches:
        entity_type, type_number = (
            type_for_key(schema_ir.catalog, fragment.table_key),
            table_keys.index(fragment.table_key),
        )
        yield from tuple_batches(entity_type, type_number, pa.Table.from_batches([batch]), positions)

    return make
