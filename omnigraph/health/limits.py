"""From where on something deserves a warning, and the command that helps.

Owns the numbers and the words. They decide nothing: a graph beyond them is slower or larger than it
need be, never wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.storage.sizes import FRAGMENT_ROWS

FRAGMENTS = 256  # of one table: each is a file to open for a scan
UNINDEXED = 100_000  # rows that a lookup has to scan
COMMITS = 100_000  # of one log: pieces of it are merged, and kept for ever
UNRECLAIMED = 1 << 30  # bytes that nothing shows, and as much again as what is shown
INTENTS = 16  # operations under way, or cut off
CACHE_SHARE = 0.9  # of the budget of the cache
_UNSHOWN = "bytes that no branch shows"
_CLEANUP = "run `omnigraph cleanup {} --keep 10 --older-than 7d --confirm`"


@dataclass(frozen=True, slots=True)
class Warned:
    """Something beyond its limit: what, how much of it, and the command to run."""

    what: str
    found: int
    limit: int
    command: str
    type_key: str | None = None

    def __str__(self) -> str:
        where = f"{self.type_key} has " if self.type_key else "there are "
        if self.limit == 0:
            return f"{where}{self.what}: {self.command}"
        return f"{where}{self.found:,} {self.what} (more than {self.limit:,}): {self.command}"

    def to_json(self) -> dict[str, Any]:
        """The warning as plain data."""
        return {
            "what": self.what,
            "found": self.found,
            "limit": self.limit,
            "type_key": self.type_key,
            "command": self.command,
        }


def of_table(uri: str, key: str, rows: int, fragments: int, unindexed: int) -> Iterator[Warned]:
    """Warnings about one table.

    >>> [str(one) for one in of_table("g", "node:P", 5_000, 300, 0)]
    ['node:P has 300 fragments (more than 256): run `omnigraph optimize g`']
    """
    command = f"run `omnigraph optimize {uri}`"
    # A large table has many fragments however well it is kept.
    limit = max(FRAGMENTS, 2 * rows // FRAGMENT_ROWS)
    if fragments > limit:
        yield Warned("fragments", fragments, limit, command, key)
    if unindexed > UNINDEXED:
        yield Warned("rows without an index", unindexed, UNINDEXED, command, key)


def of_damage(uri: str, key: str) -> Iterator[Warned]:
    """A warning about files of a table that are lost, or that cannot be read.

    >>> [str(one) for one in of_damage("g", "node:P")]
    ['node:P has missing or damaged files: run `omnigraph check g`']
    """
    yield Warned("missing or damaged files", 1, 0, f"run `omnigraph check {uri}`", key)


def of_log(uri: str, commits: int) -> Iterator[Warned]:
    """Warnings about the log of a branch."""
    if commits > COMMITS:
        command = f"write larger batches; `omnigraph export {uri}` and a new graph begin anew"
        yield Warned("commits in the log", commits, COMMITS, command)


def of_data(uri: str, key: str, unreclaimed: int, limit: int) -> Iterator[Warned]:
    """Warnings about data files of one table."""
    if unreclaimed > limit:
        yield Warned(_UNSHOWN, unreclaimed, limit, _CLEANUP.format(uri), key)


def of_store(uri: str, shown: int, unreclaimed: int, intents: int) -> Iterator[Warned]:
    """Warnings about all files together."""
    limit = max(UNRECLAIMED, shown)
    if unreclaimed > limit:
        yield Warned(_UNSHOWN, unreclaimed, limit, _CLEANUP.format(uri))
    if intents > INTENTS:
        command = "open the graph for writing once: what was cut off is settled then"
        yield Warned("unfinished operations", intents, INTENTS, command)


def of_set_aside(uri: str, count: int) -> Iterator[Warned]:
    """A warning about operations that recovery could not settle.

    >>> [str(one) for one in of_set_aside("g", 2)]
    ['there are 2 operations set aside: run `omnigraph recovery list g`']
    """
    if count:
        what = f"{count} operation{'s'[: count > 1]} set aside"
        yield Warned(what, count, 0, f"run `omnigraph recovery list {uri}`")


def of_cache(used: int, budget: int) -> Iterator[Warned]:
    """Warnings about the cache directory of this machine."""
    limit = int(budget * CACHE_SHARE)
    if budget and used > limit:
        command = "raise OMNIGRAPH_CACHE_BYTES, or remove the files: they are made again"
        yield Warned("bytes in the cache directory", used, limit, command)
