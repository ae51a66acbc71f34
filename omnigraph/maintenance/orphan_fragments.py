"""Find manifest fragments above the newest version, which interrupted writes or lost versions have left behind.

Every swap writes the rows for the next state to a fragment and then writes the version that references the fragment. A
fragment records the version that it was written for. `lost_versions` determines whether that version was ever
published. This module never writes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from omnigraph.errors import OmnigraphError
from omnigraph.history.state import READ_COLUMNS, GraphState, StateMismatch, from_rows
from omnigraph.publish.trim_versions import fragments_of_version
from omnigraph.storage import layout
from omnigraph.storage.file_roles import attached_version_number, subdirectory_of
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.raw_files import read_raw_batches
from omnigraph.storage.store import Store

# The maximum number of versions to read when determining which fragments are referenced.
_MAX_EXACT_VERSIONS = 256
_TIMESTAMP_MARGIN = timedelta(seconds=2)  # coarser than the timestamp resolution of any store
_MAX_FENCE_VERSIONS = 64  # maximum number of consecutive versions without a commit


@dataclass(frozen=True, slots=True)
class OrphanFragment:
    """A fragment that no version references: its state, and the version that it was written for."""

    state: GraphState
    version: int


@dataclass(frozen=True, slots=True)
class ManifestFiles:
    """The files in a manifest: versions by number, fragments, and the base versions that swaps recorded."""

    version_files: Mapping[int, ListedObject]
    data_files: Mapping[str, ListedObject]
    swap_bases: frozenset[int]

    @property
    def newest_version(self) -> int:
        """The newest version, or 0 if there is no version."""
        return max(self.version_files, default=0)

    @property
    def missing_versions(self) -> list[int]:
        """The versions that are missing between existing versions."""
        oldest_version = min(self.version_files, default=0)
        return [version for version in range(oldest_version, self.newest_version) if version not in self.version_files]


def list_manifest_files(store: Store, manifest_ulid: str) -> ManifestFiles:
    """List the files in a manifest.

    The versions are listed last, so that a concurrent swap's base never appears above the newest version.
    """
    directory = layout.manifest_directory(manifest_ulid)
    data_files = {listed_object.name: listed_object for listed_object in store.objects.list(f"{directory}/data")}
    swap_names = [
        listed_object.name.rpartition("/")[2] for listed_object in store.objects.list(f"{directory}/_transactions")
    ]
    swap_bases = frozenset(int(base) for swap in swap_names if (base := swap.partition("-")[0]).isdecimal())
    version_objects = store.objects.list(f"{directory}/_versions")
    version_files = {
        version: listed_object
        for listed_object in version_objects
        if (version := attached_version_number(listed_object.name)) is not None
    }
    return ManifestFiles(version_files, data_files, swap_bases)


def read_newer_fragments(store: Store, manifest_ulid: str, manifest_files: ManifestFiles) -> list[OrphanFragment]:
    """Return the fragments written for versions above the newest version, lowest version first."""
    fragments = (
        _read_fragment(store, manifest_ulid, file_name) for file_name in sorted(_candidate_names(store, manifest_files))
    )
    newer_fragments = [
        fragment for fragment in fragments if fragment is not None and fragment.version > manifest_files.newest_version
    ]
    return sorted(newer_fragments, key=lambda fragment: fragment.version)


def _candidate_names(store: Store, manifest_files: ManifestFiles) -> set[str]:
    """Return the unreferenced fragments.

    If there are many versions, return all fragments that are not older than the newest version.
    """
    if len(manifest_files.version_files) > _MAX_EXACT_VERSIONS:
        cutoff = manifest_files.version_files[manifest_files.newest_version].modified - _TIMESTAMP_MARGIN
        return {
            file_name for file_name, listed_file in manifest_files.data_files.items() if listed_file.modified >= cutoff
        }
    data_names, referenced_names = set(manifest_files.data_files), set[str]()
    if len(data_names) > len(manifest_files.version_files):
        for listed_file in manifest_files.version_files.values():
            referenced_names |= set(fragments_of_version(store, listed_file.name, data_names))
        return data_names - referenced_names
    return set()


def _read_fragment(store: Store, manifest_ulid: str, file_name: str) -> OrphanFragment | None:
    """Read a fragment as a state; return None if it is truncated or belongs to a different manifest."""
    if subdirectory_of(file_name) != "data":
        return None
    try:
        batches = read_raw_batches(store, file_name)
        rows = [row for batch in batches for row in batch.select(READ_COLUMNS).to_pylist()]
        return next(_parse_fragment(rows, manifest_ulid), None)
    except (OmnigraphError, OSError, ValueError, LookupError, TypeError):
        return None


def _parse_fragment(rows: Sequence[Mapping[str, Any]], manifest_ulid: str) -> Iterator[OrphanFragment]:
    head_row = next(row for row in rows if row["object_type"] == "graph_head")
    versions_by_object = {row["object_id"]: row["table_version"] for row in rows}
    for version in _possible_versions(head_row, versions_by_object):
        try:
            state = from_rows(rows, version)
        except StateMismatch:
            continue
        if state.head.ulid == manifest_ulid:
            yield OrphanFragment(state, version)


def _possible_versions(head_row: Mapping[str, Any], versions_by_object: Mapping[str, int | None]) -> Sequence[int]:
    """Return the versions that a state may belong to: its commit's version, or a later version without a commit."""
    metadata = json.loads(head_row["metadata"])
    commit_version = (
        1 if metadata["commit_id"] == metadata["fork"] else versions_by_object.get(metadata["commit_id"]) or 1
    )
    return range(commit_version + 1, commit_version + _MAX_FENCE_VERSIONS) if metadata["nonce"] else (commit_version,)
