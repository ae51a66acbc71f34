"""Stage row changes without committing them: append, remove, replace and overwrite."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from lance import LanceOperation
from lance.fragment import RowIdSequence

from .checksums import FileChecksum, FileChecksums
from .data_writer import WrittenFragments, write_data, write_deletions
from .deletions import deletion_file_name
from .row_ids import check_row_ids
from .sizes import FRAGMENT_ROWS, MAX_WRITTEN_BYTES
from .store import Store
from .table import FragmentFingerprint, StagedChange, Table, data_files, fragment_fingerprint, schema_fingerprint


def stage_append(store: Store, table: Table, rows: pa.Table) -> StagedChange:
    """Stage an append, which does not change existing fragments and can therefore be replayed on any later version."""
    written_data = _write_rows(store, table, rows)
    return StagedChange(
        table.location,
        LanceOperation.Append(written_data.fragments),
        schema_fingerprint(table),
        row_delta=rows.num_rows,
        written_files=data_files(table, written_data.fragments),
        checksums=written_data.checksums,
    )


def stage_change(
    store: Store,
    table: Table,
    *,
    removed_addresses: Sequence[int] = (),
    replacements: tuple[Sequence[int], pa.Table] | None = None,
    added_rows: pa.Table | None = None,
) -> StagedChange:
    """Stage one operation that removes rows by address, replaces rows under their row ids, and adds rows.

    `replacements` is a pair of row ids and rows. The addresses of the old copies must be in `removed_addresses`. Row
    ids and addresses are checked before anything is written, because Lance accepts any row id.
    """
    if replacements is not None:
        check_row_ids(table.dataset, removed_addresses, replacements[0], replacements[1].num_rows)
    removal = remove_rows(store, table, removed_addresses)
    row_ids, replacing_rows = replacements if replacements is not None else ((), None)
    row_groups = [row_part for row_part in (replacing_rows, added_rows) if row_part is not None and row_part.num_rows]
    new_rows = pa.concat_tables(row_groups) if row_groups else table.schema.empty_table()
    written_data = _write_rows(store, table, new_rows) if row_groups else WrittenFragments([])
    if row_ids:
        _assign_row_ids(written_data.fragments, row_ids)
    row_delta = new_rows.num_rows - len(removed_addresses)
    return removal.to_staged_change(table, written_data.fragments, row_delta, written_data.checksums)


def stage_overwrite(store: Store, table: Table, rows: pa.Table) -> StagedChange:
    """Stage an overwrite, which replaces all rows and therefore every fragment."""
    written_data = _write_rows(store, table, rows) if rows.num_rows else WrittenFragments([])
    touched_fragments = tuple(fragment_fingerprint(fragment.metadata) for fragment in table.dataset.get_fragments())
    return StagedChange(
        table.location,
        LanceOperation.Overwrite(table.dataset.lance_schema, written_data.fragments),
        schema_fingerprint(table),
        touched_fragments,
        rows.num_rows - table.dataset.count_rows(),
        data_files(table, written_data.fragments),
        checksums=written_data.checksums,
    )


def _write_rows(store: Store, table: Table, rows: pa.Table) -> WrittenFragments:
    stored_rows = rows.select(table.schema.names).cast(table.schema)
    write_fragments = partial(
        write_data, store, table.location, table.dataset, stored_rows, FRAGMENT_ROWS, MAX_WRITTEN_BYTES
    )
    return store.effects.run("stage", table.location, write_fragments)


@dataclass(slots=True)
class RowRemoval:
    """A removal of rows: updated and emptied fragments, their old fingerprints, and the new deletion files."""

    updated_fragments: list[Any] = field(default_factory=list)
    emptied_fragment_ids: list[int] = field(default_factory=list)
    touched_fragments: list[FragmentFingerprint] = field(default_factory=list)
    deletion_file_names: list[str] = field(default_factory=list)
    checksums: dict[str, FileChecksum] = field(default_factory=dict)

    def to_staged_change(
        self, table: Table, new_fragments: list[Any], row_delta: int, checksums: FileChecksums
    ) -> StagedChange:
        """Combine the removal and the new fragments into one change. `row_delta` is the change in the row count."""
        # Never use `rewrite_rows`: without field lists, it makes indexes return old values.
        operation = LanceOperation.Update(
            removed_fragment_ids=self.emptied_fragment_ids,
            updated_fragments=self.updated_fragments,
            new_fragments=new_fragments,
            update_mode="",
        )
        written_files = data_files(table, new_fragments) + tuple(self.deletion_file_names)
        all_checksums = {**checksums, **self.checksums}
        fingerprint, touched_fragments = schema_fingerprint(table), tuple(self.touched_fragments)
        return StagedChange(
            table.location, operation, fingerprint, touched_fragments, row_delta, written_files, checksums=all_checksums
        )


def remove_rows(store: Store, table: Table, addresses: Sequence[int]) -> RowRemoval:
    """Write deletion files for the rows at these addresses."""
    by_fragment: dict[int, list[int]] = {}
    for address in addresses:
        by_fragment.setdefault(address >> 32, []).append(address & 0xFFFFFFFF)
    removal = RowRemoval()
    for fragment_id, offsets in sorted(by_fragment.items()):
        fragment = table.dataset.get_fragment(fragment_id)
        removal.touched_fragments.append(fragment_fingerprint(fragment.metadata))
        write_deletion_file = partial(write_deletions, store, table.location, table.version, fragment, offsets)
        updated_fragment, checksums = store.effects.run("mark", table.location, write_deletion_file)
        removal.checksums |= checksums
        if updated_fragment is None:
            removal.emptied_fragment_ids.append(fragment_id)
        else:
            removal.updated_fragments.append(updated_fragment)
            removal.deletion_file_names.append(deletion_file_name(table.location, updated_fragment))
    return removal


def _assign_row_ids(fragments: list[Any], row_ids: Sequence[int]) -> None:
    remaining_ids = list(row_ids)
    for fragment in fragments:
        fragment_row_ids = remaining_ids[: fragment.physical_rows]
        remaining_ids = remaining_ids[fragment.physical_rows :]
        if fragment_row_ids:
            fragment.row_id_meta = RowIdSequence(fragment_row_ids).to_inline_metadata()
