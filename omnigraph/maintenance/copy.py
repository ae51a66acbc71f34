"""Copy a whole graph, including the history of every branch and tag, even while the graph is being written to.

Each branch is copied as of one point in time. Manifests are read first, and data files are listed afterward. A check
then verifies that the copy contains everything that the manifests reference. The main branch's manifest, which makes
the copy readable, is written last.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.errors import (
    AlreadyExists,
    ConcurrentCommit,
    GraphNotInitialized,
    HistoryReclaimed,
    InitializationClaimed,
    InputError,
    StorageError,
)
from omnigraph.history import refs
from omnigraph.history.file_checksums import collect_checksums
from omnigraph.history.manifest import LoadedManifest, read_manifest
from omnigraph.publish.intent import set_aside_files
from omnigraph.storage import layout
from omnigraph.storage.manifest_cell import cell_files
from omnigraph.storage.store import Store, version_file_names
from omnigraph.storage.store_probe import probe_create_if_absent
from omnigraph.storage.transfer import transfer
from omnigraph.values import clock_and_ids

from .copy_verification import find_missing_objects

if TYPE_CHECKING:
    from omnigraph.storage.checksums import FileChecksum

# The immutable objects that states reference. Intents, leases and claims belong to running processes and are not
# copied, except for operations that were set aside and need a decision.
_DATA_PREFIXES = ("nodes", "edges", layout.SCHEMAS, layout.COMMITS, layout.CHECKSUMS, layout.AUDIT)
_MAX_ATTEMPTS = 10

CopyProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CopySummary:
    """The branches in a copied graph, and the number and total size of its objects."""

    branches: tuple[str, ...]
    objects: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _CapturedBranch:
    """A branch or tag at one point in time, and its ref object, which the main branch does not have."""

    name: str
    manifest: LoadedManifest
    ref_object: str | None = None
    is_tag: bool = False


def copy_graph(
    source: Store, target: Store, progress: CopyProgress | None = None, *, actor: str | None = None, verify: bool = True
) -> CopySummary:
    """Copy the graph at `source` to `target`, which must be empty.

    Unless `verify` is false, every file with a checksum is verified in transit. The first mismatch raises
    `DamagedError` and leaves a copy that cannot be opened.

    An interrupted copy cannot be opened either. If a cleanup removes files while they are being copied, the copy starts
    again from newer states and keeps the files that it has already transferred.
    """
    read_manifest(source)
    _check_target(source, target)
    probe_create_if_absent(target)
    if not target.objects.create_json(layout.CLAIM, {"copied_at": clock_and_ids.now_micros(), "actor_id": actor}):
        raise InitializationClaimed(uri=target.root.uri)
    copy_transfer = _CopyTransfer(source, target, progress or (lambda *_: None))
    for _ in range(_MAX_ATTEMPTS):
        captured_branches = _capture_branches(source)
        copy_transfer.remove_stale_refs({captured.ref_object for captured in captured_branches})
        if verify and not copy_transfer.load_checksums(captured_branches):
            continue
        if (
            copy_transfer.copy_data()
            and copy_transfer.verify_copied_data(captured_branches)
            and copy_transfer.copy_manifests(captured_branches)
        ):
            target.objects.remove(layout.CLAIM)
            branch_names = tuple(sorted(captured.name for captured in captured_branches if not captured.is_tag))
            return CopySummary(branch_names, len(copy_transfer.copied_sizes), sum(copy_transfer.copied_sizes.values()))
    raise ConcurrentCommit(
        f"files in {source.root.uri} kept disappearing during the copy; the copy is incomplete and cannot be opened",
        hint="remove the copy, and retry when no cleanup is running",
    )


def _check_target(source: Store, target: Store) -> None:
    source_path, target_path = (f"{store.root.identity}/" for store in (source, target))
    if source_path.startswith(target_path) or target_path.startswith(source_path):
        raise InputError("a graph cannot be copied into itself", reason="overlapping locations")
    if any(True for _ in target.objects.backend.list("")):
        raise AlreadyExists(
            f"{target.root.uri} is not empty", hint="choose a different location, or empty this location"
        )


def _capture_branches(source: Store) -> list[_CapturedBranch]:
    """Read the current state of every tag and live branch, with main last."""
    captured_branches: list[_CapturedBranch] = []
    for ref_directory in (layout.TAGS, layout.REFS):
        for branch_name, ref_number in refs.list_highest_numbers(source, ref_directory).items():
            if ref_number % 2:
                captured_branches += _capture_ref(source, branch_name, ref_number, ref_directory)
    return [*captured_branches, _CapturedBranch(layout.MAIN, read_manifest(source))]


def _capture_ref(source: Store, branch_name: str, ref_number: int, ref_directory: str) -> list[_CapturedBranch]:
    ref = refs.read_ref(source, branch_name, ref_number, ref_directory)
    if ref is None:
        return []
    try:
        manifest = read_manifest(source, ref.ulid)
    except GraphNotInitialized:  # the branch was deleted and cleaned up after it was listed
        return []
    if manifest.state.head.closed:
        return []
    ref_object = layout.ref_name(branch_name, ref_number, ref_directory)
    return [_CapturedBranch(branch_name, manifest, ref_object, ref_directory == layout.TAGS)]


def _missing_files_error(source: Store, missing_names: Sequence[str]) -> StorageError:
    return StorageError(
        f"files in {source.root.uri} are missing, including {missing_names[0]}; the copy cannot be opened",
        kind="not_found",
        effect="none",
        hint="restore the source from a backup, and remove the incomplete copy",
    )


class _CopyTransfer:
    """A copy in progress, with the names and sizes of the files transferred so far."""

    def __init__(self, source: Store, target: Store, progress: CopyProgress) -> None:
        self.source, self.target, self.progress = source, target, progress
        self.copied_sizes: dict[str, int] = {}
        self.checksums: dict[str, FileChecksum] = {}
        self._copied_bytes = self._total_bytes = 0
        self._last_missing: object = None

    def remove_stale_refs(self, live_refs: Set[str | None]) -> None:
        """Remove refs that an earlier attempt copied for branches that no longer exist."""
        for ref_object in [copied_name for copied_name in self.copied_sizes if copied_name.startswith("_refs/")]:
            if ref_object not in live_refs:
                self._remove_copied(ref_object)

    def load_checksums(self, captured_branches: Sequence[_CapturedBranch]) -> bool:
        """Read the checksums recorded in the logs; return False if part of a log no longer exists."""
        try:
            recorded_checksums = collect_checksums(
                self.source, (captured.manifest.state for captured in captured_branches)
            )
        except HistoryReclaimed:
            return False
        self.checksums |= recorded_checksums
        return True

    def copy_data(self) -> bool:
        """Copy all data files that states may reference; return False if one of them no longer exists."""
        data_files = [stored_file for prefix in _DATA_PREFIXES for stored_file in self.source.objects.list(prefix)]
        data_files += set_aside_files(self.source)
        # If the size changed, the file was still being written when it was copied.
        sizes_to_copy = {
            stored_file.name: stored_file.size
            for stored_file in data_files
            if self.copied_sizes.get(stored_file.name) != stored_file.size
        }
        self._total_bytes += sum(sizes_to_copy.values())
        return self._transfer_files(sizes_to_copy)

    def verify_copied_data(self, captured_branches: Sequence[_CapturedBranch]) -> bool:
        """Return whether the copy has everything that the states reference.

        Also remove incomplete past versions from the copy. A file that a head needs may be missing because it was
        removed after the head was read. A newer head does not need this file. If the head has not changed and the file
        is still missing, the source itself has lost the file.
        """
        existing_names = {
            stored_file.name for kind in ("nodes", "edges") for stored_file in self.source.objects.list(kind)
        }
        missing_data = find_missing_objects(
            self.target, (captured.manifest.state for captured in captured_branches), self.copied_sizes, existing_names
        )
        for version in missing_data.past_versions:
            for version_file in version_file_names(*version) & self.copied_sizes.keys():
                self._remove_copied(version_file)
        missing_now = missing_data.head_names and (
            missing_data.head_names,
            [captured.manifest.version for captured in captured_branches],
        )
        if missing_now and missing_now == self._last_missing:
            raise _missing_files_error(self.source, missing_data.head_names)
        self._last_missing = missing_now
        return not missing_now

    def copy_manifests(self, captured_branches: Iterable[_CapturedBranch]) -> bool:
        """Copy each manifest before the ref that points to it. The main branch's manifest is copied last."""
        for captured in captured_branches:
            for object_name in (
                *cell_files(captured.manifest.cell),
                *((captured.ref_object,) if captured.ref_object else ()),
            ):
                if not self._transfer_files({object_name: 0}):
                    return False
        return True

    def _remove_copied(self, object_name: str) -> None:
        self.target.objects.remove(object_name)
        del self.copied_sizes[object_name]

    def _transfer_files(self, sizes: dict[str, int]) -> bool:
        def record_transferred(object_name: str) -> None:
            self.copied_sizes[object_name] = sizes[object_name]
            self._copied_bytes += sizes[object_name]
            self.progress(self._copied_bytes, self._total_bytes)

        return transfer(self.source, self.target, sizes, record_transferred, self.checksums)
