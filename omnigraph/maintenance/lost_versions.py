"""Find evidence that manifest versions were deleted, and classify it as proof or suspicion.

A manifest does not record whether a newer version existed. Proof comes from other records: commits in other logs, swaps
based on a missing version, states based on a lost version, and intents. This module never writes. It confirms each
proof with a second read, because other processes may publish during a check.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Literal

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.history import refs
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import LoadedManifest, read_manifest
from omnigraph.history.recovery_records import list_recovery_records
from omnigraph.history.state import GraphState
from omnigraph.publish.intent import list_intents
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .branch_log import BranchLog
from .finding import IntegrityFinding
from .orphan_fragments import ManifestFiles, OrphanFragment, list_manifest_files, read_newer_fragments
from .retention.version_gaps import parse_torn_version

_RESTORE_HINT = "run `omnigraph repair --confirm` to restore the commits on top of the branch"
_DIVERGED_HINT = (
    "the branch has changed since then: merge or cherry-pick the commits from the branches that"
    " have them, or restore the files from a backup"
)
_UNKNOWN_HINT = "restore the manifest from a backup; until then, do not run `omnigraph cleanup`"
_SUSPICION_HINT = (
    "if you know that this commit was acknowledged, run `omnigraph repair --confirm --commit ID`"
    " to publish it again; otherwise this warning disappears after the next write or cleanup"
)


@dataclass(slots=True)
class LostVersionEvidence:
    """Evidence that a branch has lost manifest versions.

    Each sentence in `proofs` proves the loss on its own. `proved_commits` maps the id of each provably published commit
    to the commit and to a state whose log contains it. The evidence in `suspicions` may also stem from interrupted
    writes. `candidate_commits` are the commits that these writes would have published.
    """

    branch_log: BranchLog
    manifest: LoadedManifest
    proofs: list[str] = field(default_factory=list)
    proved_commits: dict[str, tuple[Commit, GraphState]] = field(default_factory=dict)
    suspicions: list[str] = field(default_factory=list)
    candidate_commits: dict[str, tuple[Commit, GraphState]] = field(default_factory=dict)
    missing_versions: list[int] = field(default_factory=list)

    def accept_commit(self, commit_id: str | None) -> bool:
        """Treat a commit as published at the caller's request; return False if the commit is not a candidate."""
        if commit_id is None or commit_id not in self.candidate_commits:
            return False
        self.proved_commits[commit_id] = self.candidate_commits[commit_id]
        self.proofs.append(f"commit {commit_id} was acknowledged")
        return True

    @property
    def restorable_commits(self) -> list[tuple[Commit, GraphState]]:
        """The provably published commits above the head that can be published again, oldest first."""
        ordered: list[tuple[Commit, GraphState]] = []
        parent_id: str | None = self.manifest.state.head.commit_id
        commits_by_parent = {commit.parent: (commit, state) for commit, state in self.proved_commits.values()}
        while parent_id in commits_by_parent:
            ordered.append(commits_by_parent[parent_id])
            parent_id = commits_by_parent[parent_id][0].id
        return ordered


def find_lost_versions(store: Store, branch_logs: Iterable[BranchLog]) -> list[LostVersionEvidence]:
    """Return every branch with evidence of lost versions."""
    branch_logs = list(branch_logs)
    complete_logs = [
        branch_log for branch_log in branch_logs if branch_log.head.ref.directory == layout.REFS and branch_log.complete
    ]
    records = _read_external_records(store)
    examined = [
        _examine_branch(store, branch_log, branch_logs, records)
        for branch_log in complete_logs
        if branch_log.head.is_newest
    ]
    return [
        evidence
        for evidence in examined
        if evidence is not None and (evidence.proofs or evidence.suspicions or evidence.missing_versions)
    ]


def check_lost_versions(lost_versions: Iterable[LostVersionEvidence]) -> Iterator[IntegrityFinding]:
    """Yield one finding per branch and severity."""
    for evidence in lost_versions:
        branch = evidence.branch_log.head.label
        manifest_path = layout.manifest_directory(evidence.branch_log.head.ref.ulid)
        if evidence.proofs:
            restorable = len(evidence.restorable_commits) == len(evidence.proved_commits) > 0
            hint = _RESTORE_HINT if restorable else _DIVERGED_HINT if evidence.proved_commits else _UNKNOWN_HINT
            yield IntegrityFinding("manifest", _describe_lost(evidence), branch=branch, name=manifest_path, hint=hint)
        for suspicion in evidence.suspicions if not evidence.proofs else ():
            yield IntegrityFinding(
                "manifest", suspicion, "warning", branch=branch, name=manifest_path, hint=_SUSPICION_HINT
            )
        if evidence.missing_versions:
            version_range = (
                f"{evidence.missing_versions[0]} to {evidence.missing_versions[-1]}"
                if len(evidence.missing_versions) > 1
                else f"{evidence.missing_versions[0]}"
            )
            reason = f"manifest versions {version_range} are missing; no other version depends on them"
            hint = "another program removed these versions; restore them from a backup, or ignore this warning"
            yield IntegrityFinding("manifest", reason, "warning", branch=branch, name=manifest_path, hint=hint)


def _describe_lost(evidence: LostVersionEvidence) -> str:
    commit_ids = sorted(evidence.proved_commits)
    commit_list = f": commit {', '.join(commit_ids[:3])}{' …' if len(commit_ids) > 3 else ''}" if commit_ids else ""
    return (
        f"versions above {evidence.manifest.version} were published but are missing{commit_list}"
        f" ({'; '.join(evidence.proofs[:3])})"
    )


@dataclass(frozen=True, slots=True)
class _ExternalRecords:
    """The commit ids found in intents (keyed by manifest ULID) and in audit records (keyed by branch name)."""

    intent_bases: Mapping[str, Mapping[str, str]]
    audited_commits: Mapping[str, Mapping[str, str]]
    set_aside_ids: Set[str] = frozenset()


def _read_external_records(store: Store) -> _ExternalRecords:
    intent_bases: dict[str, dict[str, str]] = {}
    audited_commits: dict[str, dict[str, str]] = {}
    set_aside_ids: set[str] = set()
    try:
        for pending in list_intents(store).pending:
            intent = pending.intent
            if intent.base_commit:
                base_commits = intent_bases.setdefault(intent.branch_ulid, {})
                base_commits[intent.base_commit] = f"unfinished {intent.operation} {intent.id}"
        for outcome in list_recovery_records(store):
            set_aside_ids |= {outcome.operation_id} if outcome.kind == "set_aside" else set()
            if outcome.commit_id is not None and outcome.kind in ("finished", "refused"):
                audited_commits.setdefault(outcome.branch, {})[outcome.commit_id] = outcome.operation_id
    except (StorageError, KeyError):
        return _ExternalRecords({}, {})  # unreadable records are reported elsewhere
    return _ExternalRecords(intent_bases, audited_commits, set_aside_ids)


def _examine_branch(
    store: Store, branch_log: BranchLog, branch_logs: Iterable[BranchLog], records: _ExternalRecords
) -> LostVersionEvidence | None:
    """Collect evidence that one branch has lost versions, using a fresh read of its newest state."""
    ref = branch_log.head.ref
    claims = dict(_collect_claims(branch_log, branch_logs, records))
    manifest_files = list_manifest_files(store, ref.ulid)
    fragments = read_newer_fragments(store, ref.ulid, manifest_files)
    try:
        manifest = read_manifest(store, ref.ulid)
        log = HistoryLog(store, manifest.state)
        missing_claims = {claimed_id: claim for claimed_id, claim in claims.items() if log.find(claimed_id) is None}
    except OmnigraphError:
        return None  # the fault was reported when the branch was read
    evidence = LostVersionEvidence(branch_log, manifest)
    for commit_id, claim in missing_claims.items():
        _weigh_claim(evidence, branch_log, commit_id, claim)
    if manifest.version == manifest_files.newest_version:  # nothing has been published since
        _weigh_manifest_files(evidence, manifest_files, fragments, log)
        if _has_torn_version(ref.ulid, manifest_files.newest_version, records.set_aside_ids):
            evidence.suspicions, evidence.proofs, evidence.proved_commits = (
                [*evidence.proofs, *evidence.suspicions],
                [],
                {},
            )
        evidence.missing_versions = [
            version
            for version in manifest_files.missing_versions
            if version in list_manifest_files(store, ref.ulid).missing_versions
        ]
    return evidence


def _has_torn_version(manifest_ulid: str, newest_version: int, operation_ids: Set[str]) -> bool:
    """Return whether the newer versions were torn by a power loss, and therefore never acknowledged."""
    manifest_path = layout.manifest_directory(manifest_ulid)
    return any(parse_torn_version(operation_id, manifest_path) > newest_version for operation_id in operation_ids)


@dataclass(frozen=True, slots=True)
class _CommitClaim:
    """A record outside the branch that refers to one of the branch's commits."""

    description: str
    commit: Commit | None = None
    state: GraphState | None = None
    certain: bool = True


def _collect_claims(
    branch_log: BranchLog, branch_logs: Iterable[BranchLog], records: _ExternalRecords
) -> Iterator[tuple[str, _CommitClaim]]:
    """Yield the commits that other records attribute to the branch. Stronger claims come last."""
    ref = branch_log.head.ref
    is_name_unique = ref == refs.MAIN_REF or ref.number == 1  # no other branch has ever used this name
    for commit_id, operation in records.audited_commits.get(ref.name, {}).items() if is_name_unique else ():
        description = f"the audit record for operation {operation} lists commit {commit_id}"
        yield commit_id, _CommitClaim(description, certain=False)
    for commit_id, operation in records.intent_bases.get(ref.ulid, {}).items():
        yield commit_id, _CommitClaim(f"the {operation} is based on commit {commit_id}")
    for other_log in (candidate_log for candidate_log in branch_logs if candidate_log is not branch_log):
        label, state = other_log.head.label, other_log.state
        for claimed_commit in other_log.commits.values() if is_name_unique else ():
            if claimed_commit.branch == ref.name and claimed_commit.id not in branch_log.commits:
                anchor = "own" if ref == refs.MAIN_REF else _find_anchor(claimed_commit, branch_log, other_log)
                if anchor is not None:
                    description = f"{label} has commit {claimed_commit.id}"
                    yield (claimed_commit.id, _CommitClaim(description, claimed_commit, state, anchor == "own"))
        origin, fork = state.origin, state.head.fork
        if origin is not None and origin.parent_ulid == ref.ulid and fork is not None:
            fork_commit = other_log.commits.get(fork)
            yield fork, _CommitClaim(f"{label} was forked from commit {fork}", fork_commit, state)


def _find_anchor(commit: Commit, branch_log: BranchLog, other_log: BranchLog) -> Literal["own", "fork"] | None:
    """Return whether a commit descends from this branch's own commits ("own") or only from its fork point ("fork").

    Return None in all other cases. Only first parents are followed. A fork point is weak evidence, because the name may
    have belonged to a different branch that was lost earlier.
    """
    head = branch_log.state.head
    own_commits, own_commit = set[str](), branch_log.commits.get(head.commit_id)
    while own_commit is not None and own_commit.id != head.fork:
        own_commits.add(own_commit.id)
        own_commit = branch_log.commits.get(own_commit.parent or "")
    claimed_ancestor: Commit | None = commit
    while claimed_ancestor is not None and claimed_ancestor.id not in branch_log.commits:
        claimed_ancestor = other_log.commits.get(claimed_ancestor.parent or "")
    if claimed_ancestor is None:
        return None
    return "own" if claimed_ancestor.id in own_commits else "fork" if claimed_ancestor.id == head.commit_id else None


def _weigh_claim(evidence: LostVersionEvidence, branch_log: BranchLog, commit_id: str, claim: _CommitClaim) -> None:
    if not claim.certain:
        evidence.suspicions.append(f"{claim.description}, which is missing from the branch")
        return
    evidence.proofs.append(claim.description)
    if claim.commit is not None and claim.state is not None:
        evidence.proved_commits[commit_id] = (claim.commit, claim.state)


def _weigh_manifest_files(
    evidence: LostVersionEvidence, manifest_files: ManifestFiles, fragments: list[OrphanFragment], log: HistoryLog
) -> None:
    """Assess the swaps and fragments above the newest version. A fragment based on another fragment proves a loss."""
    highest_base = max(manifest_files.swap_bases, default=0)
    if highest_base > manifest_files.newest_version:
        evidence.proofs.append(f"a later write was based on version {highest_base}")
    for fragment in fragments:
        head = fragment.state.head
        if head.closed or log.find(head.commit_id) is not None:
            continue  # an interrupted fence or deletion, which has no commit of its own
        tail_commits = {commit.id: commit for commit in fragment.state.tail}
        for other_fragment in fragments:
            if _is_based_on(other_fragment.state, head.commit_id) and other_fragment is not fragment:
                evidence.proofs.append(f"version {other_fragment.version} is based on commit {head.commit_id}")
                evidence.proved_commits[head.commit_id] = (tail_commits[head.commit_id], fragment.state)
        if head.commit_id not in evidence.proved_commits:
            evidence.candidate_commits[head.commit_id] = (tail_commits[head.commit_id], fragment.state)
            swap_note = (
                ", even though publishing had started" if fragment.version - 1 in manifest_files.swap_bases else ""
            )
            evidence.suspicions.append(
                f"the rows for version {fragment.version} (commit {head.commit_id})"
                f" exist, but the version does not{swap_note}: a write was interrupted or is still"
                " running, or the newest version was deleted"
            )


def _is_based_on(state: GraphState, commit_id: str) -> bool:
    """Return whether a state builds on a commit. The state that the commit itself wrote does not count."""
    if state.head.commit_id == commit_id:
        return state.head.nonce is not None
    return any(commit.id == commit_id for commit in state.tail)
