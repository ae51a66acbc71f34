"""Unresolved swaps: the store did not answer, so a swap may still be applied.

Tracks such swaps of one operation. "Nothing happened" must not be reported until a newer version
without them was read, because that version occupies their version number for good.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.cell import UnsureSwap
from omnigraph.storage.store import Store

from .manifest import Opened


class Doubt:
    """The unresolved swaps of one operation; `operation_label` names it, such as "commit X"."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._base: int | None = None

    @property
    def open(self) -> bool:
        """Whether a swap may still be applied."""
        return self._base is not None

    def add(self, base: Opened) -> None:
        """Note a swap on this base that got no answer, or a conflict that may be with itself."""
        self._base = max(base.version, self._base or 0)

    def seen(self, newest: Opened) -> None:
        """Note a state that lacks the swap; one newer than its base proves it was not applied."""
        if self._base is not None and newest.version > self._base:
            self._base = None

    def end(self) -> None:
        """Clear the record: the outcome is known."""
        self._base = None

    @contextmanager
    def told(self) -> Iterator[None]:
        """Ensure that no error raised in the block claims that nothing happened."""
        try:
            yield
        except StorageError as error:
            error.effect = "unknown" if self.open else error.effect
            raise
        except OmnigraphError as error:
            self.check(error)
            raise
        except BaseException as error:
            if self.open:
                error.add_note(f"{self.what} may still be written: the store did not answer")
            raise

    def check(self, cause: OmnigraphError | None = None) -> None:
        """Raise an error with an unknown outcome if a swap is unresolved."""
        if self.open:
            message = f"the store did not answer: {self.what} may still be written"
            raise StorageError(message, kind="transient", effect="unknown") from cause


def refusal(store: Store, unsure: UnsureSwap) -> OSError | None:
    """Return the error of a local disk that refused the swap: nothing is still in flight."""
    cause = unsure.__cause__
    return cause if store.root.local and isinstance(cause, OSError) else None
