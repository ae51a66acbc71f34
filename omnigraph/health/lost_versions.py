"""Deleted manifest versions: what proves that newer ones existed, and what only suggests it.

Nothing in a manifest says that a newer version existed. Proof comes from elsewhere: commits in
other logs, swaps based on a version that is missing, states based on a lost one, intents. Only
reads; each proof is confirmed by a second read, since others may publish during a check.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Literal

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.history import refs
from omnigraph.history.audit import list_outcomes
from omnigraph.history.commit import Commit
from omnigraph.history.intent import listing
from omnigraph.history.log import Log
from omnigraph.history.manifest import Opened, read_manifest
from omnigraph.history.retention.lost import torn_version_of
from omnigraph.history.state import State
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .finding import Finding
from .fragments import Fragment, ManifestFiles, list_files, newer_fragments
from .past import Past

_RESTORE = "run `omnigraph repair --confirm` to restore the commits on top of the branch"
_DIVERGED = (
    "the branch was written to since: merge or cherry-pick the commits from where they are, or"
    " restore the files from a backup"
)
_UNKNOWN = "restore the manifest from a backup; do not run cleanup before that"
_PERHAPS = (
    "if you know that this commit was acknowledged, run `omnigraph repair --confirm --commit ID`"
    " to publish it again; otherwise the next write or cleanup resolves this"
)


@dataclass(slots=True)
class LostVersions:
    """Evidence that versions of one branch were lost.

    `proofs` are sentences, each sufficient by itself. `proved_commits` were provably published;
    they are keyed by id, with a state whose log contains them. `suspicions` may also be explained
    by interrupted writes, and `candidate_commits` are the commits of those.
    """

    past: Past
    opened: Opened
    proofs: list[str] = field(default_factory=list)
    commits: dict[str, tuple[Commit, State]] = field(default_factory=dict)
    suspects: list[str] = field(default_factory=list)
    candidates: dict[str, tuple[Commit, State]] = field(default_factory=dict)
    gaps: list[int] = field(default_factory=list)

    def accept(self, commit_id: str | None) -> bool:
        """Treat a candidate as published on the caller's word; return False if it is not one."""
        if commit_id is None or commit_id not in self.candidates:
            return False
        self.commits[commit_id] = self.candidates[commit_id]
        self.proofs.append(f"commit {commit_id} was acknowledged")
        return True

    @property
    def chain(self) -> list[tuple[Commit, State]]:
        """The proved commits on top of the head, oldest first; these can be published again."""
        found: list[tuple[Commit, State]] = []
        at: str | None = self.opened.state.head.commit_id
        children = {one.parent: (one, state) for one, state in self.commits.values()}
        while at in children:
            found.append(children[at])
            at = children[at][0].id
        return found


def find_lost_versions(store: Store, pasts: Iterable[Past]) -> list[LostVersions]:
    """Return every branch with evidence of lost versions."""
    pasts = list(pasts)
    branches = [log for log in pasts if log.head.ref.place == layout.REFS and log.whole]
    outside = _outside(store)
    found = [_examine(store, log, pasts, outside) for log in branches if log.head.newest]
    return [one for one in found if one is not None and (one.proofs or one.suspects or one.gaps)]


def check_lost_versions(found: Iterable[LostVersions]) -> Iterator[Finding]:
    """Return one finding per branch and severity."""
    for one in found:
        branch, name = one.past.head.label, layout.manifest_directory(one.past.head.ref.ulid)
        if one.proofs:
            restorable = len(one.chain) == len(one.commits) > 0
            hint = _RESTORE if restorable else _DIVERGED if one.commits else _UNKNOWN
            yield Finding("manifest", _lost(one), branch=branch, name=name, hint=hint)
        for text in one.suspects if not one.proofs else ():
            yield Finding("manifest", text, "warning", branch=branch, name=name, hint=_PERHAPS)
        if one.gaps:
            shown = f"{one.gaps[0]} to {one.gaps[-1]}" if len(one.gaps) > 1 else f"{one.gaps[0]}"
            reason = f"versions {shown} of the manifest are missing; no other version needs them"
            hint = "another program removed them; restore them from a backup, or ignore this"
            yield Finding("manifest", reason, "warning", branch=branch, name=name, hint=hint)


def _lost(one: LostVersions) -> str:
    ids = sorted(one.commits)
    named = f": commit {', '.join(ids[:3])}{' …' if len(ids) > 3 else ''}" if ids else ""
    return (
        f"versions above {one.opened.version} were published and are missing{named}"
        f" ({'; '.join(one.proofs[:3])})"
    )


@dataclass(frozen=True, slots=True)
class _Outside:
    """Commits that intents and audit records name, by manifest ULID and by branch name."""

    bases: Mapping[str, Mapping[str, str]]
    audits: Mapping[str, Mapping[str, str]]
    set_aside: Set[str] = frozenset()


def _outside(store: Store) -> _Outside:
    bases: dict[str, dict[str, str]] = {}
    audits: dict[str, dict[str, str]] = {}
    set_aside: set[str] = set()
    try:
        for pending in listing(store).pending:
            intent = pending.intent
            if intent.base_commit:
                named = bases.setdefault(intent.branch_ulid, {})
                named[intent.base_commit] = f"unfinished {intent.operation} {intent.id}"
        for one in list_outcomes(store):
            set_aside |= {one.operation_id} if one.kind == "set_aside" else set()
            if one.commit_id is not None and one.kind in ("finished", "refused"):
                audits.setdefault(one.branch, {})[one.commit_id] = one.operation_id
    except (StorageError, KeyError):
        return _Outside({}, {})  # unreadable records are reported elsewhere
    return _Outside(bases, audits, set_aside)


def _examine(
    store: Store, past: Past, pasts: Iterable[Past], outside: _Outside
) -> LostVersions | None:
    """Collect all evidence about one branch, compared with its newest state as of now."""
    ref = past.head.ref
    claims = dict(_claims(past, pasts, outside))
    files = list_files(store, ref.ulid)
    fragments = newer_fragments(store, ref.ulid, files)
    try:
        opened = read_manifest(store, ref.ulid)
        log = Log(store, opened.state)
        missing = {one: claim for one, claim in claims.items() if log.find(one) is None}
    except OmnigraphError:
        return None  # reported where the branch itself is read
    found = LostVersions(past, opened)
    for commit_id, claim in missing.items():
        _weigh(found, past, commit_id, claim)
    if opened.version == files.newest:  # nothing was published meanwhile
        _weigh_files(found, files, fragments, log)
        if _was_set_aside(ref.ulid, files.newest, outside.set_aside):
            found.suspects, found.proofs, found.commits = [*found.proofs, *found.suspects], [], {}
        found.gaps = [
            version for version in files.gaps if version in list_files(store, ref.ulid).gaps
        ]
    return found


def _was_set_aside(ulid: str, newest: int, events: Set[str]) -> bool:
    """Return whether newer versions were torn by a power loss: visible, but never acknowledged."""
    place = layout.manifest_directory(ulid)
    return any(torn_version_of(one, place) > newest for one in events)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A record elsewhere that refers to a commit of the branch."""

    text: str
    commit: Commit | None = None
    state: State | None = None
    certain: bool = True


def _claims(past: Past, pasts: Iterable[Past], outside: _Outside) -> Iterator[tuple[str, _Claim]]:
    """Return commits that others say the branch must have; stronger claims come last."""
    ref = past.head.ref
    alone = ref == refs.MAIN_REF or ref.number == 1  # no other branch ever used this name
    for commit_id, operation in outside.audits.get(ref.name, {}).items() if alone else ():
        text = f"the audit of operation {operation} names commit {commit_id}"
        yield commit_id, _Claim(text, certain=False)
    for commit_id, operation in outside.bases.get(ref.ulid, {}).items():
        yield commit_id, _Claim(f"the {operation} is based on commit {commit_id}")
    for other in (log for log in pasts if log is not past):
        label, state = other.head.label, other.state
        for one in other.commits.values() if alone else ():
            if one.branch == ref.name and one.id not in past.commits:
                anchor = "own" if ref == refs.MAIN_REF else _anchor(one, past, other)
                if anchor is not None:
                    text = f"{label} has commit {one.id}"
                    yield one.id, _Claim(text, one, state, anchor == "own")
        origin, fork = state.origin, state.head.fork
        if origin is not None and origin.parent_ulid == ref.ulid and fork is not None:
            commit = other.commits.get(fork)
            yield fork, _Claim(f"{label} was forked from commit {fork}", commit, state)


def _anchor(commit: Commit, past: Past, other: Past) -> Literal["own", "fork"] | None:
    """Follow first parents to a commit published on this very manifest ("own"), or to its fork.

    A fork proves little: the name may have belonged to another branch that was lost before.
    """
    head = past.state.head
    own, at = set[str](), past.commits.get(head.commit_id)
    while at is not None and at.id != head.fork:
        own.add(at.id)
        at = past.commits.get(at.parent or "")
    before: Commit | None = commit
    while before is not None and before.id not in past.commits:
        before = other.commits.get(before.parent or "")
    if before is None:
        return None
    return "own" if before.id in own else "fork" if before.id == head.commit_id else None


def _weigh(found: LostVersions, past: Past, commit_id: str, claim: _Claim) -> None:
    if not claim.certain:
        found.suspects.append(f"{claim.text}, which the branch does not have")
        return
    found.proofs.append(claim.text)
    if claim.commit is not None and claim.state is not None:
        found.commits[commit_id] = (claim.commit, claim.state)


def _weigh_files(
    found: LostVersions, files: ManifestFiles, fragments: list[Fragment], log: Log
) -> None:
    """Weigh swaps and fragments above the newest version; one based on another is proof."""
    above = max(files.bases, default=0)
    if above > files.newest:
        found.proofs.append(f"a swap was based on version {above}")
    for one in fragments:
        head = one.state.head
        if head.closed or log.find(head.commit_id) is not None:
            continue  # an interrupted fence or deletion, which has no commit of its own
        known = {commit.id: commit for commit in one.state.tail}
        for other in fragments:
            if _stands_on(other.state, head.commit_id) and other is not one:
                text = f"the state of version {other.version} is based on commit {head.commit_id}"
                found.proofs.append(text)
                found.commits[head.commit_id] = (known[head.commit_id], one.state)
        if head.commit_id not in found.commits:
            found.candidates[head.commit_id] = (known[head.commit_id], one.state)
            begun = ", its swap was begun," if one.version - 1 in files.bases else ""
            found.suspects.append(
                f"the rows of version {one.version} with commit {head.commit_id} exist{begun}"
                " but the version does not: a write was interrupted or is still running, or the"
                " newest version was deleted"
            )


def _stands_on(state: State, commit_id: str) -> bool:
    """Return whether a state builds on a commit, other than by the write of that commit itself."""
    if state.head.commit_id == commit_id:
        return state.head.nonce is not None
    return any(one.id == commit_id for one in state.tail)
