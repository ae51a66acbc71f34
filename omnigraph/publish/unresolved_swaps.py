"""Unresolved swaps, which may still be applied because the store did not respond.

This module tracks one operation's unresolved swaps. Until a newer version without these swaps has been read, the
operation must not report that nothing was written. The newer version permanently occupies the version number that these
swaps would write.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.history.manifest import LoadedManifest
from omnigraph.storage.manifest_cell import SwapOutcomeUnknown
from omnigraph.storage.store import Store


class UnresolvedSwap:
    """One operation's unresolved swaps.

    `operation_label` identifies the operation in errors, for example "commit X".
    """

    def __init__(self, operation_label: str) -> None:
        self.operation_label = operation_label
        self._base_version: int | None = None

    @property
    def is_unresolved(self) -> bool:
        """Whether a swap may still be applied."""
        return self._base_version is not None

    def mark_unanswered(self, base_manifest: LoadedManifest) -> None:
        """Record that a swap on this base has an unknown outcome."""
        self._base_version = max(base_manifest.version, self._base_version or 0)

    def observe_version(self, newest_manifest: LoadedManifest) -> None:
        """Clear the record if this version, which does not contain the swap, is newer than the swap's base."""
        if self._base_version is not None and newest_manifest.version > self._base_version:
            self._base_version = None

    def mark_resolved(self) -> None:
        """Clear the record, because the outcome is known."""
        self._base_version = None

    @contextmanager
    def report_unknown_outcome(self) -> Iterator[None]:
        """Ensure that errors raised in the block do not claim that nothing was written while a swap is unresolved."""
        try:
            yield
        except StorageError as error:
            error.effect = "unknown" if self.is_unresolved else error.effect
            raise
        except OmnigraphError as error:
            self.raise_if_unresolved(error)
            raise
        except BaseException as error:
            if self.is_unresolved:
                error.add_note(f"{self.operation_label} may still be written: the store did not respond")
            raise

    def raise_if_unresolved(self, cause: OmnigraphError | None = None) -> None:
        """Raise an error with an unknown outcome if a swap is unresolved."""
        if self.is_unresolved:
            message = f"the store did not respond: {self.operation_label} may still be written"
            raise StorageError(message, kind="transient", effect="unknown") from cause


def local_disk_error(store: Store, swap_error: SwapOutcomeUnknown) -> OSError | None:
    """Return the disk error if a swap failed on a local disk and is no longer in flight. Otherwise, return None."""
    cause = swap_error.__cause__
    return cause if store.root.is_local and isinstance(cause, OSError) else None
