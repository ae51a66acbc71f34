"""Insert, upsert or patch a single row, which is identified by its id.

This module defines how each statement treats existing and missing rows: an insert fails if the row exists, and a patch
fails if it is missing. Properties that a statement does not assign keep their values in an existing row and get their
defaults in a new row.
"""

import pyarrow as pa

from omnigraph.errors import EntityNotFound
from omnigraph.ingest.columns import stored_column
from omnigraph.ingest.defaults import default_value
from omnigraph.rules.delta import NEW_ROW, UNRESOLVED_ROW

from .assigned_rows import AssignedRow
from .generated_ids import IdGenerator
from .overlay import Overlay

MISSING_ROW_HINT = "use `upsert` to insert missing rows; a patch changes only existing rows"


def insert_row(overlay: Overlay, row: AssignedRow, id_generator: IdGenerator) -> str:
    """Insert a row and return its id. If the id already exists, the operation fails later, in `apply_pending`."""
    if row.row_id is None:
        row_id = id_generator()
        return _add_row(overlay, row, row_id, NEW_ROW if id_generator.is_new(row_id) else UNRESOLVED_ROW)
    return _add_row(overlay, row, row.row_id, UNRESOLVED_ROW)


def upsert_row(overlay: Overlay, row: AssignedRow) -> str:
    """Change a row, or insert it if it does not exist, and return its id."""
    row_id = _known_id(row)
    return row_id if _change_row(overlay, row) else _add_row(overlay, row, row_id, NEW_ROW)


def patch_row(overlay: Overlay, row: AssignedRow) -> str:
    """Change a row and return its id; raise `EntityNotFound` if the row does not exist."""
    if not _change_row(overlay, row):
        entity_kind, type_name = row.table_key.kind, row.table_key.type_name
        raise EntityNotFound(
            entity_kind=entity_kind, type_name=type_name, entity_id=_known_id(row), hint=MISSING_ROW_HINT
        )
    return _known_id(row)


def _known_id(row: AssignedRow) -> str:
    assert row.row_id is not None  # noqa: S101 - only an insert may omit the id
    return row.row_id


def _change_row(overlay: Overlay, row: AssignedRow) -> bool:
    columns = {name: _stored_value(row, name, value) for name, value in row.changed_values.items()}
    changed_ids = overlay.update_by_id(row.table_key, pa.array([_known_id(row)], pa.string()), columns)
    return len(changed_ids) > 0


def _stored_value(row: AssignedRow, column_name: str, value: object) -> pa.Array:
    declared_property = row.entity_type.property(column_name)
    if declared_property is None:  # the assigned column is an endpoint
        return pa.array([value], pa.string())
    return stored_column(declared_property.type, [value])


def _add_row(overlay: Overlay, row: AssignedRow, row_id: str, origin: int) -> str:
    row_values = {
        declared_property.name: default_value(declared_property) for declared_property in row.entity_type.properties
    }
    row_values |= {**row.values, "id": row_id}
    row_schema = overlay.row_schema_of(row.table_key)
    rows = pa.table(
        [pa.array([row_values[row_field.name]], row_field.type) for row_field in row_schema], schema=row_schema
    )
    if origin == UNRESOLVED_ROW:
        overlay.insert(row.table_key, rows)
    else:
        overlay.write(row.table_key, rows, origin)
    return row_id
