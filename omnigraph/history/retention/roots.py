"""The mark: everything that branches, tags and their retained past need.

Owns which commits are kept: on every branch the newest by count and age, merged-in commits by age,
merge bases of open branches, the commits of tags. What a head needs must be readable, otherwise
nothing is removed at all. What an earlier cleanup removed from the past is skipped.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from omnigraph.errors import Conflict, GraphNotInitialized, HistoryReclaimed, StorageError
from omnigraph.history import refs
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.log import Log, in_order
from omnigraph.history.manifest import Opened, read_manifest
from omnigraph.history.refs import Ref
from omnigraph.history.schemas import erased_by
from omnigraph.history.state import State
from omnigraph.history.unnamed import Unnamed, find_unnamed
from omnigraph.storage import layout
from omnigraph.storage.cell import files_of
from omnigraph.storage.failures import AbsentError, DamagedError
from omnigraph.storage.objects import Found
from omnigraph.storage.store import Store, version_names
from omnigraph.storage.transfer import Files, version_files

from .live import Live
from .policy import Policy
from .survey import Survey

_ATTEMPTS = 10
Reader = Callable[[Store, str, int], Files]


@dataclass(slots=True)
class Marking:
    """A mark in progress: the live set so far, and what was read on the way.

    `version_contents` are the files of table versions. These never change, so a second mark reads
    only new versions; `complete_versions` are those without a missing file. `type_by_directory`
    maps table directories to types, `kept_commits` stay readable, `used_tables` are directories
    of which something stays. `holders` describes the tags and operations that retain data besides
    branches. `read_version` lists the files of a table version. `unnamed` are branches and tags
    that lost their ref object: they count as live until they are repaired or dropped.
    """

    store: Store
    policy: Policy
    survey: Survey
    live: Live = field(default_factory=Live)
    versions: dict[tuple[str, int], Files] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    read: Reader = version_files
    whole: set[tuple[str, int]] = field(default_factory=set)
    holders: dict[str, None] = field(default_factory=dict)
    unnamed: tuple[Unnamed, ...] = ()
    _listed: dict[str, dict[str, Found]] = field(default_factory=dict)

    def again(self, policy: Policy | None = None) -> "Marking":
        """Return a new mark that reuses what cannot have changed, with another policy if given."""
        chosen = policy or self.policy
        made = Marking(self.store, chosen, self.survey, Live(), self.versions, self.keys)
        made.whole, made.unnamed = self.whole, self.unnamed
        return made

    def add_state(self, opened: Opened, what: str | None) -> None:
        """Add all that a manifest references; it must be readable if `required_by` is given."""
        state = opened.state
        self.live.names |= {*files_of(opened.cell), state.schema.location}
        self.live.names |= {one.name for one in state.chunks}
        for entry in state.tables.values():
            self.add_entry(entry, needed=what)

    def add_entry(self, entry: TableEntry, needed: str | None = None) -> None:
        """Add a table version; one that is required and not readable stops the run."""
        key = (entry.location, entry.lance_version)
        self.keys.setdefault(entry.location, entry.key)
        if key not in self.versions and needed is None and self.born(entry) is None:
            return  # removed by an earlier cleanup
        try:
            self._read_whole(entry, needed)
        except Conflict:
            # Another collector may have removed it since the survey; that is not damage.
            if needed is None and not self.store.has(*key):
                return
            raise
        self.tables.add(entry.location)
        self.live.add_version(*key, self.versions[key])

    def _read_whole(self, entry: TableEntry, needed: str | None) -> None:
        key = (entry.location, entry.lance_version)
        if key not in self.versions:
            try:
                self.versions[key] = self.read(self.store, *key)
            except (AbsentError, StorageError, OSError, ValueError) as error:
                raise unreadable(needed or f"the past of {entry.key}", entry.key) from error
        if key not in self.whole:
            self._check_whole(entry, needed)
            self.whole.add(key)

    def born(self, entry: TableEntry) -> datetime | None:
        """Return the store time of a table version; None if it is gone."""
        for name in version_names(entry.location, entry.lance_version):
            found = self.survey.files.get(name) or self._now(name)
            if found is not None:
                return found.modified
        return None

    def _check_whole(self, entry: TableEntry, needed: str | None) -> None:
        """Raise `Conflict` if a version has lost files.

        An incomplete version is no reason to remove an older one that is complete.
        """
        wanted = self.versions[entry.location, entry.lance_version].all
        lost = [name for name in wanted if name not in self.survey.files]
        for place in {name.rpartition("/")[0] for name in lost}:
            self._listed.pop(place, None)  # list again: a head may have moved since the listing
        gone = next((name for name in lost if self._now(name) is None), None)
        if gone is not None:
            raise unreadable(needed or f"the past of {entry.key}", f"{gone} is missing")

    def _now(self, name: str) -> Found | None:
        """Find a file that is newer than the survey; each directory is listed once."""
        place = name.rpartition("/")[0]
        if place not in self._listed:
            self._listed[place] = {one.name: one for one in self.store.objects.list(place)}
        return self._listed[place].get(name)


def unreadable(where: str, key: str) -> Conflict:
    """Return the error that stops a run: unreadable data is no evidence that anything may go."""
    return Conflict(
        f"{where} cannot be read ({key}); nothing was removed",
        hint="restore the files, or delete the branch or tag, and run cleanup again",
    )


def mark_heads(marking: Marking) -> None:
    """Mark every branch and tag that exists now, and their retained past."""
    found = [
        (ref, opened) for ref in list_refs(marking.store) for opened in read_head(marking, ref)
    ]
    logs: list[tuple[State, Log]] = []
    for ref, opened in found:
        kind = "branch" if ref.place == layout.REFS else "tag"
        marking.add_state(opened, f"{kind} '{ref.name}'")
        marking.kept.add(opened.state.head.commit_id)
        if ref.place == layout.REFS:
            logs.append((opened.state, _retained(marking, opened)))
        else:
            marking.holders[f"tag '{ref.name}'"] = None
    logs += [pair for one in marking.unnamed for pair in _mark_unnamed(marking, one)]
    for log, base in merge_bases(logs):
        _keep(marking, log, [base])


def _mark_unnamed(marking: Marking, one: Unnamed) -> Iterator[tuple[State, Log]]:
    """Mark all files of a manifest without a name and what it needs; yield the log of a branch."""
    if one.opened is None:
        raise unreadable(one.directory, one.reason)
    label = f"{one.kind or 'branch or tag'} '{one.name or one.ulid}', which lost its ref object"
    marking.live.places.add(one.directory)
    marking.add_state(one.opened, label)
    marking.kept.add(one.opened.state.head.commit_id)
    marking.holders[label] = None
    if one.kind == "branch":
        yield one.opened.state, _retained(marking, one.opened)


def spared_manifests(store: Store, survey: Survey) -> tuple[Unnamed, ...]:
    """Return the unnamed manifests that a cleanup must not touch: all but those never named."""
    places = (place.rpartition("/")[2] for place in survey.manifests() if "/" in place)
    found, _ = find_unnamed(store, places)
    return tuple(one for one in found if one.status != "never_named")


def list_refs(store: Store) -> list[Ref]:
    """Return every open ref of a branch or tag; one that is closed meanwhile may be missing.

    A damaged ref object references nothing: its manifest is found among the unnamed ones.
    """
    found = [refs.MAIN_REF]
    for place in (layout.REFS, layout.TAGS):
        for name, number in sorted(refs.list_numbers(store, place).items()):
            with suppress(DamagedError):
                ref = refs.read_ref(store, name, number, place) if number % 2 else None
                found += [ref] if ref is not None else []
    return found


def read_head(marking: Marking, ref: Ref) -> Iterator[Opened]:
    """Yield the newest manifest behind a ref; nothing if it was deleted meanwhile."""
    try:
        opened = read_manifest(marking.store, ref.ulid)
    except GraphNotInitialized as error:
        if refs.highest_number(marking.store, ref.name, ref.place) == ref.number:
            raise unreadable(f"'{ref.name}'", "its manifest is missing") from error
        return
    except StorageError as error:
        raise unreadable(f"'{ref.name}'", error.message) from error
    if not opened.state.head.closed:
        yield opened


def _retained(marking: Marking, opened: Opened) -> Log:
    """Keep the past of a branch; if log chunks were merged meanwhile, read the branch again."""
    for _ in range(_ATTEMPTS):
        log = Log(marking.store, opened.state)
        try:
            _keep_past(marking, log, opened.state)
        except HistoryReclaimed:
            opened = read_manifest(marking.store, opened.state.head.ulid)
            marking.add_state(opened, "a branch")
        else:
            return log
    raise unreadable("the log of a branch", "its chunks keep vanishing")


def _keep_past(marking: Marking, log: Log, state: State) -> None:
    """Keep the ancestors of a head that the policy retains: by count along first parents, or age.

    A commit's age counts from when its child superseded it, not from when it was created.
    """
    erased = erased_by(marking.store, state)
    line: list[Commit] = []
    merged: list[str] = []
    waiting: list[tuple[str, int | None, timedelta]] = [(state.head.commit_id, 0, timedelta())]
    seen: set[str] = set()
    while waiting:
        at, place, age = waiting.pop()
        if at in seen or not marking.policy.keeps(place, age):
            continue
        seen.add(at)
        one = log.get(at)
        line += [one] if place is not None else []
        merged += [at] if place is None else []
        superseded = _age(marking, one)
        # First parent last, so that it is popped next: a commit on the chain must get its depth
        # there, not be visited earlier as a merged-in commit without one.
        for parent in reversed(one.parents):
            first = place is not None and parent == one.parent
            waiting.append((parent, place + 1 if first and place is not None else None, superseded))
    _keep_line(marking, log, line, erased)
    _keep(marking, log, merged, erased)


def _age(marking: Marking, child: Commit) -> timedelta:
    """Return how long ago a commit was created, and thereby its parents were superseded."""
    entries = [one for one in child.tables.values() if one is not None]
    times = [time for time in map(marking.born, entries) if time is not None]
    if entries and not times:
        return timedelta.max  # its files went long ago
    # A merge adopts older versions, so the commit's own time counts as well; it can only make the
    # commit younger. The age is never negative, although the store's clock may be behind that of a
    # writer, or count whole seconds.
    return max(timedelta(), marking.survey.at - max(*times, child.published, child.published))


def _keep_line(marking: Marking, log: Log, line: list[Commit], erased: frozenset[str]) -> None:
    """Keep consecutive commits, newest first: the full oldest state, then the changes after it."""
    _keep(marking, log, [line[-1].id], erased)
    for one in line[:-1]:
        marking.kept.add(one.id)
        if one.schema is not None:
            marking.live.names.add(one.schema.location)
        _add(marking, (entry for entry in one.tables.values() if entry is not None), erased)


def _keep(
    marking: Marking, log: Log, commits: Iterable[str], erased: frozenset[str] = frozenset()
) -> None:
    for one in commits:
        tables, schema = log.state_of(one)
        marking.kept.add(one)
        marking.live.names.add(schema.location)
        _add(marking, tables.values(), erased)


def _add(marking: Marking, entries: Iterable[TableEntry], erased: frozenset[str]) -> None:
    """Add table versions, except of tables that were dropped together with their history."""
    for entry in entries:
        if entry.location not in erased:
            marking.add_entry(entry)


def merge_bases(logs: list[tuple[State, Log]]) -> Iterator[tuple[Log, str]]:
    """Yield commits below two heads of which no child is below the same heads: all merge bases.

    One pass for all heads together; a superset of the bases that merges can need.
    """
    if len(logs) < 2:
        return
    known: dict[str, Commit] = {}
    below: dict[str, int] = {}
    for place, (state, log) in enumerate(logs):
        known |= log.ancestors(state.head.commit_id)
        below[state.head.commit_id] = below.get(state.head.commit_id, 0) | 1 << place
    shared = dict.fromkeys(known, True)
    for one in in_order(known.values()):
        reach = below.get(one.id, 0)
        for parent in one.parents:
            below[parent] = below.get(parent, 0) | reach
    for one in known.values():
        for parent in one.parents:
            if below[parent] == below[one.id]:
                shared[parent] = False
    for at, alone in shared.items():
        reach = below[at]
        if alone and reach & (reach - 1):
            yield logs[reach.bit_length() - 1][1], at
