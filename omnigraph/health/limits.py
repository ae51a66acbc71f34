"""Thresholds of the health warnings, and the command that helps with each.

Owns the numbers and the texts. Nothing else depends on them: a graph beyond a threshold is slower
or larger than necessary, never wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.storage.sizes import FRAGMENT_ROWS

FRAGMENTS = 256  # per table; a scan opens each of them
UNINDEXED = 100_000  # rows that a lookup has to scan
COMMITS = 100_000  # per log; its chunks are merged, but commits are never removed
UNRECLAIMED = 1 << 30  # unreferenced bytes; the limit is never below the referenced bytes
INTENTS = 16  # operations that are running or were interrupted
CACHE_SHARE = 0.9  # of the cache budget
_UNSHOWN = "bytes that no branch references"
_CLEANUP = "run `omnigraph cleanup {} --keep 10 --older-than 7d --confirm`"


@dataclass(frozen=True, slots=True)
class Warned:
    """A quantity beyond its limit: what, how much, and the command to run."""

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
        """Return the warning as JSON-compatible data."""
        return {
            "what": self.what,
            "found": self.found,
            "limit": self.limit,
            "type_key": self.type_key,
            "command": self.command,
        }


def of_table(uri: str, key: str, rows: int, fragments: int, unindexed: int) -> Iterator[Warned]:
    """Return warnings about one table.

    >>> [str(one) for one in of_table("g", "node:P", 5_000, 300, 0)]
    ['node:P has 300 fragments (more than 256): run `omnigraph optimize g`']
    """
    command = f"run `omnigraph optimize {uri}`"
    # A large table has many fragments even when it is well maintained.
    limit = max(FRAGMENTS, 2 * rows // FRAGMENT_ROWS)
    if fragments > limit:
        yield Warned("fragments", fragments, limit, command, key)
    if unindexed > UNINDEXED:
        yield Warned("rows without an index", unindexed, UNINDEXED, command, key)


def of_damage(uri: str, key: str) -> Iterator[Warned]:
    """Return a warning about files of a table that are missing or unreadable.

    >>> [str(one) for one in of_damage("g", "node:P")]
    ['node:P has missing or damaged files: run `omnigraph check g`']
    """
    yield Warned("missing or damaged files", 1, 0, f"run `omnigraph check {uri}`", key)


def of_log(uri: str, commits: int) -> Iterator[Warned]:
    """Return warnings about the log of a branch."""
    if commits > COMMITS:
        command = f"write larger batches; to start over, `omnigraph export {uri}` into a new graph"
        yield Warned("commits in the log", commits, COMMITS, command)


def of_data(uri: str, key: str, unreclaimed: int, limit: int) -> Iterator[Warned]:
    """Return warnings about unreferenced data files of one table."""
    if unreclaimed > limit:
        yield Warned(_UNSHOWN, unreclaimed, limit, _CLEANUP.format(uri), key)


def of_store(uri: str, shown: int, unreclaimed: int, intents: int) -> Iterator[Warned]:
    """Return warnings about all files of the graph together."""
    limit = max(UNRECLAIMED, shown)
    if unreclaimed > limit:
        yield Warned(_UNSHOWN, unreclaimed, limit, _CLEANUP.format(uri))
    if intents > INTENTS:
        command = "open the graph for writing once to recover interrupted operations"
        yield Warned("unfinished operations", intents, INTENTS, command)


def of_set_aside(uri: str, count: int) -> Iterator[Warned]:
    """Return a warning about operations that recovery could not resolve.

    >>> [str(one) for one in of_set_aside("g", 2)]
    ['there are 2 operations set aside: run `omnigraph recovery list g`']
    """
    if count:
        what = f"{count} operation{'s'[: count > 1]} set aside"
        yield Warned(what, count, 0, f"run `omnigraph recovery list {uri}`")


def of_cache(used: int, budget: int) -> Iterator[Warned]:
    """Return warnings about the local cache directory."""
    limit = int(budget * CACHE_SHARE)
    if budget and used > limit:
        command = "raise OMNIGRAPH_CACHE_BYTES, or delete the files: they are recreated"
        yield Warned("bytes in the cache directory", used, limit, command)
