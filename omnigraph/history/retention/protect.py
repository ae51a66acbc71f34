"""What intents protect: the states they are based on or reference, what they create and staged.

An intent protects every file that is newer than itself, because nothing tells what its owner will
write, and everything that it has confirmed. One that was set aside protects the same until it is
dropped. What an unreadable intent might need is spared: with less knowledge, remove less.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from omnigraph.errors import CommitNotFound, GraphNotInitialized, HistoryReclaimed
from omnigraph.history import intent as intents
from omnigraph.history.commit import TableEntry
from omnigraph.history.intent import Intent, Pending, Unreadable
from omnigraph.history.intent_record import NewerReleaseError
from omnigraph.history.lease import READ
from omnigraph.history.log import Log
from omnigraph.history.manifest import read_manifest
from omnigraph.history.recovery_failure import judge_failure
from omnigraph.storage import layout
from omnigraph.storage.failures import reported

from .roots import Marking
from .survey import TABLES

_NAMES = {READ: "a reader"}
_EVERYTHING = frozenset({*TABLES, layout.COMMITS, layout.SCHEMAS, layout.BRANCHES})
_log = logging.getLogger("omnigraph")
_GRAIN = timedelta(seconds=2)  # coarser than the time resolution of any store


@dataclass(slots=True)
class Protected:
    """Protects files that are newer than one of these store times."""

    since: list[datetime] = field(default_factory=list)

    def holds(self, modified: datetime | None) -> bool:
        """Whether a file is newer than an armed intent; a file of unknown age counts as newer."""
        if not self.since:
            return False
        return modified is None or modified >= min(self.since)


def mark_intents(marking: Marking) -> Protected:
    """Mark everything that the existing intents protect."""
    found = intents.listing(marking.store)
    protected = Protected()
    waiting: list[Pending | Unreadable] = [*found.pending, *found.unreadable]
    for kept in waiting:
        _mark(marking, protected, kept, "")
    for aside in found.set_aside:
        _mark(marking, protected, aside.kept, " (set aside)")
    return protected


def _mark(marking: Marking, protected: Protected, kept: Pending | Unreadable, how: str) -> None:
    """Protect what one intent needs, and list it as a holder."""
    if isinstance(kept, Pending):
        known = _protect_known(marking, kept)
        operation = _NAMES.get(kept.intent.operation, kept.intent.operation)
        holder = f"{operation} on {kept.intent.branch}{how}"
        writes = kept.intent.operation != READ
    else:
        known = _protect_unreadable(marking, kept)
        holder, writes = f"the unreadable operation {kept.id}{how}", True
    if not known:
        marking.live.places |= _EVERYTHING
        holder = f"{holder}: its needs cannot be determined, so no table files are removed"
    marking.holders[holder] = None
    if writes:
        # Confirmed or not: blobs next to its files are newer, too, and no list names them.
        protected.since.append(kept.armed_at - _GRAIN)


def _protect_known(marking: Marking, pending: Pending) -> bool:
    """Protect what an intent references; False if that cannot be read."""
    try:
        with reported("none"):
            _protect(marking, pending.intent)
            confirmed = intents.confirmation(marking.store, pending.intent)
            if confirmed is not None:
                _protect_staged(marking, confirmed)
    except Exception as error:
        _log.warning("what operation %s needs cannot be read: %s", pending.id, error)
        return False
    return True


def _protect_unreadable(marking: Marking, lost: Unreadable) -> bool:
    """Protect what a damaged intent confirmed; False if it may need more than can be read now.

    Everything that a damaged intent wrote is newer than the intent itself. The state it was based
    on may go: a retry after its record is restored checks whether that still exists.
    """
    if isinstance(lost.error, NewerReleaseError) or judge_failure(lost.error) != "for_good":
        return False
    name = layout.intent_name(lost.id, "confirmed")
    try:
        confirmed = marking.store.objects.read_json(name)
        if confirmed is not None:
            _protect_staged(marking, confirmed)
    except Exception as error:
        _log.warning("what operation %s staged cannot be read: %s", lost.id, error)
        return False
    return True


def _protect(marking: Marking, intent: Intent) -> None:
    if intent.creates is not None:
        marking.live.places.add(layout.manifest_directory(intent.creates))
    facts = intent.facts
    _protect_commit(marking, intent.branch_ulid, intent.base_commit)
    if facts.get("source_ulid") or facts.get("source_commit"):
        source = facts.get("source_ulid") or intent.branch_ulid
        _protect_commit(marking, source, facts.get("source_commit"))


def _protect_commit(marking: Marking, ulid: str, commit_id: str | None) -> None:
    """Protect the newest state of a branch, and one commit in its log, as far as they exist."""
    try:
        opened = read_manifest(marking.store, ulid)
    except GraphNotInitialized:
        return
    closed = opened.state.head.closed  # then nothing that was begun there can be finished
    marking.add_state(opened, None if closed else "the branch of an unfinished operation")
    with suppress(CommitNotFound, HistoryReclaimed):
        if commit_id:
            tables, schema = Log(marking.store, opened.state).state_of(commit_id)
            marking.live.names.add(schema.location)
            for entry in tables.values():
                marking.add_entry(entry)


def _protect_staged(marking: Marking, facts: Mapping[str, Any]) -> None:
    """Protect what a confirmed operation will publish."""
    for staged in facts.get("writes", {}).values():
        marking.live.names |= set(staged["files"])
        marking.live.places |= {name.rpartition(".")[0] for name in staged["files"]}
    for part in ("registered", "adopted"):
        for key, one in facts.get(part, {}).items():
            marking.add_entry(TableEntry.from_json(key, one))
    if facts.get("schema"):
        marking.live.names.add(facts["schema"][1])
