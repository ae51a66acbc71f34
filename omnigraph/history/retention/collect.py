"""One run of the collector, and its preview.

The steps are ordered so that a file is removed only if nothing can come to reference it:

1. Survey, then mark. A file that is written later is not in the survey and cannot be selected;
   marking first would miss files that are published between the mark and the survey.
2. Write the delete queue, then mark again. Whoever wants to reference old data arms an intent and
   then reads the queue (see `delete_queue`). The collector writes the queue and then reads the
   intents. Whichever order the two happen in, at least one of them sees the other.
3. Before the second mark, raise the fences. Ordinary writes have no intent; a fence makes those
   that staged earlier lose their swap and stage again, so none of their old files is published
   after the second mark.
4. Record the sweep list once. It is final for all collectors; files that it leaves out are free to
   be referenced again, so a second, different result could remove them.
5. Remove files, then the queue, then the sweep list.

A crashed run is finished by the next one. A suspended run does no harm when it wakes up.
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
Progress = Callable[[int, int], None]  # files removed so far, and their total number


@dataclass(slots=True)
class _Run:
    """A running cleanup: what it has marked, and what it has removed so far."""

    store: Store
    marking: Marking
    claim: Claim
    progress: Progress
    hands: Hands
    removed: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def told(self, name: str, error: str | None) -> None:
        """Record a removed file, or the error that kept it."""
        if error is None:
            self.removed.append(name)
        else:
            self.failures.append(name)
            self.errors[row_key(name, self.marking.keys)] = f"{name}: {error}"


@reported("none")
def preview(
    store: Store, policy: Policy, hands: Hands | None = None, *, erase: bool = False
) -> Cleanup:
    """Report what a cleanup, or an erase, would remove now; write nothing."""
    hands = hands or Here()
    now = ids.now() if store.effects.read_only else intents.store_time(store)
    marking, protected = _marked(store, policy, take_survey(store, now, hands), hands)
    found = _judged(marking, protected)
    names = dict.fromkeys([*found.names, *_old_states(marking)])
    deleted = None
    if erase:
        more, deleted = would_erase(marking)
        # After the rewrite, today's head is one commit old: the policy may keep its files.
        names |= dict.fromkeys(more if not policy.keeps(1, timedelta()) else ())
    report = found.report(
        Cleanup(True, rows_of(names, marking.survey, marking.keys), deleted_rows=deleted)
    )
    return replace(report, engine=hands.name, spared_bytes=_spared(report, marking))


@reported("unknown")
def cleanup(
    store: Store, policy: Policy, progress: Progress | None = None, hands: Hands | None = None
) -> Cleanup:
    """Remove what nothing needs, next to concurrent readers and writers.

    Crashed operations are finished or discarded first. Raises `ConcurrentCommit` if another
    cleanup is running or a branch is too busy to be fenced, `Conflict` if something that must stay
    cannot be read; nothing is removed then.
    """
    hands = hands or Here()
    recover(store)  # first, because intents of crashed operations would still protect their files
    run_id = ids.new_ulid()
    now = intents.store_time(store)
    with claimed(store, run_id, now) as claim:
        survey = take_survey(store, now, hands)
        marking, protected = _marked(store, policy, survey, hands)
        run = _Run(store, marking, claim, progress or (lambda *_: None), hands)
        for left in list_runs(store):  # first: their queued names must not be queued twice
            _finish_left(run, left)
        gone = set(run.removed)
        found = _judged(marking, protected)
        names = [one for one in found.names if one not in gone]
        if names:
            facts = {"names": names, "run": run_id}
            # From here on, other processes refuse to reference these names.
            store.objects.create_json(layout.gc_name(run_id, CONDEMNED), facts)
            _finish(run, run_id)
        store.handles.clear()  # cached handles may point to files that are gone
        # A new survey: the fences have added manifest versions since the first one.
        after = take_survey(store, intents.store_time(store), hands)
        _trim(run, after)
        rows = rows_of(run.removed, survey.with_sizes(after), marking.keys, run.errors)
        report = found.report(Cleanup(False, rows))
        last = Marking(store, policy, after, versions=marking.versions, unnamed=marking.unnamed)
        spared = _spared(report, last)
        return replace(report, engine=hands.name, spared_bytes=spared)


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a cleanup removes, and what its report says besides."""

    names: list[str]
    unreferenced: tuple[str, ...]
    unreferenced_bytes: int
    orphans: tuple[str, ...]
    kept: int
    held_by: tuple[str, ...] = ()
    unnamed: tuple[Mapping[str, Any], ...] = ()

    def report(self, done: Cleanup) -> Cleanup:
        """Return a report completed with the findings of the plan."""
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
    """Select what to remove; unreferenced tables go only if the policy says so."""
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
        tuple(unnamed.to_json() for unnamed in marking.unnamed),
    )


def _old_states(marking: Marking) -> list[str]:
    return [one for group in _old_groups(marking, marking.survey) for one in group]


def _old_groups(marking: Marking, survey: Survey) -> Iterator[list[str]]:
    spared = {one.directory for one in marking.unnamed}
    return old_versions(marking.store, survey, marking.policy.grace, spared)


def _spared(report: Cleanup, marking: Marking) -> int:
    """Count the bytes that only the grace period keeps, if the run removes nothing else."""
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
    """Return the versions that a mark will read, found by a trial mark that reads none of them.

    An executor then reads them in parallel.
    """
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
    """Finish a run that another process left behind; leave it alone if its lists are damaged."""
    try:
        _finish(run, run_id)
    except DamagedListError as error:
        _log.warning("an interrupted cleanup cannot be finished: %s", error.message)


def _finish(run: _Run, run_id: str) -> None:
    """Finish a run, one's own or an abandoned one."""
    store = run.store
    listed = read_names(store, run_id, CONDEMNED)
    swept = read_names(store, run_id, SWEEP)
    if swept is None and listed is not None:
        try:
            swept = _decide(store, run_id, _look(run, listed))
        except BaseException:
            # End the run. Its queue would keep blocking operations that need the queued names.
            _give_up(store, run_id)
            raise
        listed = read_names(store, run_id, CONDEMNED)
    # Another collector has ended this run. With the queue gone, other processes may reference the
    # names again, so the sweep list must not be used any more.
    if listed is None:
        store.objects.remove(layout.gc_name(run_id, SWEEP))
        return
    _sweep(run, swept or [])
    if not run.errors:
        # The queue first. A queue without its sweep list would look undecided and be marked anew.
        store.objects.remove(layout.gc_name(run_id, CONDEMNED))
        store.objects.remove(layout.gc_name(run_id, SWEEP))


def _look(run: _Run, listed: list[str]) -> list[str]:
    """Raise the fences, mark again, and return the queued names that are still unreachable.

    References move while they are read: from an intent to a head when it publishes, or from a
    head to an intent when a branch is forked and its source deleted. Reading heads before and
    after the intents catches both directions.
    """
    raise_fences(run.store, listed, run.marking.unnamed)
    marking = run.marking.again()
    mark_heads(marking)
    protected = mark_intents(marking)
    mark_heads(marking)
    run.claim.check()  # a suspended run must not record a result after another took over
    return still_condemned(listed, marking, protected)


def _decide(store: Store, run_id: str, names: list[str]) -> list[str]:
    """Record the result of the second mark and return the recorded one; the first record wins."""
    store.objects.create_json(layout.gc_name(run_id, SWEEP), {"names": names})
    found = read_names(store, run_id, SWEEP)
    if found is None:
        raise ConcurrentCommit("another cleanup ended this one", hint="run it again")
    return found


def _give_up(store: Store, run_id: str) -> None:
    """End a run without a result by recording an empty one, so that no collector records another.

    If even that fails, the next run finishes it.
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
    """Remove old manifest versions and superseded refs, which nothing can reference any more.

    They need no delete queue.
    """
    stuck: set[str] = set()
    for group in _old_groups(run.marking, survey):
        for name in group:
            # Strictly in order: if a version cannot be removed, the newer ones must stay as well,
            # so that no old version remains below a gap.
            if place_of(name) not in stuck:
                errors = len(run.failures)
                remove(run.store, [name], run.told, run.claim.check)
                stuck |= {place_of(name)} if len(run.failures) > errors else set()
    remove(run.store, lower_numbers(run.store), run.told, run.claim.check)
