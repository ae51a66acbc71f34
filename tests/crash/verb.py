"""One verb of the crash matrix."""

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.storage.store import Store


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb, the name of the graph that it starts from, and what it makes beside that, if so.

    `alone`: nobody writes between the cut and the recovery, which would overtake it.
    `keeps`: of how many commits of each branch it may lose nothing, wherever it is cut off.
    `end`: brings what was left undone to its end, and proves it.
    `quiet`: its own commits are no part of what is compared.
    `drifted`: other programs wrote to tables before.
    """

    run: Callable[[Store], object]
    start: str = "base"
    beside: str = ""
    alone: bool = False
    keeps: int = 0
    end: Callable[[Store], None] | None = None
    quiet: bool = False
    drifted: bool = False

    def made_at(self, root: str) -> str:
        """Where the verb shows what it did."""
        return f"{root}{self.beside}"
