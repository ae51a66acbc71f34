"""What intents protect: the states they stand on or name, what they will create, what they staged.

An intent protects everything that is newer than itself, because nobody knows what its owner will
write, and what it has confirmed; one that was set aside protects the same until it is dropped. What
an unreadable intent could need is spared: a run that knows less removes less, and goes on.
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
_GRAIN = timedelta(seconds=2)  # more than any store rounds its times to


@dataclass(slots=True)
class Protected:
    """What is newer than one of these store times stays."""

    since: list[datetime] = field(default_factory=list)

    def holds(self, modified: datetime | None) -> bool:
        """Whether a file is newer than an armed intent; of an unknown file nobody can tell."""
        if not self.since:
            return False
        return modified is None or modified >= min(self.since)


def mark_intents(marking: Marking) -> Protected:
    """Everything that intents which are there now protect."""
    found = intents.listing(marking.store)
    protected = Protected()
    waiting: list[Pending | Unreadable] = [*found.pending, *found.unreadable]
    for kept in waiting:
        _mark(marking, protected, kept, "")
    for aside in found.set_aside:
        _mark(marking, protected, aside.kept, " (set aside)")
    return protected


def _mark(marking: Marking, protected: Protected, kept: Pending | Unreadable, how: str) -> None:
    """Protect what one intent needs, and name it as a holder."""
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
        holder = f"{holder}: what it needs cannot be told, so that nothing of any table goes"
    marking.holders[holder] = None
    if writes:
        # Confirmed or not: what stands beside its files is newer, too, and no list names it.
        protected.since.append(kept.armed_at - _GRAIN)


def _protect_known(marking: Marking, pending: Pending) -> bool:
    """Protect what an intent names; False when what that is cannot be read."""
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
    """Protect what a damaged intent confirmed; False when more is to be had than can be read now.

    Of a damaged intent all that it wrote is newer than itself. What it stood on may go: whoever
    retries the operation after its record was restored looks whether that is still there.
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
    """The newest state of a branch, and one commit in its log, as far as they are there."""
    try:
        opened = read_manifest(marking.store, ulid)
    except GraphNotInitialized:
        return
    closed = opened.state.head.closed  # then nobody can finish what was begun there
    marking.add_state(opened, None if closed else "the branch of an unfinished operation")
    with suppress(CommitNotFound, HistoryReclaimed):
        if commit_id:
            tables, schema = Log(marking.store, opened.state).state_of(commit_id)
            marking.live.names.add(schema.location)
            for entry in tables.values():
                marking.add_entry(entry)


def _protect_staged(marking: Marking, facts: Mapping[str, Any]) -> None:
    """What a confirmed operation will make part of a state."""
    for staged in facts.get("writes", {}).values():
        marking.live.names |= set(staged["files"])
        marking.live.places |= {name.rpartition(".")[0] for name in staged["files"]}
    for part in ("registered", "adopted"):
        for key, one in facts.get(part, {}).items():
            marking.add_entry(TableEntry.from_json(key, one))
    if facts.get("schema"):
        marking.live.names.add(facts["schema"][1])
