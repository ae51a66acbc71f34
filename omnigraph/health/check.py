"""Integrity check of a whole graph: refs, manifests, logs, files, rules, indexes, external commits.

Reads everything that branches and tags show, and checks every file of their history. It never
writes, and it continues after each finding, so that one run reports all faults.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from omnigraph.errors import InputError, OmnigraphError, StorageError
from omnigraph.history.file_checksums import read_checksums
from omnigraph.history.retention.survey import TABLES
from omnigraph.history.schemas import Contract
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.pipeline.engine import Engine
from omnigraph.storage import layout
from omnigraph.storage.arrow import table_key
from omnigraph.storage.failures import unpanicked
from omnigraph.storage.hands import Hands, Here
from omnigraph.storage.head import unremembering
from omnigraph.storage.store import Store
from omnigraph.storage.table import open_table

from .drift import read_drift, rebased_versions, seen_versions
from .finding import Checkup, Finding
from .heads import RESTORE, Head, read_again, read_heads
from .indexes import check_indexes
from .lost_versions import check_lost_versions, find_lost_versions
from .names import check_unnamed, unnamed_heads, unnamed_manifests
from .operations import check_operations
from .past import Past, check_gone, check_schema, check_versions, newest_readable, read_past
from .rows import Judge
from .wholeness import Version, Wholeness

_ATTEMPTS = 10
LARGE = 32 << 30  # total file bytes from which verification on Spark pays for its start-up
SHOWN = 1000  # findings that are kept; the others are only counted
Progress = Callable[[str], object]


@dataclass(slots=True)
class _Run:
    """State of a running check."""

    store: Store
    quick: bool
    tell: Progress
    whole: Wholeness
    executor: Hands
    share: float
    findings: dict[object, Finding] = field(default_factory=dict)
    more: int = 0
    rows: int = 0
    commits: set[str] = field(default_factory=set)
    judged: set[tuple[object, ...]] = field(default_factory=set)
    ids: dict[tuple[str, int], pa.Array] = field(default_factory=dict)

    def add(self, found: Iterator[Finding]) -> None:
        """Add findings; findings about the same file are merged into one."""
        for one in found:
            known = self.findings.get(one.subject)
            if known is not None:
                self.findings[one.subject] = known.joined(one)
            elif len(self.findings) < SHOWN:
                self.findings[one.subject] = one
            else:
                self.more += 1

    def mark(self) -> tuple[dict[object, Finding], int]:
        """Return the findings so far, for `restore_checkpoint`."""
        return dict(self.findings), self.more

    def back_to(self, mark: tuple[dict[object, Finding], int]) -> None:
        """Discard the findings and the file listings collected since the checkpoint."""
        self.findings, self.more = dict(mark[0]), mark[1]
        self.whole.renew()


def check_graph(
    store: Store,
    *,
    quick: bool = False,
    sample: float | None = None,
    progress: Progress | None = None,
    executor: Hands | None = None,
) -> Checkup:
    """Check the whole graph; `quick` skips rows, indexes and file contents.

    `sample` is a quick check that also verifies the content of this fraction of the files. Files
    are verified by the `executor`; the default is threads of this process.
    """
    if sample is not None and not 0 < sample <= 1:
        message = f"sample is {sample}; expected a fraction above 0 and up to 1"
        raise InputError(message, reason="out of range")
    store = unremembering(store)
    quick = quick or sample is not None
    share = sample if sample is not None else float(not quick)
    whole = Wholeness(store, opened=not quick)
    run = _Run(store, quick, progress or (lambda _: None), whole, executor or Here(), share)
    early: list[Finding] = []
    heads = read_heads(store, early)
    unnamed = unnamed_manifests(store)
    lost_names = list(check_unnamed(unnamed))
    told = {one.name for one in lost_names}  # damaged ref objects whose manifest was found
    run.add(one for one in early if one.kind != "ref" or one.name not in told)
    run.add(iter(lost_names))
    run.add(check_operations(store))
    named = [past for head in heads if (past := _settled(run, head)) is not None]
    pasts = [*named, *(_past(run, read_past(store, head)) for head in unnamed_heads(unnamed))]
    run.add(_lost(run, pasts))
    run.add(check_lost_versions(find_lost_versions(store, pasts)))
    run.add(_drift(run, pasts))
    readable = {past.head.label: newest_readable(store, past, run.whole) for past in pasts}
    lost = {one.branch: None for one in early if one.branch is not None}
    read = {
        "branches": sum(past.head.ref.place == layout.REFS for past in named),
        "tags": sum(past.head.ref.place != layout.REFS for past in named),
        "commits": len(run.commits),
        "files": run.whole.looked_at,
        "verified": len(run.whole.verified),
        "unrecorded": len(run.whole.unrecorded),
        "rows": run.rows,
    }
    return Checkup(tuple(run.findings.values()), {**lost, **readable}, read, run.more)


def executor_for(store: Store, engine: Engine, spark: Any) -> Hands | None:
    """Return the executor that verifies file checksums; None means this process."""
    from omnigraph.pipeline.optimize import SparkHands
    from omnigraph.pipeline.pick import session_for

    def is_large() -> bool:
        listed = (one.size for place in TABLES for one in store.objects.list(place))
        return sum(listed) >= LARGE

    session = session_for(engine, spark, is_large)
    return SparkHands(session) if session is not None else None


def _settled(run: _Run, head: Head) -> Past | None:
    """Check one branch, and again if it moved meanwhile: a cleanup may have removed what it showed.

    Return None when the branch was deleted.
    """
    for _ in range(_ATTEMPTS):
        before = run.mark()
        past = _past(run, read_past(run.store, head))
        if run.mark() == before or not head.newest:
            return past
        now = read_again(run.store, head)
        if now is not None and now.opened.version == head.opened.version:
            return past
        run.back_to(before)
        if now is None:
            return None
        head = now
    return _past(run, read_past(run.store, head))


def _past(run: _Run, past: Past) -> Past:
    """Run all checks of one branch or tag."""
    branch = past.head.label
    run.tell(branch)
    run.commits |= past.commits.keys()
    contract = check_schema(run.store, past)
    run.add(_learn_checksums(run, past))
    run.add(iter(past.findings))
    run.add(check_versions(past, run.whole))
    if contract is not None and not run.quick:
        judge = Judge(run.store, contract, past.state.tables)
        types: list[Node | Edge] = [*contract.ir.catalog.nodes, *contract.ir.catalog.edges]
        for one in types:
            run.tell(f"{branch} {table_key(one)}")
            run.add(replace(found, branch=branch) for found in _of_type(run, judge, one))
        run.rows += judge.rows
    return past


def _learn_checksums(run: _Run, past: Past) -> Iterator[Finding]:
    """Verify the files of a branch; unreadable checksums are a finding."""
    for commit in past.commits.values():
        try:
            run.whole.learn(read_checksums(run.store, commit))
        except StorageError as error:
            yield Finding("log", error.message, branch=past.head.label, hint=error.hint)
    if run.share:
        run.tell(f"{past.head.label} files")
        run.whole.verify(run.executor, run.share)


def _of_type(run: _Run, judge: Judge, one: Node | Edge) -> Iterator[Finding]:
    """Check the rules and indexes of one table; a table that cannot be scanned is damaged."""
    key = table_key(one)
    entry = judge.tables.get(key)
    version = (entry.location, entry.lance_version) if entry is not None else None
    if version is not None and run.whole.faults(version):
        return  # already reported
    seen = _seen(judge.contract, judge, one)
    if seen in run.judged:  # another branch shows the same version
        if version in run.ids:
            judge.ids[one.name] = run.ids[version]
        return
    try:
        with unpanicked():
            yield from judge.of_type(one)
            if version is not None and not _named(run.whole, version):
                yield from check_indexes(run.store, open_table(run.store, *version), key)
        if version is not None:
            run.ids |= {version: judge.ids[one.name]} if one.name in judge.ids else {}
    except (OmnigraphError, OSError, ValueError, RuntimeError) as error:
        yield from _unreadable(run, key, version, error)
    run.judged.add(seen)


def _named(whole: Wholeness, version: Version) -> bool:
    """Return whether indexes of a table are already known to be missing or damaged."""
    return bool(whole.lost_indexes(version) or whole.damaged_indexes(version))


def _seen(contract: Contract, judge: Judge, one: Node | Edge) -> tuple[object, ...]:
    """Return what decides the result: the versions of a table and its endpoints, and the schema."""
    keys = [table_key(one)]
    keys += [f"node:{one.source}", f"node:{one.target}"] if isinstance(one, Edge) else []
    entries = (judge.tables.get(key) for key in keys)
    return (contract.source, *((e.location, e.lance_version) for e in entries if e is not None))


def _unreadable(
    run: _Run, key: str, version: tuple[str, int] | None, error: Exception
) -> Iterator[Finding]:
    if version is not None:
        run.whole.read_through(version)
        for name, reason in run.whole.faults(version):
            yield Finding("file", f"{reason}: {name}", type_key=key, name=name, hint=RESTORE)
        if run.whole.faults(version):
            return
    reason = getattr(error, "message", str(error).partition("\n")[0])
    place = version[0] if version is not None else None
    if version is not None:
        run.whole.blame(version, "its rows cannot be read")
    yield Finding("version", f"it cannot be read: {reason}", type_key=key, name=place, hint=RESTORE)


def _lost(run: _Run, pasts: list[Past]) -> Iterator[Finding]:
    """Report versions of the history that are missing although no cleanup ever removed any.

    A cleanup raises the epoch of every branch before it removes a file. The epochs are therefore
    read after the files were checked.
    """
    gone = [found for one in pasts for found in check_gone(one, run.whole)]
    if gone and not any(head.opened.state.head.gc_epoch for head in read_heads(run.store, [])):
        yield from gone


def _drift(run: _Run, pasts: list[Past]) -> Iterator[Finding]:
    """Report commits of external writers to tables; no branch shows them.

    Drift that an earlier repair reported and had to leave alone is not reported again.
    """
    taken = rebased_versions(commit for one in pasts for commit in one.commits.values())
    places = {e.location: key for one in pasts for key, e in one.state.tables.items()}
    every = ((key, read_drift(run.store, at, taken.get(at, 1))) for at, key in places.items())
    found = [
        (key, drift) for key, drift in every if drift.classification not in ("no_drift", "rebased")
    ]
    seen = seen_versions(run.store) if found else {}
    for key, drift in sorted(found, key=lambda pair: pair[1].location):
        if drift.head <= seen.get(drift.location, 0):
            continue  # reported before, or all files of the table are missing and reported as such
        reason = (
            f"another program has written to this table (version {drift.head} of its HEAD,"
            f" {drift.classification}); the graph does not show it"
        )
        hint = "run `omnigraph repair` to see what was written and what can be done"
        yield Finding("drift", reason, "warning", None, key, None, drift.location, hint)
