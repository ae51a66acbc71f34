"""Create tables, open table versions, and commit staged changes as detached versions.

A table version never changes, and this package never moves HEAD once the table exists. Every change is staged on top of
the exact version that a manifest references. Neither this module nor Lance enforces unique ids.
"""

import copy
import json
from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import Any

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.dataset import Index

from omnigraph.records.frozen import record

from .checksums import FileChecksums
from .data_writer import LANCE_FILE_VERSION, manifest_checksum
from .deletions import check_deletion_files, deletion_files
from .failures import attempt_maintenance
from .split_updates import split_update
from .store import Store


@record
class Table:
    """A table at one version. `version` is the Lance version number, which exceeds 2^63 for detached versions.

    `new_files` are the files that this process added to create this version, with their checksums. The commit that
    publishes the version records these files.
    """

    location: str
    dataset: Any
    new_files: FileChecksums = field(default_factory=dict, compare=False, repr=False)

    @property
    def version(self) -> int:
        """The Lance version number."""
        return int(self.dataset.version)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the table."""
        schema: pa.Schema = self.dataset.schema
        return schema

    def unshared_dataset(self) -> Any:
        """Return a copy of the dataset for calls that need exclusive access to it, such as index builds.

        During such a call, every other use of the same object raises "Already mutably borrowed". Without a copy, other
        threads would get this error, because they share the datasets of tables.
        """
        return copy.copy(self.dataset)

    @property
    def highest_field_id(self) -> int:
        """The highest field id in use, including field ids inside lists and structs."""
        pending_fields, highest = list(self.dataset.lance_schema.fields()), 0
        while pending_fields:
            lance_field = pending_fields.pop()
            highest = max(highest, lance_field.id())
            pending_fields += lance_field.children()
        return highest


@record
class FragmentFingerprint:
    """The state of a fragment when an operation was planned: its id, data files and deletion file."""

    fragment_id: int
    data_paths: tuple[str, ...]
    deletion_entry: str


@record
class StagedChange:
    """A change to one table that has been written but is not part of any version yet.

    `touched_fragments` are the fragments that the change removes or modifies, and `schema_fingerprint` identifies the
    schema for which the change was made. Both must still match the version on which the change is committed.
    `written_files` are the root-relative names of the files written for the change. `prior_maintenance` contains
    changes that are committed just before this one but can be left out. `checksums` come from the process that wrote
    the files.
    """

    location: str
    operation: Any
    schema_fingerprint: str
    touched_fragments: tuple[FragmentFingerprint, ...] = ()
    row_delta: int = 0
    written_files: tuple[str, ...] = ()
    prior_maintenance: tuple["StagedChange", ...] = ()
    checksums: FileChecksums = field(default_factory=dict, compare=False, repr=False)


def create_table(store: Store, location: str, schema: pa.Schema) -> Table:
    """Create an empty table, whose only attached version remains HEAD."""
    dataset = store.effects.run(
        "create",
        location,
        lambda: lance.write_dataset(
            schema.empty_table(),
            store.root.uri_of(location),
            mode="create",
            enable_stable_row_ids=True,
            data_storage_version=LANCE_FILE_VERSION,
            storage_options=store.options,
            session=store.lance_session,
        ),
    )
    version_name = f"{location}/_versions/{(1 << 64) - 2}.manifest"
    checksums = _checksum_version(store, version_name, dataset)
    store.dataset_cache.put(location, dataset)
    return Table(location, dataset, checksums)


def open_table(store: Store, location: str, version: int) -> Table:
    """Open a table for reading at a version that a manifest references."""
    table = open_unchecked_version(store, location, version)
    if not store.dataset_cache.is_checked(location, version):
        check_deletion_files(store, table)
        if store.table_verifier is not None:
            store.table_verifier(store, table)
        store.dataset_cache.mark_checked(location, version)
    return table


def open_unchecked_version(store: Store, location: str, version: int) -> Table:
    """Open a version to inspect which files it references. To read its rows, use `open_table` instead."""
    return Table(location, store.open_dataset(location, version))


def commit(store: Store, table: Table, staged: StagedChange) -> Table:
    """Commit a staged change on top of `table`, as a detached version that no manifest references yet.

    Lance does not check whether the change applies, so the caller must first call `can_replay`.
    """
    for maintenance in staged.prior_maintenance:
        table = attempt_maintenance(table.location, partial(commit, store, table, maintenance)) or table
    if isinstance(staged.operation, LanceOperation.Rewrite):
        dropped_segments = _segments_to_drop(table, {touched.fragment_id for touched in staged.touched_fragments})
        table = (
            _commit_detached(store, table, LanceOperation.CreateIndex([], dropped_segments))
            if dropped_segments
            else table
        )
    checksums = store.sync_and_checksum(staged.written_files, staged.checksums)
    for operation in split_update(table.dataset, staged.operation, is_local=store.root.is_local):
        table = _commit_detached(store, table, operation, checksums)
    return table


def _commit_detached(store: Store, table: Table, operation: Any, checksums: FileChecksums | None = None) -> Table:
    dataset = store.effects.run(
        "detach",
        table.location,
        lambda: lance.LanceDataset.commit(
            table.dataset, operation, read_version=table.dataset.version, detached=True, storage_options=store.options
        ),
    )
    versions_prefix = f"{table.location}/_versions/"
    version_file = _checksum_version(store, f"{versions_prefix}d{dataset.version}.manifest", dataset)
    store.dataset_cache.put(table.location, dataset)
    store.dataset_cache.mark_checked(table.location, int(dataset.version))
    # No manifest references the intermediate versions, so only the data files that they added are recorded.
    earlier_files = {
        file_name: checksum
        for file_name, checksum in table.new_files.items()
        if not file_name.startswith(versions_prefix)
    }
    return Table(table.location, dataset, {**earlier_files, **(checksums or {}), **version_file})


def _checksum_version(store: Store, version_name: str, dataset: Any) -> FileChecksums:
    """Sync the file of a newly committed version, and return its checksum."""
    return store.sync_and_checksum(
        [version_name], None if store.root.is_local else {version_name: manifest_checksum(dataset)}
    )


def _segments_to_drop(table: Table, fragment_ids: set[int]) -> list[Index]:
    """Return the index segments that Lance would remap incorrectly if these fragments were rewritten.

    This affects all index kinds except BTREE. Lance would record that such a segment covers fragment 0 instead of the
    rewritten fragments. If the segment never indexed fragment 0, searches would miss the rows in that fragment. These
    segments are therefore dropped before the rewrite.
    """
    return [
        segment
        for index in table.dataset.describe_indices()
        for segment in index_segments(index)
        if index.index_type != "BTree" and not fragment_ids.isdisjoint(segment.fragment_ids)
    ]


def index_segments(index: Any) -> list[Index]:
    """Return the segments of an index, in the form that Lance needs to remove them."""
    return [
        Index(
            uuid=str(segment.uuid),
            name=index.name,
            fields=list(index.fields),
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
        )
        for segment in index.segments
    ]


def can_replay(staged: StagedChange, table: Table) -> bool:
    """Return whether a staged change has the same effect on this version as on the version it was staged for."""
    if staged.location != table.location or staged.schema_fingerprint != schema_fingerprint(table):
        return False
    if not all(can_replay(maintenance, table) for maintenance in staged.prior_maintenance):
        return False
    if isinstance(staged.operation, LanceOperation.Overwrite):
        present_fragments = {fragment_fingerprint(fragment.metadata) for fragment in table.dataset.get_fragments()}
        return set(staged.touched_fragments) == present_fragments
    return all(_is_fragment_unchanged(table, touched) for touched in staged.touched_fragments)


def _is_fragment_unchanged(table: Table, fingerprint: FragmentFingerprint) -> bool:
    """Return whether a fragment is unchanged, without reading any other fragment."""
    fragment = table.dataset.get_fragment(fingerprint.fragment_id)
    return fragment is not None and fragment_fingerprint(fragment.metadata) == fingerprint


def schema_fingerprint(table: Table) -> str:
    """Return a string of column names, types and field ids that identifies the schema of a table."""
    lance_fields = table.dataset.lance_schema.fields()
    return json.dumps(
        [
            [lance_field.name(), lance_field.id(), str(table.schema.field(lance_field.name()))]
            for lance_field in lance_fields
        ]
    )


def fragment_fingerprint(metadata: Any) -> FragmentFingerprint:
    """Return the fingerprint of a fragment, given its metadata in one version."""
    fragment_json = metadata.to_json()
    fragment_json = json.loads(fragment_json) if isinstance(fragment_json, str) else fragment_json
    data_paths = tuple(file_entry["path"] for file_entry in fragment_json["files"])
    return FragmentFingerprint(
        int(fragment_json["id"]), data_paths, json.dumps(fragment_json["deletion_file"], sort_keys=True)
    )


def fragment_files(table: Table, fragments: Sequence[Any]) -> tuple[str, ...]:
    """Return the root-relative names of the data and deletion files of these fragments."""
    return data_files(table, fragments) + deletion_files(table, fragments)


def data_files(table: Table, fragments: Sequence[Any]) -> tuple[str, ...]:
    """Return the root-relative names of the data files of these fragments."""
    return tuple(f"{table.location}/data/{data_file.path}" for fragment in fragments for data_file in fragment.files)
