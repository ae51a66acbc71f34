"""One run of the collector: claim, list, fence, second look, sweep; and the preview of one.

Only what a list named, and a look after the fence found unreachable still, is removed. A run that
was cut off anywhere is finished by the next one; a run that sleeps does no harm when it wakes.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from omnigraph import ids
from omnigraph.errors import ConcurrentCommit, StorageError
from omnigraph.history import intent as intents
from omnigraph.history.recover import recover
from omnigraph.storage import layout
from omnigraph.storage.failures import reported
from omnigraph.storage.store import Store
from omnigraph.storage.transfer import Files

from .claim import Claim, claimed
from .condemned import CONDEMNED, SWEEP, DamagedListError, list_runs, read_names
from .fence import raise_fences
from .foretell import would_erase
from .hands import Hands, Here, Version
from .judge import condemn, orphans, still_condemned, unreferenced
from .lost import check_versions_present
from .policy import Policy
from .protect import Protected, mark_intents
from .report import Cleanup, row_key, rows_of
from .roots import Marking, mark_heads, spared_manifests
from .survey import Survey, place_of, take_survey
from .sweep import in_order, remove
from .trim import lower_numbers, old_versions

_log = logging.getLogger("omnigraph")
Progress = Callable[[int, int], None]  # files removed so far, and all of them


@dataclass(slots=True)
class _Run:
    """A collector at work: what it saw, and what it has removed."""

    store: Store
    marking: Marking
    claim: Claim
    progress: Progress
    hands: Hands
    removed: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def told(self, name: str, error: str | None) -> None:
        """Count a file that is gone, or say why it is not."""
        if error is None:
            self.removed.append(name)
        else:
            self.failures.append(name)
            self.errors[row_key(name, self.marking.keys)] = f"{name}: {error}"


@reported("none")
def preview(
    store: Store, policy: Policy, hands: Hands | None = None, *, erase: bool = False
) -> Cleanup:
    """What a cleanup would remove now, or an erasure; nothing is written."""
    hands = hands or Here()
    now = ids.now() if store.effects.read_only else intents.store_time(store)
    marking, protected = _marked(store, policy, take_survey(store, now, hands), hands)
    found = _judged(marking, protected)
    names = dict.fromkeys([*found.names, *_old_states(marking)])
    deleted = None
    if erase:
        more, deleted = would_erase(marking)
        # What is the newest now is kept by the same policy when it is not any more.
        names |= dict.fromkeys(more if not policy.keeps(1, timedelta()) else ())
    report = found.report(
        Cleanup(True, rows_of(names, marking.survey, marking.keys), deleted_rows=deleted)
    )
    return replace(report, engine=hands.name, spared_bytes=_spared(report, marking))


@reported("unknown")
def cleanup(
    store: Store, policy: Policy, progress: Progress | None = None, hands: Hands | None = None
) -> Cleanup:
    """Remove what nothing needs, beside whoever reads and writes.

    Operations whose owner is gone are finished or discarded first. Raises `ConcurrentCommit` when
    another cleanup is at work or a branch is too busy to be fenced, `Conflict` when something that
    must stay cannot be read; then nothing is removed.
    """
    hands = hands or Here()
    recover(store)
    run_id = ids.new_ulid()
    now = intents.store_time(store)
    with claimed(store, run_id, now) as claim:
        survey = take_survey(store, now, hands)
        marking, protected = _marked(store, policy, survey, hands)
        run = _Run(store, marking, claim, progress or (lambda *_: None), hands)
        for left in list_runs(store):
            _finish_left(run, left)
        gone = set(run.removed)
        found = _judged(marking, protected)
        names = [one for one in found.names if one not in gone]
        if names:
            facts = {"names": names, "run": run_id}
            store.objects.create_json(layout.gc_name(run_id, CONDEMNED), facts)
            _finish(run, run_id)
        store.handles.clear()
        after = take_survey(store, intents.store_time(store), hands)
        _trim(run, after)
        rows = rows_of(run.removed, survey.with_sizes(after), marking.keys, run.errors)
        report = found.report(Cleanup(False, rows))
        last = Marking(store, policy, after, versions=marking.versions, unnamed=marking.unnamed)
        spared = _spared(report, last)
        return replace(report, engine=hands.name, spared_bytes=spared)


@dataclass(frozen=True, slots=True)
class _Judged:
    """What goes, and what a report tells beside it."""

    names: list[str]
    unreferenced: tuple[str, ...]
    unreferenced_bytes: int
    orphans: tuple[str, ...]
    kept: int
    held_by: tuple[str, ...] = ()
    unnamed: tuple[Mapping[str, Any], ...] = ()

    def report(self, done: Cleanup) -> Cleanup:
        return replace(
            done,
            unreferenced_paths=self.unreferenced,
            unreferenced_bytes=self.unreferenced_bytes,
            orphans=self.orphans,
            commits_kept=self.kept,
            held_by=self.held_by,
            unnamed=self.unnamed,
        )


def _judged(marking: Marking, protected: Protected) -> _Judged:
    """Tables that nothing names any more go only if the policy says so."""
    names, survey = condemn(marking, protected), marking.survey
    paths = unreferenced(marking, names)
    dropped = [one for one in names if place_of(one) in paths]
    if not marking.policy.purge_dropped:
        names = sorted({*names} - {*dropped})
    size = sum(map(survey.size, dropped))
    held_by = tuple(sorted(marking.holders))
    return _Judged(
        names,
        paths,
        size,
        orphans(marking, names),
        len(marking.kept),
        held_by,
        tuple(one.to_json() for one in marking.unnamed),
    )


def _old_states(marking: Marking) -> list[str]:
    return [one for group in _old_groups(marking, marking.survey) for one in group]


def _old_groups(marking: Marking, survey: Survey) -> Iterator[list[str]]:
    spared = {one.directory for one in marking.unnamed}
    return old_versions(marking.store, survey, marking.policy.grace, spared)


def _spared(report: Cleanup, marking: Marking) -> int:
    """The bytes that only the grace keeps, looked for when a run leaves everything as it is."""
    policy = marking.policy
    if report.datasets or not policy.grace:
        return 0
    bare = marking.again(replace(policy, grace=timedelta()))
    mark_heads(bare)
    names = _judged(bare, mark_intents(bare)).names
    return sum(map(bare.survey.size, {*names, *_old_states(bare)}))


def _marked(
    store: Store, policy: Policy, survey: Survey, hands: Hands
) -> tuple[Marking, Protected]:
    check_versions_present(store, survey)
    marking = Marking(store, policy, survey, unnamed=spared_manifests(store, survey))
    if hands.reads_ahead:
        marking.versions |= hands.read_versions(store, _to_be_read(marking))
    mark_heads(marking)
    return marking, mark_intents(marking)


def _to_be_read(marking: Marking) -> list[Version]:
    """The versions that a mark will read, found by one that reads none of them."""
    found: dict[Version, None] = {}

    def note(_: Store, location: str, version: int) -> Files:
        found[location, version] = None
        return Files((), (), ())

    store, policy, survey = marking.store, marking.policy, marking.survey
    trial = Marking(store, policy, survey, read=note, unnamed=marking.unnamed)
    mark_heads(trial)
    mark_intents(trial)
    return list(found)


def _finish_left(run: _Run, run_id: str) -> None:
    """Carry a run that was left behind to its end; one whose lists are damaged stays as it is."""
    try:
        _finish(run, run_id)
    except DamagedListError as error:
        _log.warning("a cleanup that was cut off is not finished: %s", error.message)


def _finish(run: _Run, run_id: str) -> None:
    """Carry a run to its end, one's own or one that was left behind."""
    store = run.store
    listed = read_names(store, run_id, CONDEMNED)
    swept = read_names(store, run_id, SWEEP)
    if swept is None and listed is not None:
        try:
            swept = _decide(store, run_id, _look(run, listed))
        except BaseException:
            _give_up(store, run_id)
            raise
        listed = read_names(store, run_id, CONDEMNED)
    if listed is None:  # another has ended this run: what is found there may be named by now
        store.objects.remove(layout.gc_name(run_id, SWEEP))
        return
    _sweep(run, swept or [])
    if not run.errors:
        store.objects.remove(layout.gc_name(run_id, CONDEMNED))
        store.objects.remove(layout.gc_name(run_id, SWEEP))


def _look(run: _Run, listed: list[str]) -> list[str]:
    """Fence, then heads, intents, and heads again: what nothing has come to need meanwhile."""
    raise_fences(run.store, listed, run.marking.unnamed)
    marking = run.marking.again()
    mark_heads(marking)
    protected = mark_intents(marking)
    mark_heads(marking)
    run.claim.check()
    return still_condemned(listed, marking, protected)


def _decide(store: Store, run_id: str, names: list[str]) -> list[str]:
    """The result of a look: the first one stands, whoever found it."""
    store.objects.create_json(layout.gc_name(run_id, SWEEP), {"names": names})
    found = read_names(store, run_id, SWEEP)
    if found is None:
        raise ConcurrentCommit("another cleanup ended this one", hint="run it again")
    return found


def _give_up(store: Store, run_id: str) -> None:
    """End a run that found no result by one that is empty, so that no other finds one.

    What cannot even do that is left to the next run.
    """
    with suppress(StorageError, OSError, ConcurrentCommit):
        if _decide(store, run_id, []) == []:
            store.objects.remove(layout.gc_name(run_id, CONDEMNED))
            store.objects.remove(layout.gc_name(run_id, SWEEP))


def _sweep(run: _Run, names: list[str]) -> None:
    total = len(names)

    def told(name: str, error: str | None) -> None:
        run.told(name, error)
        run.progress(min(len(run.removed), total), total)

    run.hands.remove(run.store, in_order(names), told, run.claim.check)


def _trim(run: _Run, survey: Survey) -> None:
    """Old manifest versions and lower numbers of names: these need no list."""
    stuck: set[str] = set()
    for group in _old_groups(run.marking, survey):
        for name in group:
            # Strictly one after another: a version that stays must not outlive what is above it.
            if place_of(name) not in stuck:
                errors = len(run.failures)
                remove(run.store, [name], run.told, run.claim.check)
                stuck |= {place_of(name)} if len(run.failures) > errors else set()
    remove(run.store, lower_numbers(run.store), run.told, run.claim.check)
