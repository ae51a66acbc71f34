"""Find a blob by its type, key and property.

This module resolves blob addresses, and raises errors for addresses that have no blob. It also defines the convention
for media types: the String property `<property>_media_type` records the media type of the blob in `<property>`.
"""

from typing import Any

import pyarrow as pa

from omnigraph.api.builders.mutation_text import resolve_node_id
from omnigraph.errors import EntityNotFound, InputError
from omnigraph.history.snapshot import Snapshot
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.records.frozen import record
from omnigraph.storage.blob_reader import StoredBlob, open_stored_blob
from omnigraph.storage.find_rows import find
from omnigraph.values import ScalarType
from omnigraph.values.table_key import TableKey

_MEDIA_TYPE_SUFFIX = "_media_type"


@record
class BlobAddress:
    """A blob's entity and property. `media_type_property` is the property that records its media type, if any."""

    kind: str
    type_name: str
    entity_id: str
    property_name: str
    media_type_property: str | None

    @property
    def table_key(self) -> TableKey:
        """The key that identifies the entity's table."""
        return TableKey.of(self.kind, self.type_name)

    def not_found_error(self, *, row_exists: bool) -> EntityNotFound:
        """Return the error to raise for a missing entity or a NULL blob."""
        return EntityNotFound(
            entity_kind=self.kind,
            type_name=self.type_name,
            entity_id=self.entity_id,
            property=self.property_name if row_exists else None,
            hint="the value is NULL; set it with `put_blob`, `update` or `blob put`" if row_exists else None,
        )


def resolve_address(ir: SchemaIR, type_name: str, key: Any, property_name: str, kind: str | None = None) -> BlobAddress:
    """Return a blob's address, or raise `InputError` if the type has no such blob property."""
    entity_type = resolve_type(ir.catalog, type_name, kind)
    _require_blob_property(entity_type, property_name)
    is_node = isinstance(entity_type, NodeType)
    entity_id = resolve_node_id(ir, entity_type.name, key) if is_node else str(key)
    return BlobAddress(
        entity_type.kind, entity_type.name, entity_id, property_name, _media_type_property(entity_type, property_name)
    )


def find_blob(snapshot: Snapshot, address: BlobAddress) -> tuple[StoredBlob, str | None]:
    """Return the blob and its recorded media type, or raise `EntityNotFound` if there is no blob."""
    table = snapshot.table(address.table_key)
    media_columns = [address.media_type_property] if address.media_type_property is not None else []
    rows = find(table, {"id": pa.array([address.entity_id])}, ["id", *media_columns], with_row_ids=True)
    if not rows.num_rows:
        raise address.not_found_error(row_exists=False)
    row = rows.slice(0, 1).to_pylist()[0]
    stored = open_stored_blob(snapshot.store, table, address.property_name, row["_rowid"], row["_rowaddr"])
    if stored is None:
        raise address.not_found_error(row_exists=True)
    return stored, row[media_columns[0]] if media_columns else None


def _require_blob_property(entity_type: NodeType | EdgeType, property_name: str) -> None:
    blob_names = [prop.name for prop in entity_type.properties if prop.type.scalar is ScalarType.BLOB]
    if property_name in blob_names:
        return
    known_names = [prop.name for prop in entity_type.properties]
    problem = "is not a blob" if property_name in known_names else "does not exist"
    listing = f"available blob properties: {', '.join(blob_names)}" if blob_names else "the type has no blob properties"
    raise InputError(
        f"{entity_type.name}.{property_name} {problem}; {listing}",
        reason="not a blob property",
        hint=did_you_mean(property_name, blob_names, "declare a property of type Blob in the schema"),
    )


def _media_type_property(entity_type: NodeType | EdgeType, property_name: str) -> str | None:
    companion = entity_type.property(f"{property_name}{_MEDIA_TYPE_SUFFIX}")
    is_text = companion is not None and companion.type.scalar is ScalarType.STRING and not companion.type.is_list
    return companion.name if companion is not None and is_text else None
