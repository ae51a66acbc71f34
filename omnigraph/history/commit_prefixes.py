"""Abbreviated commit ids: find the one commit, on any branch or tag, whose id begins with a given prefix.

This module reads logs and writes nothing. A prefix never takes precedence over a name, a time or a version number.
"""

import re
from collections.abc import Iterator
from contextlib import suppress

from omnigraph.errors import BranchNotFound, InputError, NotFound
from omnigraph.storage import layout
from omnigraph.storage.failures import DamagedError
from omnigraph.storage.store import Store
from omnigraph.values.name_rules import quote_name

from . import refs
from .branch_state import BranchState
from .branches import list_branches, open_branch
from .commit import Commit
from .commit_log import HistoryLog
from .tags import list_tags, load_open_manifest

MIN_PREFIX_LENGTH = 4
_ID_LENGTH = 26
_PREFIX_PATTERN = re.compile(rf"[0-7][0-9A-HJKMNP-TV-Z]{{{MIN_PREFIX_LENGTH - 1},{_ID_LENGTH - 1}}}")
_MAX_SHOWN = 5


def is_commit_prefix(text: str) -> bool:
    """Return whether a string can be the beginning of a commit id, in upper or lower case.

    >>> is_commit_prefix("01j8zc"), is_commit_prefix("01J"), is_commit_prefix("beta")
    (True, False, False)
    """
    return _PREFIX_PATTERN.fullmatch(text.upper()) is not None


def expand_commit_prefix(store: Store, branch_state: BranchState, prefix: str) -> str | None:
    """Return the commit id that begins with a prefix, or None if no id does; raise `InputError` if several ids do."""
    commits = find_commits_by_prefix(store, branch_state, prefix)
    if len(commits) > 1:
        raise _ambiguous_prefix_error(prefix, commits)
    return next(iter(commits), None)


def find_commits_by_prefix(store: Store, branch_state: BranchState, prefix: str) -> dict[str, Commit]:
    """Return the commits on all branches and tags whose ids begin with a prefix, by id."""
    id_prefix = prefix.upper()
    return {
        commit.id: commit
        for log in _iter_logs(store, branch_state)
        for commit in log.iter_all_commits()
        if commit.id.startswith(id_prefix)
    }


def _iter_logs(store: Store, branch_state: BranchState) -> Iterator[HistoryLog]:
    yield HistoryLog(store, branch_state.refresh().state)
    for branch_name in list_branches(store):
        with suppress(BranchNotFound, DamagedError):  # the branch was deleted after the listing, or is unreadable
            yield HistoryLog(store, open_branch(store, branch_name).last_known().state)
    for tag in list_tags(store):
        with suppress(NotFound, DamagedError):
            yield HistoryLog(store, load_open_manifest(store, refs.find_ref(store, tag.name, layout.TAGS)).state)


def _ambiguous_prefix_error(prefix: str, commits: dict[str, Commit]) -> InputError:
    newest_first = sorted(commits.values(), key=lambda commit: commit.id, reverse=True)
    listed = ", ".join(commit.id for commit in newest_first[:_MAX_SHOWN])
    more = f" and {len(commits) - _MAX_SHOWN} more" if len(commits) > _MAX_SHOWN else ""
    message = f"commit id {quote_name(prefix)} is ambiguous; it matches {listed}{more}"
    return InputError(message, reason="several commits match", hint="use a longer prefix")
