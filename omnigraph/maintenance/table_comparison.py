"""Compare a table before and after an optimize run."""

from omnigraph.history.commit import TableEntry
from omnigraph.history.schemas import read_schema
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.storage.fragments import fragment_bytes, list_fragment_ids
from omnigraph.storage.table import open_table

from .index_maintenance import unbuilt_indexes
from .optimize_report import TableMaintenance


def measure_table(base_txn: WriteTxn, entry: TableEntry, published: TableEntry | None) -> TableMaintenance:
    """Compare one table before and after a run. A schema change may have moved the table to a new directory."""
    table_key, store = entry.key, base_txn.store
    catalog = read_schema(store, base_txn.base.state.schema).ir.catalog
    latest_entry = published or entry
    base_table = base_txn.table(table_key)
    latest_table = open_table(store, latest_entry.location, latest_entry.lance_version)
    base_fragments = set(list_fragment_ids(base_table))
    latest_fragments = set(list_fragment_ids(latest_table))
    return TableMaintenance(
        table_key,
        len(base_fragments - latest_fragments),
        len(latest_fragments - base_fragments),
        committed=published is not None,
        pending_indexes=tuple(unbuilt_indexes(latest_table, type_for_key(catalog, table_key))),
        bytes_before=fragment_bytes(base_table, base_fragments),
        bytes_after=fragment_bytes(latest_table, latest_fragments),
        version_before=entry.version,
        version_after=latest_entry.version,
    )
