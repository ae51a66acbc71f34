"""Whether the log of a branch is whole, and how far back everything can be read.

Owns what must hold for a log: every commit once, every parent there, every piece as its name says,
the tables of the head as the state names them.
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

_BUILD = "`omnigraph ensure-indices` builds it anew"


@dataclass(slots=True)
class Past:
    """The log of a branch as far as it could be read."""

    head: Head
    commits: dict[str, Commit] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    whole: bool = True

    @property
    def state(self) -> State:
        """The state whose log it is."""
        return self.head.opened.state


def read_past(store: Store, head: Head) -> Past:
    """Read a whole log, piece by piece."""
    past = Past(head)
    for chunk in past.state.chunks:
        commits = _chunk(store, chunk, past)
        _take(past, commits, chunk.name)
        if commits and len(commits) != chunk.count:
            reason = f"a piece of the log has {len(commits)} commits, not {chunk.count}"
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
        return read_chunk(store, chunk)[0]  # which compares it with the digest in its name
    except HistoryReclaimed:
        past.findings.append(_finding(past, "a piece of the log is missing", chunk.name))
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
    """Parents that are not there, told only when no piece is missing: those are named already."""
    if not past.whole:
        return
    for one in past.commits.values():
        for parent in one.parents:
            if parent not in past.commits:
                yield _finding(past, f"commit {one.id} stands on {parent}, which is not there")


def _head(store: Store, past: Past) -> Iterator[Finding]:
    """The state must show what its newest commit says."""
    state = past.state
    if not past.whole:
        return
    if state.head.commit_id not in past.commits:
        yield _finding(past, f"the head, commit {state.head.commit_id}, is not in the log")
        return
    tables, schema = Log(store, state).state_of(state.head.commit_id)
    for key in sorted({*tables, *state.tables}):
        if _named(tables.get(key)) != _named(state.tables.get(key)):
            reason = f"the state does not name {key} as the log does"
            yield _finding(past, reason)
    if schema != state.schema:
        yield _finding(past, "the state does not name the schema that the log does")


def _named(entry: TableEntry | None) -> Version | None:
    return None if entry is None else (entry.location, entry.lance_version)


def check_schema(store: Store, past: Past) -> Contract | None:
    """The schema of the newest state; a missing or damaged one is told."""
    row = past.state.schema
    try:
        return read_anew(store, row)
    except OmnigraphError as error:
        where = past.head.label
        told = Finding("schema", error.message, branch=where, name=row.location, hint=RESTORE)
        past.findings.append(told)
        return None


def check_versions(past: Past, whole: Wholeness) -> Iterator[Finding]:
    """Every table version that the branch shows, and those of its past that no cleanup took."""
    branch, shown = past.head.label, past.state.tables
    for key, entry in sorted(shown.items()):
        for name, reason in whole.faults((entry.location, entry.lance_version)):
            kind: Kind = "version" if "/_versions/" in name else "file"
            yield Finding(kind, f"{reason}: {name}", "error", branch, key, None, name, RESTORE)
        for place in whole.lost_indexes((entry.location, entry.lance_version)):
            reason = f"files of the index are missing, rows are scanned instead: {place}"
            yield Finding("index", reason, "error", branch, key, None, place, _BUILD)
        for place in whole.damaged_indexes((entry.location, entry.lance_version)):
            reason = f"a file of the index is damaged, answers may be wrong: {place}"
            yield Finding("index", reason, "error", branch, key, None, place, REBUILD)
    yield from _of_past(past, whole, "broken")


def check_gone(past: Past, whole: Wholeness) -> Iterator[Finding]:
    """Every version of the past that is gone as if a cleanup had taken it."""
    yield from _of_past(past, whole, "reclaimed")


def _of_past(past: Past, whole: Wholeness, standing: Standing) -> Iterator[Finding]:
    branch, current = past.head.label, {_named(one) for one in past.state.tables.values()}
    for version, key in sorted(_old(past).items()):
        if version not in current and whole.standing(version) == standing:
            for name, reason in whole.faults(version):
                text = f"{reason}, and the past needs it: {name}"
                yield Finding("file", text, "warning", branch, key, None, name, RESTORE)


def _old(past: Past) -> dict[Version, str]:
    entries = (entry for one in past.commits.values() for entry in one.tables.values())
    return {(one.location, one.lance_version): one.key for one in entries if one is not None}


def newest_readable(store: Store, past: Past, whole: Wholeness) -> str | None:
    """The newest commit on the line of a branch of which every table and the schema are whole."""
    state = past.state
    if _is_whole(store, state.tables, state.schema, whole):
        return state.head.commit_id  # whatever the log says
    log = Log(store, state)
    try:
        for one in log.first_parents(state.head.commit_id):
            if _is_whole(store, *log.state_of(one.id), whole):
                return one.id
    except OmnigraphError:
        return None  # the log is not whole further back
    return None


def _is_whole(store: Store, tables: TableMap, schema: SchemaRow, whole: Wholeness) -> bool:
    if any(whole.faults((one.location, one.lance_version)) for one in tables.values()):
        return False
    try:
        read_anew(store, schema)
    except OmnigraphError:
        return False
    return True
