"""One table: create it, open a version, stage changes, commit them detached, read rows.

A table version never changes, and HEAD never moves after creation: every change is staged on top of
the exact version that a manifest names. Uniqueness of ids is not decided here, and never by Lance.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.dataset import Index
from lance.fragment import RowIdSequence

from .checksums import FileChecksum, FileChecksums
from .deletions import check_deletion_files, deletion_file, deletion_files
from .row_ids import check_row_ids
from .sizes import FRAGMENT_ROWS
from .staging import FORMAT, WrittenFragments, delete_rows, manifest_checksum, write_data
from .store import Store


@dataclass(frozen=True, slots=True)
class Table:
    """A table at one version. `version` is Lance's number; detached ones exceed 2^63.

    `new_files` are the files that this process added to the table on the way to this version, with
    their checksums; the commit that publishes the version records them.
    """

    location: str
    dataset: Any
    new_files: FileChecksums = field(default_factory=dict, compare=False, repr=False)

    @property
    def version(self) -> int:
        """The Lance version."""
        return int(self.dataset.version)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        schema: pa.Schema = self.dataset.schema
        return schema

    @property
    def highest_field_id(self) -> int:
        """The highest field id in use, including those inside lists and structs."""
        fields, highest = list(self.dataset.lance_schema.fields()), 0
        while fields:
            one = fields.pop()
            highest = max(highest, one.id())
            fields += one.children()
        return highest


@dataclass(frozen=True, slots=True)
class Mark:
    """What a fragment looked like when an operation was planned: id, files and deletion file."""

    fragment: int
    files: tuple[str, ...]
    deletions: str


@dataclass(frozen=True, slots=True)
class Staged:
    """A change of one table that is written and not yet part of any version.

    `touched_fragments` are those it removes or marks, `schema_fingerprint` the schema it was made
    for: both must still match where it is committed. `written_files` are root-relative names.
    `prior_maintenance` is committed just before the change, which does not depend on it.
    `checksums` were taken where the files were written.
    """

    location: str
    operation: Any
    fields: str
    touched: tuple[Mark, ...] = ()
    rows: int = 0
    files: tuple[str, ...] = ()
    upfront: tuple["Staged", ...] = ()
    checksums: FileChecksums = field(default_factory=dict, compare=False, repr=False)


def create_table(store: Store, location: str, schema: pa.Schema) -> Table:
    """Create an empty table. Its one attached version stays HEAD for ever."""
    dataset = store.effects.run(
        "create",
        location,
        lambda: lance.write_dataset(
            schema.empty_table(),
            store.root.at(location),
            mode="create",
            enable_stable_row_ids=True,
            data_storage_version=FORMAT,
            storage_options=store.options,
            session=store.session,
        ),
    )
    name = f"{location}/_versions/{(1 << 64) - 2}.manifest"
    checksums = _checksum_version(store, name, dataset)
    store.handles.put(location, dataset)
    return Table(location, dataset, checksums)


def open_table(store: Store, location: str, version: int) -> Table:
    """Open a table at the version that a manifest names, ready to be read."""
    table = open_version(store, location, version)
    if not store.handles.is_checked(location, version):
        check_deletion_files(store, table)
        if store.verifier is not None:
            store.verifier(store, table)
        store.handles.mark_checked(location, version)
    return table


def open_version(store: Store, location: str, version: int) -> Table:
    """Open a version to inspect what it names; its rows must not be read (see `open_table`)."""
    return Table(location, store.open(location, version))


def stage_append(store: Store, table: Table, rows: pa.Table) -> Staged:
    """Stage an append. It touches no fragment, so it can be replayed on any later version."""
    written = _write(store, table, rows)
    return Staged(
        table.location,
        LanceOperation.Append(written.fragments),
        field_digest(table),
        rows=rows.num_rows,
        files=data_files(table, written.fragments),
        checksums=written.checksums,
    )


def stage_change(
    store: Store,
    table: Table,
    *,
    removed: Sequence[int] = (),
    replaced: tuple[Sequence[int], pa.Table] | None = None,
    added: pa.Table | None = None,
) -> Staged:
    """Stage one operation: remove rows by address, replace rows keeping their row ids, add rows.

    `replacements` is (row ids, rows); the addresses of their old copies must be among
    `removed_addresses`. This is checked before anything is written: Lance accepts any row id.
    """
    if replaced is not None:
        check_row_ids(table.dataset, removed, replaced[0], replaced[1].num_rows)
    removal = remove_rows(store, table, removed)
    row_ids, rows = replaced if replaced is not None else ((), None)
    fresh = _concatenate(rows, added)
    written = _write(store, table, fresh) if fresh is not None else WrittenFragments([])
    if row_ids:
        _keep_row_ids(written.fragments, row_ids)
    count = (fresh.num_rows if fresh is not None else 0) - len(removed)
    return removal.as_change(table, written.fragments, count, written.checksums)


def stage_overwrite(store: Store, table: Table, rows: pa.Table) -> Staged:
    """Stage the replacement of all rows. Touches every fragment."""
    written = _write(store, table, rows) if rows.num_rows else WrittenFragments([])
    touched = tuple(mark_of(one.metadata) for one in table.dataset.get_fragments())
    return Staged(
        table.location,
        LanceOperation.Overwrite(table.dataset.lance_schema, written.fragments),
        field_digest(table),
        touched,
        rows.num_rows - table.dataset.count_rows(),
        data_files(table, written.fragments),
        checksums=written.checksums,
    )


def commit(store: Store, table: Table, staged: Staged) -> Table:
    """Commit a staged change on top of `table`, as a detached version that no manifest names yet.

    Lance checks nothing here: the caller must have proved with `can_replay` that the change fits.
    """
    for one in staged.upfront:
        table = commit(store, table, one)
    if isinstance(staged.operation, LanceOperation.Rewrite):
        gone = _following(table, {touched.fragment for touched in staged.touched})
        table = _detach(store, table, LanceOperation.CreateIndex([], gone)) if gone else table
    checksums = store.sync_files(staged.files, staged.checksums)
    return _detach(store, table, staged.operation, checksums)


def _detach(
    store: Store, table: Table, operation: Any, checksums: FileChecksums | None = None
) -> Table:
    dataset = store.effects.run(
        "detach",
        table.location,
        lambda: lance.LanceDataset.commit(
            table.dataset,
            operation,
            read_version=table.dataset.version,
            detached=True,
            storage_options=store.options,
        ),
    )
    versions = f"{table.location}/_versions/"
    version_file = _checksum_version(store, f"{versions}d{dataset.version}.manifest", dataset)
    store.handles.put(table.location, dataset)
    store.handles.mark_checked(table.location, int(dataset.version))
    # No manifest names the versions in between, only the data files that they added.
    earlier = {name: one for name, one in table.new_files.items() if not name.startswith(versions)}
    return Table(table.location, dataset, {**earlier, **(checksums or {}), **version_file})


def _checksum_version(store: Store, name: str, dataset: Any) -> FileChecksums:
    """Sync the file of a version that was just committed, and return its checksum."""
    return store.sync_files(
        [name], None if store.root.local else {name: manifest_checksum(dataset)}
    )


def _following(table: Table, fragments: set[int]) -> list[Index]:
    """Return index segments that would follow these fragments when they are rewritten.

    All kinds but BTREE do. Lance then records fragment 0 as covered in their place. That may be a
    fragment the segment never read, whose rows would not be found. So these are dropped first.
    """
    return [
        segment
        for one in table.dataset.describe_indices()
        for segment in index_segments(one)
        if one.index_type != "BTree" and not fragments.isdisjoint(segment.fragment_ids)
    ]


def index_segments(index: Any) -> list[Index]:
    """Return the segments of an index, as an operation that removes them needs them."""
    return [
        Index(
            uuid=str(one.uuid),
            name=index.name,
            fields=list(index.fields),
            dataset_version=one.dataset_version_at_last_update,
            fragment_ids=one.fragment_ids,
            index_version=one.index_version,
        )
        for one in index.segments
    ]


def replays(staged: Staged, table: Table) -> bool:
    """Return whether a staged change means the same on this version as on its own base."""
    if staged.location != table.location or staged.fields != field_digest(table):
        return False
    if not all(replays(maintenance, table) for maintenance in staged.upfront):
        return False
    if isinstance(staged.operation, LanceOperation.Overwrite):
        present = {mark_of(fragment.metadata) for fragment in table.dataset.get_fragments()}
        return set(staged.touched) == present
    return all(_stands(table, one) for one in staged.touched)


def _stands(table: Table, mark: Mark) -> bool:
    """Return whether a fragment is unchanged; looks at this one only, however many there are."""
    found = table.dataset.get_fragment(mark.fragment)
    return found is not None and mark_of(found.metadata) == mark


def field_digest(table: Table) -> str:
    """Return names, types and field ids: data files mean the same only if these are equal."""
    fields = table.dataset.lance_schema.fields()
    return json.dumps([[f.name(), f.id(), str(table.schema.field(f.name()))] for f in fields])


def _write(store: Store, table: Table, rows: pa.Table) -> WrittenFragments:
    shaped = rows.select(table.schema.names).cast(table.schema)
    write = partial(write_data, store, table.location, table.dataset, shaped, FRAGMENT_ROWS)
    return store.effects.run("stage", table.location, write)


@dataclass(slots=True)
class Removal:
    """Removed rows: fragments with new deletion files, emptied ones, and what all looked like."""

    marked: list[Any] = field(default_factory=list)
    emptied: list[int] = field(default_factory=list)
    touched: list[Mark] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    checksums: dict[str, FileChecksum] = field(default_factory=dict)

    def as_change(
        self, table: Table, new: list[Any], rows: int, checksums: FileChecksums
    ) -> Staged:
        """Return the removal and new fragments as one operation; `row_delta` is the net change."""
        # Never `rewrite_rows`: without field lists it makes indexes return old values.
        operation = LanceOperation.Update(
            removed_fragment_ids=self.emptied,
            updated_fragments=self.marked,
            new_fragments=new,
            update_mode="",
        )
        files = data_files(table, new) + tuple(self.files)
        known = {**checksums, **self.checksums}
        fields, touched = field_digest(table), tuple(self.touched)
        return Staged(table.location, operation, fields, touched, rows, files, checksums=known)


def remove_rows(store: Store, table: Table, addresses: Sequence[int]) -> Removal:
    """Write deletion files for rows by their addresses."""
    by_fragment: dict[int, list[int]] = {}
    for address in addresses:
        by_fragment.setdefault(address >> 32, []).append(address & 0xFFFFFFFF)
    removal = Removal()
    for number, offsets in sorted(by_fragment.items()):
        fragment = table.dataset.get_fragment(number)
        removal.touched.append(mark_of(fragment.metadata))
        delete = partial(delete_rows, store, table.location, table.version, fragment, offsets)
        marked, checksums = store.effects.run("mark", table.location, delete)
        removal.checksums |= checksums
        if marked is None:
            removal.emptied.append(number)
        else:
            removal.marked.append(marked)
            removal.files.append(deletion_file(table.location, marked))
    return removal


def _keep_row_ids(fragments: list[Any], row_ids: Sequence[int]) -> None:
    left = list(row_ids)
    for one in fragments:
        own, left = left[: one.physical_rows], left[one.physical_rows :]
        if own:
            one.row_id_meta = RowIdSequence(own).to_inline_metadata()


def _concatenate(first: pa.Table | None, second: pa.Table | None) -> pa.Table | None:
    parts = [one for one in (first, second) if one is not None and one.num_rows]
    return pa.concat_tables(parts) if parts else None


def mark_of(metadata: Any) -> Mark:
    """Return what a fragment looks like in a version."""
    facts = metadata.to_json()
    facts = json.loads(facts) if isinstance(facts, str) else facts
    files = tuple(one["path"] for one in facts["files"])
    return Mark(int(facts["id"]), files, json.dumps(facts["deletion_file"], sort_keys=True))


def files_of(table: Table, fragments: Sequence[Any]) -> tuple[str, ...]:
    """Return the root-relative names of the data and deletion files of fragments."""
    return data_files(table, fragments) + deletion_files(table, fragments)


def data_files(table: Table, fragments: Sequence[Any]) -> tuple[str, ...]:
    """Return the root-relative names of the data files of fragments."""
    return tuple(f"{table.location}/data/{one.path}" for f in fragments for one in f.files)
