"""The mark phase: find all files that branches, tags and their retained history need.

This module determines which commits are kept. On every branch, these are the commits that the policy keeps by count or
age, and the merged-in commits that it keeps by age. The merge bases of existing branches and all tagged commits are
kept as well. Everything that a head needs must be readable. Otherwise, nothing is removed. Historical data that an
earlier cleanup has removed is skipped.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from omnigraph.errors import Conflict, GraphNotInitialized, HistoryReclaimed, StorageError
from omnigraph.history import refs
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.commit_log import HistoryLog, sort_newest_first
from omnigraph.history.live_set import LiveSet
from omnigraph.history.manifest import LoadedManifest, read_manifest
from omnigraph.history.refs import Ref
from omnigraph.history.schemas import read_erased_directories
from omnigraph.history.state import GraphState
from omnigraph.publish.unnamed_manifests import UnnamedManifest, find_manifests_without_ref
from omnigraph.storage import layout
from omnigraph.storage.failures import AbsentError, DamagedError
from omnigraph.storage.manifest_cell import cell_files
from omnigraph.storage.object_backend import ListedObject
from omnigraph.storage.store import Store, version_file_names
from omnigraph.storage.transfer import VersionFiles, version_files

from .file_survey import FileSurvey
from .policy import RetentionPolicy

_MAX_LOG_READS = 10
VersionReader = Callable[[Store, str, int], VersionFiles]


@dataclass(slots=True)
class Marking:
    """A mark phase in progress: the live set so far, and the data read to build it.

    `version_contents` maps table versions to their files. A version's files never change, so a second mark reads only
    new versions. `complete_versions` are the versions without missing files. `type_by_directory` maps table directories
    to types, `kept_commits` are the commits that remain readable, and `used_tables` are directories that are at least
    partially kept. `holders` describes the tags and operations that, like branches, retain data. `read_version`
    lists the files in a table version. `unnamed` are branches and tags that have lost their ref object. They are
    treated as live until they are repaired or dropped.
    """

    store: Store
    policy: RetentionPolicy
    survey: FileSurvey
    live: LiveSet = field(default_factory=LiveSet)
    version_contents: dict[tuple[str, int], VersionFiles] = field(default_factory=dict)
    type_by_directory: dict[str, str] = field(default_factory=dict)
    kept_commits: set[str] = field(default_factory=set)
    used_tables: set[str] = field(default_factory=set)
    read_version: VersionReader = version_files
    complete_versions: set[tuple[str, int]] = field(default_factory=set)
    holders: dict[str, None] = field(default_factory=dict)
    unnamed: tuple[UnnamedManifest, ...] = ()
    _listed_directories: dict[str, dict[str, ListedObject]] = field(default_factory=dict)

    def start_over(self, policy: RetentionPolicy | None = None) -> "Marking":
        """Return a new mark phase, optionally with another policy. It reuses all data that cannot have changed."""
        new_policy = policy or self.policy
        fresh_marking = Marking(
            self.store, new_policy, self.survey, LiveSet(), self.version_contents, self.type_by_directory
        )
        fresh_marking.complete_versions, fresh_marking.unnamed = (self.complete_versions, self.unnamed)
        return fresh_marking

    def add_state(self, manifest: LoadedManifest, required_by: str | None) -> None:
        """Add everything that a manifest references. All of it must be readable if `required_by` is given."""
        state = manifest.state
        self.live.names |= {*cell_files(manifest.cell), state.schema.location}
        self.live.names |= {chunk.name for chunk in state.chunks}
        for entry in state.tables.values():
            self.add_entry(entry, required_by=required_by)

    def add_entry(self, entry: TableEntry, required_by: str | None = None) -> None:
        """Add a table version. The run stops if a required version is unreadable."""
        version_key = (entry.location, entry.lance_version)
        self.type_by_directory.setdefault(entry.location, entry.key)
        if version_key not in self.version_contents and required_by is None and self.creation_time(entry) is None:
            return  # an earlier cleanup removed the version
        try:
            self._read_complete(entry, required_by)
        except Conflict:
            # Another collector may have removed the version after the survey; that is not damage.
            if required_by is None and not self.store.has_version(*version_key):
                return
            raise
        self.used_tables.add(entry.location)
        self.live.add_version(*version_key, self.version_contents[version_key])

    def _read_complete(self, entry: TableEntry, required_by: str | None) -> None:
        version_key = (entry.location, entry.lance_version)
        if version_key not in self.version_contents:
            try:
                self.version_contents[version_key] = self.read_version(self.store, *version_key)
            except (AbsentError, StorageError, OSError, ValueError) as error:
                raise unreadable_error(required_by or f"the history of {entry.key}", entry.key) from error
        if version_key not in self.complete_versions:
            self._check_complete(entry, required_by)
            self.complete_versions.add(version_key)

    def creation_time(self, entry: TableEntry) -> datetime | None:
        """Return a table version's creation time by the store's clock, or None if the version no longer exists."""
        for version_file in version_file_names(entry.location, entry.lance_version):
            listed_file = self.survey.files.get(version_file) or self._find_listed(version_file)
            if listed_file is not None:
                return listed_file.modified
        return None

    def _check_complete(self, entry: TableEntry, required_by: str | None) -> None:
        """Raise `Conflict` if a version has missing files.

        Otherwise, a cleanup could keep an incomplete version and remove an older, complete one.
        """
        needed_names = self.version_contents[entry.location, entry.lance_version].named_files
        unlisted_names = [file_name for file_name in needed_names if file_name not in self.survey.files]
        for directory in {file_name.rpartition("/")[0] for file_name in unlisted_names}:
            self._listed_directories.pop(directory, None)  # list again, because a head may have moved after the listing
        missing_name = next((file_name for file_name in unlisted_names if self._find_listed(file_name) is None), None)
        if missing_name is not None:
            raise unreadable_error(required_by or f"the history of {entry.key}", f"{missing_name} is missing")

    def _find_listed(self, file_name: str) -> ListedObject | None:
        """Find a file that the survey lacks, or return None if it does not exist. Each directory is listed once."""
        directory = file_name.rpartition("/")[0]
        if directory not in self._listed_directories:
            self._listed_directories[directory] = {
                listed_file.name: listed_file for listed_file in self.store.objects.list(directory)
            }
        return self._listed_directories[directory].get(file_name)


def unreadable_error(subject: str, detail: str) -> Conflict:
    """Return the error that stops a run. Nothing may be removed on the basis of unreadable data."""
    return Conflict(
        f"{subject} cannot be read ({detail}); nothing was removed",
        hint="restore the files, or delete the branch or tag, then run `omnigraph cleanup` again",
    )


def mark_heads(marking: Marking) -> None:
    """Mark every existing branch and tag, along with its retained history."""
    open_manifests = [(ref, manifest) for ref in list_refs(marking.store) for manifest in read_head(marking, ref)]
    logs: list[tuple[GraphState, HistoryLog]] = []
    for ref, manifest in open_manifests:
        kind_label = "branch" if ref.directory == layout.REFS else "tag"
        marking.add_state(manifest, f"{kind_label} '{ref.name}'")
        marking.kept_commits.add(manifest.state.head.commit_id)
        if ref.directory == layout.REFS:
            logs.append((manifest.state, _keep_branch_past(marking, manifest)))
        else:
            marking.holders[f"tag '{ref.name}'"] = None
    logs += [pair for unnamed in marking.unnamed for pair in _mark_unnamed(marking, unnamed)]
    for log, base_commit_id in merge_bases_of_refs(logs):
        _keep_commits(marking, log, [base_commit_id])


def _mark_unnamed(marking: Marking, unnamed: UnnamedManifest) -> Iterator[tuple[GraphState, HistoryLog]]:
    """Mark all files in an unnamed manifest, and everything that the manifest references.

    For a branch, yield its state and log.
    """
    if unnamed.manifest is None:
        raise unreadable_error(unnamed.directory, unnamed.reason)
    subject = f"{unnamed.kind or 'branch or tag'} '{unnamed.name or unnamed.ulid}'"
    label = f"{subject}, whose ref object is missing"
    marking.live.directories.add(unnamed.directory)
    marking.add_state(unnamed.manifest, label)
    marking.kept_commits.add(unnamed.manifest.state.head.commit_id)
    marking.holders[label] = None
    if unnamed.kind == "branch":
        yield unnamed.manifest.state, _keep_branch_past(marking, unnamed.manifest)


def spared_manifests(store: Store, survey: FileSurvey) -> tuple[UnnamedManifest, ...]:
    """Return the unnamed manifests that a cleanup must keep: all except those that never had a name."""
    manifest_ulids = (directory.rpartition("/")[2] for directory in survey.manifest_files() if "/" in directory)
    unnamed_manifests, _ = find_manifests_without_ref(store, manifest_ulids)
    return tuple(unnamed for unnamed in unnamed_manifests if unnamed.status != "never_named")


def list_refs(store: Store) -> list[Ref]:
    """Return the ref for every branch and tag name in use. A name that is released during the listing may be missing.

    A damaged ref object references nothing, so its manifest is treated as unnamed.
    """
    open_refs = [refs.MAIN_REF]
    for ref_directory in (layout.REFS, layout.TAGS):
        for ref_name, ref_number in sorted(refs.list_highest_numbers(store, ref_directory).items()):
            with suppress(DamagedError):
                ref = refs.read_ref(store, ref_name, ref_number, ref_directory) if ref_number % 2 else None
                open_refs += [ref] if ref is not None else []
    return open_refs


def read_head(marking: Marking, ref: Ref) -> Iterator[LoadedManifest]:
    """Yield the newest manifest that a ref points to, or nothing if the manifest has been deleted."""
    try:
        manifest = read_manifest(marking.store, ref.ulid)
    except GraphNotInitialized as error:
        if refs.find_highest_number(marking.store, ref.name, ref.directory) == ref.number:
            raise unreadable_error(f"'{ref.name}'", "the manifest is missing") from error
        return
    except StorageError as error:
        raise unreadable_error(f"'{ref.name}'", error.message) from error
    if not manifest.state.head.closed:
        yield manifest


def _keep_branch_past(marking: Marking, manifest: LoadedManifest) -> HistoryLog:
    """Keep a branch's history. If its log chunks were merged in the meantime, read the branch again."""
    for _ in range(_MAX_LOG_READS):
        log = HistoryLog(marking.store, manifest.state)
        try:
            _keep_log_past(marking, log, manifest.state)
        except HistoryReclaimed:
            manifest = read_manifest(marking.store, manifest.state.head.ulid)
            marking.add_state(manifest, "a branch")
        else:
            return log
    raise unreadable_error("the log for a branch", "its chunks are being removed while they are read")


def _keep_log_past(marking: Marking, log: HistoryLog, state: GraphState) -> None:
    """Keep those ancestors of a head that the policy retains, either by count along first parents or by age.

    A commit's age is the time since its child superseded it, not the time since it was created.
    """
    erased_directories = read_erased_directories(marking.store, state)
    first_parent_commits: list[Commit] = []
    merged_ids: list[str] = []
    pending_visits: list[tuple[str, int | None, timedelta]] = [(state.head.commit_id, 0, timedelta())]
    visited_ids: set[str] = set()
    while pending_visits:
        commit_id, depth, age = pending_visits.pop()
        if commit_id in visited_ids or not marking.policy.keeps(depth, age):
            continue
        visited_ids.add(commit_id)
        commit = log.get(commit_id)
        first_parent_commits += [commit] if depth is not None else []
        merged_ids += [commit_id] if depth is None else []
        superseded_age = _superseded_age(marking, commit)
        # Push the first parent last, so that it is popped next. A commit on the first-parent chain must be visited with
        # its depth before the traversal can reach it as a merged-in commit without a depth.
        for parent_id in reversed(commit.parents):
            is_first_parent = depth is not None and parent_id == commit.parent
            pending_visits.append(
                (parent_id, depth + 1 if is_first_parent and depth is not None else None, superseded_age)
            )
    _keep_first_parents(marking, log, first_parent_commits, erased_directories)
    _keep_commits(marking, log, merged_ids, erased_directories)


def _superseded_age(marking: Marking, child_commit: Commit) -> timedelta:
    """Return the time since a commit was created, that is, since its parents were superseded."""
    entries = [entry for entry in child_commit.tables.values() if entry is not None]
    version_times = [time for time in map(marking.creation_time, entries) if time is not None]
    if entries and not version_times:
        return timedelta.max  # the commit's files were already removed
    # A merge adopts older versions, so the commit's own time is considered as well. This can only make the commit
    # younger. The age is never negative, even if the store's clock lags behind a writer's clock or counts whole
    # seconds.
    return max(
        timedelta(), marking.survey.taken_at - max(*version_times, child_commit.published, child_commit.published)
    )


def _keep_first_parents(
    marking: Marking, log: HistoryLog, first_parent_commits: list[Commit], erased_directories: frozenset[str]
) -> None:
    """Keep consecutive commits on a first-parent path, given newest first.

    The oldest commit's full state is marked; for each later commit, only its changes are marked.
    """
    _keep_commits(marking, log, [first_parent_commits[-1].id], erased_directories)
    for commit in first_parent_commits[:-1]:
        marking.kept_commits.add(commit.id)
        if commit.schema is not None:
            marking.live.names.add(commit.schema.location)
        _add_entries(marking, (entry for entry in commit.tables.values() if entry is not None), erased_directories)


def _keep_commits(
    marking: Marking, log: HistoryLog, commit_ids: Iterable[str], erased_directories: frozenset[str] = frozenset()
) -> None:
    for commit_id in commit_ids:
        table_entries, schema_row = log.tables_and_schema_at(commit_id)
        marking.kept_commits.add(commit_id)
        marking.live.names.add(schema_row.location)
        _add_entries(marking, table_entries.values(), erased_directories)


def _add_entries(marking: Marking, entries: Iterable[TableEntry], erased_directories: frozenset[str]) -> None:
    """Add table versions, except for tables that were dropped together with their history."""
    for entry in entries:
        if entry.location not in erased_directories:
            marking.add_entry(entry)


def merge_bases_of_refs(logs: list[tuple[GraphState, HistoryLog]]) -> Iterator[tuple[HistoryLog, str]]:
    """Yield all merge bases: the best common ancestors of every pair of heads.

    All heads are processed in one pass. The result is a superset of the bases that merges can need.
    """
    if len(logs) < 2:
        return
    commits_by_id: dict[str, Commit] = {}
    head_masks: dict[str, int] = {}
    for head_index, (state, log) in enumerate(logs):
        commits_by_id |= log.ancestors(state.head.commit_id)
        head_masks[state.head.commit_id] = head_masks.get(state.head.commit_id, 0) | 1 << head_index
    is_lowest_shared = dict.fromkeys(commits_by_id, True)
    for commit in sort_newest_first(commits_by_id.values()):
        head_mask = head_masks.get(commit.id, 0)
        for parent_id in commit.parents:
            head_masks[parent_id] = head_masks.get(parent_id, 0) | head_mask
    for commit in commits_by_id.values():
        for parent_id in commit.parents:
            if head_masks[parent_id] == head_masks[commit.id]:
                is_lowest_shared[parent_id] = False
    for commit_id, has_no_shared_child in is_lowest_shared.items():
        head_mask = head_masks[commit_id]
        if has_no_shared_child and head_mask & (head_mask - 1):
            yield logs[head_mask.bit_length() - 1][1], commit_id
