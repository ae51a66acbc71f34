"""Consistency of a branch's log, and how far back everything can be read.

Owns the rules of a log: every commit occurs once, every parent exists, every chunk matches the
digest in its name, and the tables of the head are those of the state.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from omnigraph.errors import HistoryReclaimed, OmnigraphError
from omnigraph.history.commit import Commit, SchemaRow, TableEntry, TableMap
from omnigraph.history.log import Log, read_chunk
from omnigraph.history.schemas import Contract, read_anew
from omnigraph.history.state import Chunk, State
from omnigraph.storage.store import Store

from .finding import Finding, Kind
from .heads import RESTORE, Head
from .indexes import REBUILD
from .wholeness import Standing, Version, Wholeness

_BUILD = "run `omnigraph ensure-indices` to rebuild it"


@dataclass(slots=True)
class Past:
    """The log of a branch, as far as it could be read; `complete` when all of it could."""

    head: Head
    commits: dict[str, Commit] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    whole: bool = True

    @property
    def state(self) -> State:
        """The state that the log belongs to."""
        return self.head.opened.state


def read_past(store: Store, head: Head) -> Past:
    """Read a whole log, chunk by chunk."""
    past = Past(head)
    for chunk in past.state.chunks:
        commits = _chunk(store, chunk, past)
        _take(past, commits, chunk.name)
        if commits and len(commits) != chunk.count:
            reason = f"a chunk of the log has {len(commits)} commits, expected {chunk.count}"
            past.findings.append(_finding(past, reason, chunk.name))
    _take(past, past.state.tail, None)
    past.findings += _gaps(past)
    past.findings += _head(store, past)
    return past


def _finding(past: Past, reason: str, name: str | None = None) -> Finding:
    past.whole = False
    return Finding("log", reason, branch=past.head.label, name=name, hint=RESTORE)


def _chunk(store: Store, chunk: Chunk, past: Past) -> list[Commit]:
    try:
        return read_chunk(store, chunk)[0]  # compares it with the digest in its name
    except HistoryReclaimed:
        past.findings.append(_finding(past, "a chunk of the log is missing", chunk.name))
        return []
    except OmnigraphError as error:
        past.findings.append(_finding(past, error.message, chunk.name))
        return []


def _take(past: Past, commits: Iterable[Commit], name: str | None) -> None:
    for one in commits:
        if one.id in past.commits:
            past.findings.append(_finding(past, f"commit {one.id} is in the log twice", name))
        past.commits[one.id] = one


def _gaps(past: Past) -> Iterator[Finding]:
    """Report missing parents, unless a chunk is missing: that finding explains them."""
    if not past.whole:
        return
    for one in past.commits.values():
        for parent in one.parents:
            if parent not in past.commits:
                yield _finding(past, f"commit {one.id} has parent {parent}, which is missing")


def _head(store: Store, past: Past) -> Iterator[Finding]:
    """Check that the state shows what its newest commit says."""
    state = past.state
    if not past.whole:
        return
    if state.head.commit_id not in past.commits:
        yield _finding(past, f"the head commit {state.head.commit_id} is not in the log")
        return
    tables, schema = Log(store, state).state_of(state.head.commit_id)
    for key in sorted({*tables, *state.tables}):
        if _named(tables.get(key)) != _named(state.tables.get(key)):
            reason = f"the state and the log disagree on {key}"
            yield _finding(past, reason)
    if schema != state.schema:
        yield _finding(past, "the state and the log disagree on the schema")


def _named(entry: TableEntry | None) -> Version | None:
    return None if entry is None else (entry.location, entry.lance_version)


def check_schema(store: Store, past: Past) -> Contract | None:
    """Read the schema of the newest state; a missing or damaged one is reported."""
    row = past.state.schema
    try:
        return read_anew(store, row)
    except OmnigraphError as error:
        where = past.head.label
        told = Finding("schema", error.message, branch=where, name=row.location, hint=RESTORE)
        past.findings.append(told)
        return None


def check_versions(past: Past, whole: Wholeness) -> Iterator[Finding]:
    """Check every table version that the branch shows, and past ones that no cleanup removed."""
    branch, shown = past.head.label, past.state.tables
    for key, entry in sorted(shown.items()):
        for name, reason in whole.faults((entry.location, entry.lance_version)):
            kind: Kind = "version" if "/_versions/" in name else "file"
            yield Finding(kind, f"{reason}: {name}", "error", branch, key, None, name, RESTORE)
        for place in whole.lost_indexes((entry.location, entry.lance_version)):
            reason = f"index files are missing, rows are scanned instead: {place}"
            yield Finding("index", reason, "error", branch, key, None, place, _BUILD)
        for place in whole.damaged_indexes((entry.location, entry.lance_version)):
            reason = f"an index file is damaged, results may be wrong: {place}"
            yield Finding("index", reason, "error", branch, key, None, place, REBUILD)
    yield from _of_past(past, whole, "broken")


def check_gone(past: Past, whole: Wholeness) -> Iterator[Finding]:
    """Report every past version that looks as if a cleanup had removed it."""
    yield from _of_past(past, whole, "reclaimed")


def _of_past(past: Past, whole: Wholeness, standing: Standing) -> Iterator[Finding]:
    branch, current = past.head.label, {_named(one) for one in past.state.tables.values()}
    for version, key in sorted(_old(past).items()):
        if version not in current and whole.standing(version) == standing:
            for name, reason in whole.faults(version):
                text = f"{reason}, and the history needs it: {name}"
                yield Finding("file", text, "warning", branch, key, None, name, RESTORE)


def _old(past: Past) -> dict[Version, str]:
    entries = (entry for commit in past.commits.values() for entry in commit.tables.values())
    return {(one.location, one.lance_version): one.key for one in entries if one is not None}


def newest_readable(store: Store, past: Past, whole: Wholeness) -> str | None:
    """Return the newest first-parent commit whose tables and schema are all readable."""
    state = past.state
    if _is_whole(store, state.tables, state.schema, whole):
        return state.head.commit_id  # even if the log is damaged
    log = Log(store, state)
    try:
        for one in log.first_parents(state.head.commit_id):
            if _is_whole(store, *log.state_of(one.id), whole):
                return one.id
    except OmnigraphError:
        return None  # the log is damaged further back
    return None


def _is_whole(store: Store, tables: TableMap, schema: SchemaRow, whole: Wholeness) -> bool:
    if any(whole.faults((one.location, one.lance_version)) for one in tables.values()):
        return False
    try:
        read_anew(store, schema)
    except OmnigraphError:
        return False
    return True
