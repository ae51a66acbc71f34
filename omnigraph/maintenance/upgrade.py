"""Upgrade a root to the current storage format in place, one manifest at a time.

Each manifest is converted with one swap, so it is always entirely in one format. Main is converted last. Until then,
the older release can still open the graph, and an interrupted upgrade can be resumed. Table files are never changed. A
format without a registered upgrade step is rejected.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from omnigraph.errors import ConcurrentCommit, Conflict, InternalError, StorageError
from omnigraph.history.delete_queue import list_runs
from omnigraph.history.format_upgrades import FormatUpgrade, find_upgrades
from omnigraph.history.manifest import check_format_stamp
from omnigraph.history.missing_manifest import absent_manifest_error
from omnigraph.history.state import from_rows, to_rows, without_checksum
from omnigraph.publish.intent import list_intents
from omnigraph.publish.unresolved_swaps import local_disk_error
from omnigraph.storage import layout
from omnigraph.storage import manifest_cell as cells
from omnigraph.storage.failures import as_storage_errors, to_storage_error
from omnigraph.storage.manifest_cell import ManifestCell, SwapConflict, SwapOutcomeUnknown
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids

from .branch_heads import is_tag_label, ref_label
from .retention.mark_live import list_refs

_MAX_ATTEMPTS = 50  # maximum number of swap attempts per manifest; writers that run the older release may interfere
_MAX_ROUNDS = 3  # maximum number of listings; a branch may be created while others are upgraded

UpgradeOutcome = Literal["current", "preview", "upgraded"]


@dataclass(frozen=True, slots=True)
class ManifestFormat:
    """The manifest of a branch or tag, and the format in which it was found.

    `label` is None for a deleted branch or tag, whose last manifest version is kept.
    """

    location: str
    label: str | None
    storage_format: int


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """The result of an upgrade or an upgrade preview.

    `outcome` is `current`, `preview` or `upgraded`. `storage_format` is the oldest format that was found, and
    `manifests` are the manifests in an older format.
    """

    outcome: UpgradeOutcome
    storage_format: int
    steps: tuple[str, ...] = ()
    manifests: tuple[ManifestFormat, ...] = ()
    supported_format: int = layout.STAMP

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data."""
        return {
            "outcome": self.outcome,
            "storage_format": self.storage_format,
            "supported_format": self.supported_format,
            "steps": list(self.steps),
            "manifests": [
                {"name": manifest.label, "location": manifest.location, "storage_format": manifest.storage_format}
                for manifest in self.manifests
            ],
        }


def upgrade_graph(store: Store, *, dry_run: bool = False) -> UpgradeReport:
    """Upgrade every manifest in a graph, or only report what would be done.

    Raises `InputError` for a format that cannot be upgraded, `Conflict` if operations are unfinished,
    and `StorageError` if the store fails. After a failure, the upgrade can be run again.
    """
    with as_storage_errors("none"):
        outdated = _find_outdated(store)
        steps = _describe_steps(outdated)
        oldest = min((manifest.storage_format for manifest in outdated), default=layout.STAMP)
        if not outdated or dry_run:
            return UpgradeReport("preview" if outdated else "current", oldest, steps, tuple(outdated))
        _require_finished_operations(store)
    report = UpgradeReport("upgraded", oldest, steps, tuple(outdated))
    for _ in range(_MAX_ROUNDS):
        for manifest in outdated:
            _upgrade_manifest(store, manifest.location)
        with as_storage_errors("none"):
            outdated = _find_outdated(store)
        if not outdated:
            return report
    raise ConcurrentCommit("branches are still being created in the older format; stop the writers and try again")


def _find_outdated(store: Store) -> list[ManifestFormat]:
    """Return the manifests in an older format, with main last; raise an error if any of them cannot be upgraded."""
    labels = {layout.manifest_directory(ref.ulid): ref_label(ref) for ref in list_refs(store)}
    formats = [
        ManifestFormat(location, labels.get(location), _read_format(store, location))
        for location in _manifest_locations(store)
    ]
    return [manifest for manifest in formats if manifest.storage_format != layout.STAMP]


def _manifest_locations(store: Store) -> list[str]:
    """List the manifests of all branches and tags, including deleted ones, with main last."""
    if not store.objects.list(f"{layout.MANIFEST}/_versions"):
        raise absent_manifest_error(store, layout.MAIN)
    names = (listed.name.split("/") for listed in store.objects.list(layout.BRANCHES))
    branches = {f"{layout.BRANCHES}/{parts[1]}" for parts in names if len(parts) > 2 and parts[2] == "_versions"}
    return [*sorted(branches), layout.MANIFEST]


def _read_format(store: Store, location: str) -> int:
    """Return the format of a manifest; raise an error if it is neither current nor upgradable."""
    stamp = cells.open_cell(store, location).stamp
    if stamp is None or not stamp.isdecimal() or find_upgrades(int(stamp)) is None:
        check_format_stamp(stamp, store.root.uri)
    return int(stamp or 0)


def _describe_steps(outdated: list[ManifestFormat]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            f"{step.from_stamp} to {step.to_stamp}: {step.description}"
            for storage_format in sorted({manifest.storage_format for manifest in outdated})
            for step in _require_path(storage_format)
        )
    )


def _require_path(storage_format: int) -> tuple[FormatUpgrade, ...]:
    path = find_upgrades(storage_format)
    if path is None:
        raise InternalError(f"cannot upgrade from storage format {storage_format}")
    return path


def _require_finished_operations(store: Store) -> None:
    """Raise an error if operations or cleanups are unfinished, because their records are in the older format."""
    listing = list_intents(store)
    count = len(listing.pending) + len(listing.unreadable) + len(listing.set_aside) + len(list_runs(store))
    if count:
        raise Conflict(
            f"the graph has {count} unfinished operation{'s' if count > 1 else ''}; nothing was changed",
            hint="stop all writers, open the graph for writing with the release that wrote it to finish these"
            " operations, and run the upgrade again",
        )


def _upgrade_manifest(store: Store, location: str) -> None:
    """Convert one manifest to the current format, unless another process has already converted it."""
    for _ in range(_MAX_ATTEMPTS):
        with as_storage_errors("none"):
            cell = cells.open_cell(store, location, reused=location == layout.MANIFEST)
            if cell.stamp == str(layout.STAMP):
                cells.sync_version(cell)  # the writer may have crashed before syncing the version
                return
            rows = _convert_rows(store, cell)
            is_upgraded = _swap_rows(store, cell, rows)
        if is_upgraded:
            return
    raise ConcurrentCommit(
        f"{location} could not be upgraded because of concurrent writes; stop the writers and try again"
    )


def _swap_rows(store: Store, cell: ManifestCell, rows: pa.Table) -> bool:
    """Swap in the converted rows; return False if the manifest must be read again to determine the outcome."""
    try:
        swapped = cells.swap(store, cell, rows, stamp=layout.STAMP)
    except SwapConflict:
        return False
    except SwapOutcomeUnknown as unknown:
        cause, disk_error = unknown.__cause__, local_disk_error(store, unknown)
        if cause is not None and not isinstance(cause, Exception):
            raise cause from None
        if disk_error is not None and cells.open_cell(store, cell.location).stamp != str(layout.STAMP):
            raise to_storage_error(disk_error, effect="none") from disk_error
        return False
    return cells.newest_version(swapped) == swapped.version


def _convert_rows(store: Store, cell: ManifestCell) -> pa.Table:
    """Return the rows for the next version, in the current format."""
    try:
        stored_rows = cell.read_rows(cell.dataset.schema.names)
        rows = [dict(row) for row in without_checksum(stored_rows, cell.version)]
        for step in _require_path(int(cell.stamp or 0)):
            rows = step.convert_rows(store, rows)
        state = from_rows(rows, cell.version)
    except (LookupError, ValueError, TypeError, InternalError) as error:
        message = f"{cell.location} cannot be converted to storage format {layout.STAMP}; nothing was changed"
        hint = "check the graph with the release that wrote it, and report a bug"
        raise StorageError(message, kind="permanent", reason=str(error), effect="none", hint=hint) from error
    # This version has no commit of its own, so a nonce makes it unique. A closing version keeps its own nonce.
    head = state.head if state.head.closed else replace(state.head, nonce=clock_and_ids.new_nonce())
    return to_rows(replace(state, head=head), cell.version + 1)


def count_names(report: UpgradeReport) -> Iterator[tuple[int, str]]:
    """Yield (count, noun) pairs for the branches (except main), tags, and deleted branches or tags in a report."""
    labels = [manifest.label for manifest in report.manifests if manifest.location != layout.MANIFEST]
    tags = sum(label is not None and is_tag_label(label) for label in labels)
    deleted = labels.count(None)
    yield len(labels) - tags - deleted, "branch"
    yield tags, "tag"
    yield deleted, "deleted branch or tag"
