"""The thresholds for health warnings, and the command that each warning recommends.

This module defines the threshold values and the messages. Nothing else depends on these thresholds: a graph that
exceeds one is slower or larger than necessary, but never incorrect.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.storage.sizes import FRAGMENT_ROWS
from omnigraph.values.table_key import TableKey

FRAGMENTS = 256  # maximum number of fragments per table; a scan opens every fragment
UNINDEXED = 100_000  # maximum number of unindexed rows, which every lookup has to scan
COMMITS = 100_000  # maximum number of commits per log; chunks are merged, but commits are never removed
UNRECLAIMED = 1 << 30  # maximum number of unreferenced bytes, unless more bytes than that are referenced
INTENTS = 16  # maximum number of operations that are running or were interrupted
CACHE_SHARE = 0.9  # maximum fraction of the cache budget that may be in use
_UNREFERENCED = "bytes not referenced by any branch"
_CLEANUP_COMMAND = "run `omnigraph cleanup {} --keep 10 --older-than 7d --confirm`"


@dataclass(frozen=True, slots=True)
class LimitWarning:
    """A quantity that exceeds its limit, and the recommended command."""

    what: str
    found: int
    limit: int
    command: str
    type_key: TableKey | None = None

    def __str__(self) -> str:
        subject = f"{self.type_key} has " if self.type_key else "there are "
        if self.limit == 0:
            return f"{subject}{self.what}: {self.command}"
        return f"{subject}{self.found:,} {self.what} (more than {self.limit:,}): {self.command}"

    def to_json(self) -> dict[str, Any]:
        """Return the warning as JSON-compatible data."""
        return {
            "what": self.what,
            "found": self.found,
            "limit": self.limit,
            "type_key": self.type_key,
            "command": self.command,
        }


def table_warnings(
    uri: str, type_key: TableKey, row_count: int, fragment_count: int, unindexed_count: int
) -> Iterator[LimitWarning]:
    """Yield warnings about one table.

    >>> [str(warning) for warning in table_warnings("g", "node:P", 5_000, 300, 0)]
    ['node:P has 300 fragments (more than 256): run `omnigraph optimize g`']
    """
    command = f"run `omnigraph optimize {uri}`"
    # A large table has many fragments even if it is well maintained.
    limit = max(FRAGMENTS, 2 * row_count // FRAGMENT_ROWS)
    if fragment_count > limit:
        yield LimitWarning("fragments", fragment_count, limit, command, type_key)
    if unindexed_count > UNINDEXED:
        yield LimitWarning("unindexed rows", unindexed_count, UNINDEXED, command, type_key)


def damage_warnings(uri: str, type_key: TableKey) -> Iterator[LimitWarning]:
    """Yield a warning that some of a table's files are missing or unreadable.

    >>> [str(warning) for warning in damage_warnings("g", "node:P")]
    ['node:P has missing or damaged files: run `omnigraph check g`']
    """
    yield LimitWarning("missing or damaged files", 1, 0, f"run `omnigraph check {uri}`", type_key)


def log_warnings(uri: str, commit_count: int) -> Iterator[LimitWarning]:
    """Yield warnings about a branch's log."""
    if commit_count > COMMITS:
        command = f"write larger batches; to start over, load the output of `omnigraph export {uri}` into a new graph"
        yield LimitWarning("commits in the log", commit_count, COMMITS, command)


def unreferenced_data_warnings(
    uri: str, type_key: TableKey, unreferenced_bytes: int, limit: int
) -> Iterator[LimitWarning]:
    """Yield warnings about one table's unreferenced data files."""
    if unreferenced_bytes > limit:
        yield LimitWarning(_UNREFERENCED, unreferenced_bytes, limit, _CLEANUP_COMMAND.format(uri), type_key)


def store_warnings(
    uri: str, referenced_bytes: int, unreferenced_bytes: int, unfinished_count: int
) -> Iterator[LimitWarning]:
    """Yield warnings about the graph's files as a whole."""
    limit = max(UNRECLAIMED, referenced_bytes)
    if unreferenced_bytes > limit:
        yield LimitWarning(_UNREFERENCED, unreferenced_bytes, limit, _CLEANUP_COMMAND.format(uri))
    if unfinished_count > INTENTS:
        command = "open the graph for writing once to recover interrupted operations"
        yield LimitWarning("unfinished operations", unfinished_count, INTENTS, command)


def set_aside_warnings(uri: str, operation_count: int) -> Iterator[LimitWarning]:
    """Yield a warning if there are operations that recovery could not resolve.

    >>> [str(warning) for warning in set_aside_warnings("g", 2)]
    ['there are 2 operations set aside: run `omnigraph recovery list g`']
    """
    if operation_count:
        description = f"{operation_count} operation{'s'[: operation_count > 1]} set aside"
        yield LimitWarning(description, operation_count, 0, f"run `omnigraph recovery list {uri}`")


def cache_warnings(used_bytes: int, cache_budget: int) -> Iterator[LimitWarning]:
    """Yield warnings about the local cache directory."""
    limit = int(cache_budget * CACHE_SHARE)
    if cache_budget and used_bytes > limit:
        command = "increase OMNIGRAPH_CACHE_BYTES, or delete the files, which are recreated when needed"
        yield LimitWarning("bytes in the cache directory", used_bytes, limit, command)
