"""Upserts and patches of records, which assign the values in each record to an existing row.

This module defines what happens if a record's row does not exist: an upsert inserts the record with defaults, and a
patch fails. A row that already has the given values is not written again.
"""

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import EntityNotFound, PropertyValueError
from omnigraph.ingest.defaults import defaults_of
from omnigraph.ingest.given_columns import ColumnGroup, PartialRecords, Verb
from omnigraph.publish.unread_changes import RowFilter
from omnigraph.rules.delta import NEW_ROW
from omnigraph.values.table_key import TableKey

from .generated_ids import IdGenerator
from .overlay import Overlay
from .row_dependencies import RowDependencies
from .row_writes import MISSING_ROW_HINT
from .statements import WriteStats


class RecordWrite:
    """An upsert or patch of records. The `run` method is a `WriteOperation`."""

    def __init__(self, partial_records: PartialRecords, verb: Verb) -> None:
        self.partial_records = partial_records
        self.verb = verb

    @property
    def named_ids(self) -> dict[str, list[str]]:
        """The ids of upserted records by type, in record order. The mapping is empty for a patch."""
        return {self.partial_records.entity_type.name: self.partial_records.ids} if self.verb == "upsert" else {}

    def row_filters(self) -> dict[TableKey, RowFilter | None]:
        """Return row filters, by table, for the rows that the write depends on."""
        dependencies = RowDependencies()
        self.add_dependencies(dependencies)
        return dependencies.row_filters()

    def add_dependencies(self, dependencies: RowDependencies) -> None:
        """Add a dependency on the columns that the records assign, in the existing rows that the records identify."""
        for group in self.partial_records.groups:
            if not group.ids_generated:
                columns = self.partial_records.changed_columns(group)
                dependencies.add_rows(self.partial_records.table_key, group.ids, columns)

    def run(self, overlay: Overlay, write_stats: WriteStats, _id_generator: IdGenerator) -> None:
        """Change the existing rows. An upsert also inserts missing rows, whereas a patch fails if a row is missing."""
        table_key = self.partial_records.table_key
        for group in self.partial_records.groups:
            self._write_group(overlay, group)
        write_stats.add(table_key.kind, table_key.type_name, self.partial_records.record_count)
        for type_name, ids in self.named_ids.items():
            write_stats.inserted_ids.setdefault(type_name, []).extend(ids)

    def _write_group(self, overlay: Overlay, group: ColumnGroup) -> None:
        table_key, new_rows = self.partial_records.table_key, group.rows
        if not group.ids_generated:
            columns = self.partial_records.changed_columns(group)
            existing_ids = overlay.update_by_id(table_key, group.ids, columns, skip_unchanged=True)
            new_rows = new_rows.filter(pc.invert(pc.is_in(group.ids, value_set=existing_ids)))
        if not new_rows.num_rows:
            return
        if self.verb == "patch":
            raise EntityNotFound(
                entity_kind=table_key.kind,
                type_name=table_key.type_name,
                entity_id=new_rows["id"][0].as_py(),
                hint=MISSING_ROW_HINT,
            )
        overlay.write(table_key, self._with_defaults(overlay, new_rows), NEW_ROW)

    def _with_defaults(self, overlay: Overlay, rows: pa.Table) -> pa.Table:
        """Return complete rows with defaults; raise `PropertyValueError` if the records omit a required property."""
        entity_type = self.partial_records.entity_type
        defaults = defaults_of(entity_type)
        for declared_property in entity_type.properties:
            is_omitted = declared_property.name not in rows.column_names and defaults[declared_property.name] is None
            if is_omitted and not declared_property.type.nullable:
                raise PropertyValueError(
                    type_name=entity_type.name,
                    property=declared_property.name,
                    entity_id=rows["id"][0].as_py(),
                    expected=declared_property.type.display(),
                    actual="nothing",
                    hint="add the property, which is required because the upsert inserts a new entity",
                )
        row_schema = overlay.row_schema_of(self.partial_records.table_key)
        columns = [
            rows[row_field.name]
            if row_field.name in rows.column_names
            else pa.array([defaults.get(row_field.name)] * rows.num_rows, row_field.type)
            for row_field in row_schema
        ]
        return pa.table(columns, schema=row_schema)
