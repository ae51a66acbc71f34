"""Who does the long work of upkeep: this process, or others that open the same root.

Work goes out and comes back as plain data. What it wrote is named by nobody: only who gave the work
can make it part of a version.
"""

from collections.abc import Sequence
from typing import Protocol

from lance.dataset import Index

from .compact import run_task
from .index import Build, build
from .store import Store
from .table import Table


class Hands(Protocol):
    """Results come in the order of their jobs. A failure of one job is a failure of all."""

    @property
    def name(self) -> str:
        """What a report calls them."""

    @property
    def part_rows(self) -> int | None:
        """From how many rows on an index is built in parts; None is never."""

    def rewrite(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run tasks that put fragments together."""

    def index(self, store: Store, jobs: Sequence[tuple[Table, Build]]) -> list[Index | None]:
        """Build segments of indexes; None where there is nothing yet to build one from."""


class Here:
    """The process itself, one job after another."""

    name = "local"
    part_rows = None

    def rewrite(self, store: Store, jobs: Sequence[tuple[Table, str]]) -> list[str]:
        """Run tasks that put fragments together."""
        return [run_task(store, table, task) for table, task in jobs]

    def index(self, store: Store, jobs: Sequence[tuple[Table, Build]]) -> list[Index | None]:
        """Build segments of indexes."""
        return [build(store, table, one) for table, one in jobs]
