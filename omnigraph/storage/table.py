"""One table: create it, open a version, stage changes, commit them detached, read rows.

A table version never changes, and HEAD never moves after creation: every change is staged on top of
the exact version that a state names. Uniqueness of ids is not decided here, and never by Lance.
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

    `new_files` are the files that this process has added to the table on the way to this version,
    with their checksums; the commit that publishes the version records them.
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
        """The highest field id in use, those inside lists and structs included."""
        fields, highest = list(self.dataset.lance_schema.fields()), 0
        while fields:
            one = fields.pop()
            highest = max(highest, one.id())
            fields += one.children()
        return highest


@dataclass(frozen=True, slots=True)
class Mark:
    """How a fragment looked when an operation was planned: its id, files and deletion file."""

    fragment: int
    files: tuple[str, ...]
    deletions: str


@dataclass(frozen=True, slots=True)
class Staged:
    """A change of one table that is written and not yet part of any version.

    `touched` are the fragments it removes or marks, `fields` the schema it was made for: both must
    still hold where it is committed. `files` are the root-relative names that it wrote.
    `upfront` is upkeep that is committed just before it, and that it can do without. `checksums`
    are those of the files that were taken where the files were written.
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
    """A new, empty table. Its one attached version stays HEAD for ever."""
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
    """A table at the version that a state names, ready to be read."""
    table = open_version(store, location, version)
    if not store.handles.is_checked(location, version):
        check_deletion_files(store, table)
        if store.verifier is not None:
            store.verifier(store, table)
        store.handles.mark_checked(location, version)
    return table


def open_version(store: Store, location: str, version: int) -> Table:
    """A table at a version, to look at what it names; its rows must not be read."""
    return Table(location, store.open(location, version))


def stage_append(store: Store, table: Table, rows: pa.Table) -> Staged:
    """Rows to be added. Touches no fragment, so it can be replayed on any later version."""
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
    """Remove rows by address, replace rows keeping their row ids, add rows: one operation.

    `replaced` is (row ids, rows); the addresses of their old copies must be among `removed`. That
    is checked before anything is written: Lance itself would take any row id.
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
    """All rows replaced by these. Touches every fragment."""
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
    """Make a staged change the successor of `table`, as a detached version nobody names yet.

    Lance checks nothing here: the caller has proved with `replays` that the change fits.
    """
    for one in staged.upfront:
        table = commit(store, table, one)
    if isinstance(staged.operation, LanceOperation.Rewrite):
        gone = _following(table, {one.fragment for one in staged.touched})
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
    # No state names the versions in between, only the data that they brought.
    earlier = {name: one for name, one in table.new_files.items() if not name.startswith(versions)}
    return Table(table.location, dataset, {**earlier, **(checksums or {}), **version_file})


def _checksum_version(store: Store, name: str, dataset: Any) -> FileChecksums:
    """Sync the file of a version that was just committed, and return its checksum."""
    return store.sync_files(
        [name], None if store.root.local else {name: manifest_checksum(dataset)}
    )


def _following(table: Table, fragments: set[int]) -> list[Index]:
    """Segments of indexes that would follow these fragments to where they are written anew.

    All but BTREE do. Lance then notes fragment 0 in their place, which may be one that they never
    read, and its rows would not be found: such a segment goes before.
    """
    return [
        segment
        for one in table.dataset.describe_indices()
        for segment in index_segments(one)
        if one.index_type != "BTree" and not fragments.isdisjoint(segment.fragment_ids)
    ]


def index_segments(index: Any) -> list[Index]:
    """The segments of an index, as an operation that removes them names them."""
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
    """Whether a staged change means the same on this version as on the one it was made for."""
    if staged.location != table.location or staged.fields != field_digest(table):
        return False
    if not all(replays(one, table) for one in staged.upfront):
        return False
    if isinstance(staged.operation, LanceOperation.Overwrite):
        present = {mark_of(one.metadata) for one in table.dataset.get_fragments()}
        return set(staged.touched) == present
    return all(_stands(table, one) for one in staged.touched)


def _stands(table: Table, mark: Mark) -> bool:
    """Whether a fragment still looks as it did; only that one is asked, however many there are."""
    found = table.dataset.get_fragment(mark.fragment)
    return found is not None and mark_of(found.metadata) == mark


def field_digest(table: Table) -> str:
    """Names, types and field ids: what data files written for one version mean in another."""
    fields = table.dataset.lance_schema.fields()
    return json.dumps([[f.name(), f.id(), str(table.schema.field(f.name()))] for f in fields])


def _write(store: Store, table: Table, rows: pa.Table) -> WrittenFragments:
    shaped = rows.select(table.schema.names).cast(table.schema)
    write = partial(write_data, store, table.location, table.dataset, shaped, FRAGMENT_ROWS)
    return store.effects.run("stage", table.location, write)


@dataclass(slots=True)
class Removal:
    """Rows that go: fragments with new deletion files, emptied fragments, and how all looked."""

    marked: list[Any] = field(default_factory=list)
    emptied: list[int] = field(default_factory=list)
    touched: list[Mark] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    checksums: dict[str, FileChecksum] = field(default_factory=dict)

    def as_change(
        self, table: Table, new: list[Any], rows: int, checksums: FileChecksums
    ) -> Staged:
        """The removal and new fragments as one operation; `rows` is how many more there are."""
        # Never `rewrite_rows`: without field lists it makes indexes answer with old values.
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
    """How a fragment looks in a version."""
    facts = metadata.to_json()
    facts = json.loads(facts) if isinstance(facts, str) else facts
    files = tuple(one["path"] for one in facts["files"])
    return Mark(int(facts["id"]), files, json.dumps(facts["deletion_file"], sort_keys=True))


def files_of(table: Table, fragments: Sequence[Any]) -> tuple[str, ...]:
    """The root-relative names of the data and deletion files of fragments."""
    return data_files(table, fragments) + deletion_files(table, fragments)


def data_files(table: Table, fragments: Sequence[Any]) -> tuple[str, ...]:
    """The root-relative names of the data files of fragments."""
    return tuple(f"{table.location}/data/{one.path}" for f in fragments for one in f.files)
