"""What intents protect: the states they stand on or name, what they will create, what they staged.

An intent protects everything that is newer than itself, because nobody knows what its owner will
write, and what it has confirmed. One that cannot be read stops the run.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from omnigraph.errors import CommitNotFound, GraphNotInitialized, HistoryReclaimed
from omnigraph.history import intent as intents
from omnigraph.history.commit import TableEntry
from omnigraph.history.intent import Intent
from omnigraph.history.lease import READ
from omnigraph.history.log import Log
from omnigraph.history.manifest import read_manifest
from omnigraph.storage import layout

from .roots import Marking

_NAMES = {READ: "a reader"}
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
    store = marking.store
    written = {one.name: one.modified for one in store.objects.list(layout.INTENTS)}
    protected = Protected()
    for pending in intents.listing(store).pending:
        intent = pending.intent
        _protect(marking, intent)
        marking.holders[f"{_NAMES.get(intent.operation, intent.operation)} on {intent.branch}"] = (
            None
        )
        confirmed = intents.confirmation(store, intent)
        if confirmed is not None:
            _protect_staged(marking, confirmed)
        if intent.operation == READ:
            continue  # writes nothing
        # Confirmed or not: what stands beside its files is newer, too, and no list names it.
        armed = written.get(layout.intent_name(intent.id), pending.alive_at)
        protected.since.append(armed - _GRAIN)
    return protected


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
