"""The base of one write attempt: the branch state and tables for which a plan is prepared."""

from dataclasses import dataclass

from omnigraph.errors import ReadSetConflict
from omnigraph.history.commit import TableEntry
from omnigraph.history.manifest import LoadedManifest
from omnigraph.storage.store import Store
from omnigraph.storage.table import Table, open_table
from omnigraph.values.table_key import TableKey


@dataclass(frozen=True, slots=True)
class WriteTxn:
    """The pinned base of a write. Every decision about the write is based on this one state.

    `is_retry` is true if the previous attempt lost to another writer. On a retry, optional maintenance that accompanies
    the write is dropped, so that it cannot cause another conflict.
    """

    store: Store
    branch: str
    base: LoadedManifest
    commit_id: str
    created_at: int
    is_retry: bool = False

    def table_entry(self, table_key: TableKey) -> TableEntry | None:
        """Return a table's entry in the base, or None if the base does not contain the table."""
        return self.base.state.tables.get(table_key)

    def table(self, table_key: TableKey) -> Table:
        """Open a table at the version that the base references."""
        entry = self.table_entry(table_key)
        if entry is None:
            raise ReadSetConflict(member="tables", expected=table_key)
        return open_table(self.store, entry.location, entry.lance_version)
