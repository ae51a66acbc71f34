"""Swaps without an answer: they may still be on their way to the store.

Owns the memory of such swaps of one operation. Until a newer version was seen without them, which
takes their number for ever, nobody may say that nothing happened.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.cell import UnsureSwap
from omnigraph.storage.store import Store

from .manifest import Opened


class Doubt:
    """What is not known about one operation; `what` names it, as in "commit X"."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._base: int | None = None

    @property
    def open(self) -> bool:
        """Whether a swap may still land."""
        return self._base is not None

    def add(self, base: Opened) -> None:
        """A swap on this base got no answer, or one that may be about itself."""
        self._base = max(base.version, self._base or 0)

    def seen(self, newest: Opened) -> None:
        """A state was read that does not have it; a newer one than its base ends the doubt."""
        if self._base is not None and newest.version > self._base:
            self._base = None

    def end(self) -> None:
        """It is known what happened."""
        self._base = None

    @contextmanager
    def told(self) -> Iterator[None]:
        """Let nothing that fails in the block claim to know that nothing happened."""
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
                error.add_note(f"{self.what} may still be written: the store was not done with it")
            raise

    def check(self, cause: OmnigraphError | None = None) -> None:
        """Raise that the outcome is not known, if so."""
        if self.open:
            message = f"the store gave no answer: {self.what} may still be written"
            raise StorageError(message, kind="transient", effect="unknown") from cause


def refusal(store: Store, unsure: UnsureSwap) -> OSError | None:
    """The error of a disk that refused: nothing of it is on its way."""
    cause = unsure.__cause__
    return cause if store.root.local and isinstance(cause, OSError) else None
