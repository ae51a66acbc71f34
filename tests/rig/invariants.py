"""Invariants of an idle graph, checked from outside on all its objects.

Owns one function. It reads every version of every open branch's manifest, so it is for small
graphs; it never repairs, and it proves of itself that it writes nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from omnigraph.api import opening as graphs
from omnigraph.history import recovery_records, refs
from omnigraph.history.branches import list_branches
from omnigraph.history.commit import Commit, TableEntry
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import LoadedManifest, read_manifest
from omnigraph.history.state import GraphState
from omnigraph.publish import intent, recover
from omnigraph.publish.lease import READ_OPERATION
from omnigraph.storage import layout
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.table import open_table

_ATTACHED = (1 << 64) - 1


def check_invariants(
    root: str | Path, *, acknowledged: Iterable[Commit] = (), at_rest: bool = True, drifted: bool = False
) -> None:
    """Fail with every invariant that a graph breaks.

    `acknowledged` are commits that callers were told of. `at_rest` says that no operation is under
    way or waits for recovery, `drifted` that other programs wrote to tables, too.
    """
    store = open_store(str(root))
    before = files(store)
    broken = [*_read_only(root), *_branches(store), *_acknowledged(store, acknowledged)]
    broken = [one for one in broken if not (drifted and "I4: " in one)]
    broken += _audit(store)
    if files(store) != before:
        broken.append("I11: reading wrote something")
    if at_rest:
        broken += _rest(store)
    assert not broken, "\n".join(broken)


def files(store: Store) -> dict[str, int]:
    """Every name in a root with its size, unfinished files of a local root included."""
    if not store.root.is_local:
        return {one.name: one.size for one in store.objects.list("")}
    top = Path(store.root.path)
    return {str(one.relative_to(top)): one.stat().st_size for one in top.rglob("*") if one.is_file()}


def unfinished(root: str | Path) -> list[str]:
    """The names of temporary files of a local root: ours and those of Lance."""
    names = (one.name for one in Path(root).rglob("*") if one.is_file())
    return sorted(name for name in names if "#" in name or name.startswith(".tmp"))


def _read_only(root: str | Path) -> Iterator[str]:
    graph = graphs.open(str(root), read_only=True)
    for key in graph.snapshot.tables:
        graph.snapshot.table(key).dataset.count_rows()
    graph.log()
    yield from ()


def _branches(store: Store) -> Iterator[str]:
    seen: dict[str, Commit] = {}
    for name in list_branches(store):
        versions = list(manifest_versions(store, refs.find_ref(store, name).ulid))
        yield from (f"{name}: {one}" for one in _line(store, versions, seen))
        newest = versions[-1].state
        for entry in newest.tables.values():
            yield from (f"{name}: {entry.key}: {one}" for one in _table(store, entry))


def manifest_versions(store: Store, ulid: str) -> Iterator[LoadedManifest]:
    """The newest versions of a manifest, as far back as there is no gap, oldest first."""
    place = f"{layout.manifest_directory(ulid)}/_versions/"
    names = [one.name.removeprefix(place) for one in store.objects.list(place.rstrip("/"))]
    numbers = {_ATTACHED - int(name.removesuffix(".manifest")) for name in names if _numbered(name)}
    # A swap that was held back may land far below the newest version, where nobody looks.
    first = max(numbers)
    while first - 1 in numbers:
        first -= 1
    for number in range(first, max(numbers) + 1):
        yield read_manifest(store, ulid, number)


def _numbered(name: str) -> bool:
    return name.removesuffix(".manifest").isdecimal()


def _line(store: Store, versions: list[LoadedManifest], seen: dict[str, Commit]) -> Iterator[str]:
    """I1, I2, I3, I14: what each version says of the one before, and of every commit."""
    previous: LoadedManifest | None = None
    for opened in versions:
        commits = _commits(store, opened.state)
        for commit_id, count in Counter(one.id for one in commits).items():
            if count > 1:
                yield f"I2: commit {commit_id} is {count} times in the log of {opened.version}"
        for one in commits:
            if seen.setdefault(one.id, one) != one:
                yield f"I14: commit {one.id} changed: {seen[one.id]} -> {one}"
        if previous is not None and previous.version + 1 == opened.version:
            yield from _step(previous.state, opened.state, {one.id: one for one in commits})
        previous = opened
    yield from _state_of_head(store, versions[-1].state)


def _commits(store: Store, state: GraphState) -> list[Commit]:
    log = HistoryLog(store, state)
    sealed = [one for chunk in state.chunks for one in log.chunk_commits(chunk)]
    return [*sealed, *state.tail]


def _step(before: GraphState, after: GraphState, commits: Mapping[str, Commit]) -> Iterator[str]:
    moved = before.head.commit_id != after.head.commit_id
    if not moved and (before.tables != after.tables or before.schema != after.schema):
        yield "I1: the state changed without a commit"
    if moved and commits[after.head.commit_id].parent != before.head.commit_id:
        yield f"I3: the parent of {after.head.commit_id} was not the head"


def _state_of_head(store: Store, state: GraphState) -> Iterator[str]:
    tables, schema = HistoryLog(store, state).tables_and_schema_at(state.head.commit_id)
    if tables != dict(state.tables) or schema != state.schema:
        yield "I1: the log and the state disagree about the head"


def _table(store: Store, entry: TableEntry) -> Iterator[str]:
    """I4, I6, I13: the table that the newest state names."""
    if store.open_dataset(entry.location).version != 1:
        yield "I4: its HEAD moved"
    dataset = open_table(store, entry.location, entry.lance_version).dataset
    rows = dataset.to_table(columns=["id"], with_row_id=True)
    for column in ("id", "_rowid"):
        twice = [one for one, n in Counter(rows[column].to_pylist()).items() if n > 1]
        if twice:
            yield f"I6: {column} {twice} is there twice"
    if rows.num_rows != entry.row_count:
        yield f"I13: {entry.row_count} rows are recorded, {rows.num_rows} are there"


def _acknowledged(store: Store, commits: Iterable[Commit]) -> Iterator[str]:
    logs = {
        name: HistoryLog(store, read_manifest(store, refs.find_ref(store, name).ulid).state)
        for name in list_branches(store)
    }
    for one in commits:
        log = logs.get(one.branch or layout.MAIN)
        if log is not None and log.find(one.id) != one:
            yield f"I5: acknowledged commit {one.id} is missing or changed"


def _audit(store: Store) -> Iterator[str]:
    # That it was set aside for a while is a record of its own, beside how it ended.
    ended = (one for one in recovery_records.list_recovery_records(store) if one.kind != "set_aside")
    records = Counter(one.operation_id for one in ended)
    for operation, count in records.items():
        if count > 1:
            yield f"I9: operation {operation} has {count} audit records"


def _rest(store: Store) -> Iterator[str]:
    # What Spark reads is held a while longer: nobody hears of the end of a DataFrame.
    read = {one.intent.id for one in intent.list_intents(store).pending if one.intent.operation == READ_OPERATION}
    names = (one.name for one in store.objects.list(layout.INTENTS))
    left = [one for one in names if not any(known in one for known in read)]
    if left:
        yield f"I10: intents are left: {left}"
    before = files(store)
    if recover.recover(store) or files(store) != before:
        yield "I12: recovery of a graph at rest changed something"
