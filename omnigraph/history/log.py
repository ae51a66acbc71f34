"""The log of a branch: its newest commits inline, older ones in sealed chunks.

Owns sealing and merging of chunks, the state of any commit, ancestry and merge bases. A log is a
superset of all ancestors of its head: history is decided by reachability.
"""

import io
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import pyarrow as pa

from omnigraph import ids
from omnigraph.errors import CommitNotFound, HistoryReclaimed, StorageError
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .commit import Commit, SchemaRow, TableEntry
from .state import Chunk, State, commit_of, commit_rows

SEAL = 64  # commits in a chunk of the first level
SEAL_BYTES = 64 * 1024  # of commit rows: commits of many tables are sealed sooner
FAN = 8  # chunks of one level that are merged into one of the next
LARGEST = 4096


@dataclass(frozen=True, slots=True)
class ChunkMap:
    """All tables and the schema at the last commit of a chunk: walks may stop there."""

    commit_id: str
    tables: Mapping[str, TableEntry]
    schema: SchemaRow


class Log:
    """The commits of one state, read lazily: the tail first, then chunks, newest first."""

    def __init__(self, store: Store, state: State) -> None:
        self._store = store
        self._known = {one.id: one for one in state.tail}
        self._tail, self._chunks = state.tail, state.chunks
        self._unread = list(state.chunks)
        self._oldest = state.chunks[0] if state.chunks else None
        self._maps: dict[str, ChunkMap] = {}
        self._lock = threading.RLock()

    def find(self, commit_id: str) -> Commit | None:
        """Return the commit of an id, or None."""
        with self._lock:
            while commit_id not in self._known and self._unread:
                self._read(self._unread[-1])
                self._unread.pop()  # only now: a chunk that could not be read is tried again
            return self._known.get(commit_id)

    def get(self, commit_id: str) -> Commit:
        """Return the commit of an id; raise `CommitNotFound` for an unknown one."""
        found = self.find(commit_id)
        if found is None:
            raise CommitNotFound(f"no commit {commit_id}", commit_id=commit_id)
        return found

    def first(self) -> Commit:
        """Return the first commit of the graph, which is in the oldest piece of every log."""
        known = self._read(self._oldest) if self._oldest else list(self._known.values())
        found = next((one for one in known if not one.parents), None)
        if found is None:
            raise HistoryReclaimed("the first commit of the graph is gone")
        return found

    def newest_commits(self) -> Iterator[Commit]:
        """Yield all commits: those of the tail first, then those of chunks, read on demand.

        Within the tail and within a chunk, the order is that of the log, reversed.
        """
        yield from reversed(self._tail)
        for chunk in reversed(self._chunks):
            yield from reversed(self._read(chunk))

    def first_parents(self, commit_id: str) -> Iterator[Commit]:
        """Yield a commit, its first parent, and so on to the first commit."""
        at: str | None = commit_id
        while at is not None:
            one = self.get(at)
            yield one
            at = one.parent

    def ancestors(self, commit_id: str) -> dict[str, Commit]:
        """Return a commit and all its ancestors, by id."""
        seen: dict[str, Commit] = {}
        waiting = [commit_id]
        while waiting:
            at = waiting.pop()
            if at not in seen:
                seen[at] = self.get(at)
                waiting += seen[at].parents
        return seen

    def newest_first(self, commit_id: str) -> Iterator[Commit]:
        """Yield a commit and all its ancestors, in the order of `sort_newest_first`, on demand.

        Above the first merge only the yielded commits are read; from there on, all of them.
        """
        one = self.get(commit_id)
        while len(one.parents) == 1:
            yield one
            one = self.get(one.parents[0])
        yield from in_order(self.ancestors(one.id).values())

    def state_of(self, commit_id: str) -> tuple[dict[str, TableEntry], SchemaRow]:
        """Return the tables and the schema at any commit, from what commits say they changed."""
        tables: dict[str, TableEntry | None] = {}
        schema: SchemaRow | None = None
        for one in self.first_parents(commit_id):
            known = self._maps.get(one.id)
            changed = known.tables if known is not None else one.tables
            for key, entry in changed.items():
                tables.setdefault(key, entry)
            schema = schema or (known.schema if known is not None else one.schema)
            if known is not None:
                break
        if schema is None:
            raise HistoryReclaimed(f"the history of commit {commit_id} has no schema")
        return {key: entry for key, entry in tables.items() if entry is not None}, schema

    def streams_of(self, commit_id: str, names: Iterable[str]) -> dict[str, str]:
        """Return the last tokens of streams up to a commit, as far as commits record them.

        A token that no commit there recorded is omitted, so its batch is loaded again.
        """
        found: dict[str, str] = {}
        wanted = set(names)
        for one in self.first_parents(commit_id) if wanted else ():
            found = {**one.streams, **found}
            if wanted <= found.keys():
                break
        return found

    def chunk_map(self, chunk: Chunk) -> ChunkMap:
        """Return all tables and the schema at the end of a chunk."""
        if chunk.end not in self._maps:
            self._read(chunk)
        return self._maps[chunk.end]

    def chunk_commits(self, chunk: Chunk) -> list[Commit]:
        """Return the commits of a chunk, in log order."""
        return self._read(chunk)

    def _read(self, chunk: Chunk) -> list[Commit]:
        commits, end = read_chunk(self._store, chunk)
        for one in commits:
            self._known.setdefault(one.id, one)
        self._maps[end.commit_id] = end
        return commits


def append(store: Store, base: State, commits: Sequence[Commit]) -> State:
    """Return a state with more commits in its log; a long tail gets its oldest commits sealed.

    Everything is derived from `base_state`, which the swap replaces, at every attempt: this
    includes what another writer sealed or merged meanwhile. Caches change only after the swap.
    """
    state = replace(base, tail=(*base.tail, *commits))
    while (size := _to_seal(state.tail)) > 0:
        chunk = _seal(store, state, size)
        state = replace(state, tail=state.tail[size:], chunks=(*state.chunks, chunk))
        state = _merge_chunks(store, state)
    return state


def _to_seal(tail: Sequence[Commit]) -> int:
    """Return how many of the oldest commits to seal: never the newest, which is being published."""
    if len(tail) >= 2 * SEAL:
        return min(len(tail) - SEAL, LARGEST)
    return len(tail) // 2 if sum(map(_bulk, tail)) > SEAL_BYTES else 0


def _bulk(one: Commit) -> int:
    """Estimate how many bytes a commit takes in the state, without serializing it."""
    return 350 + 150 * len(one.tables) + len(one.message or "")


def _seal(store: Store, state: State, size: int) -> Chunk:
    sealed = state.tail[:size]
    log = Log(store, state)
    end = _anchor(state.tail, sealed)
    tables, schema = log.state_of(end)
    return write_chunk(store, sealed, ChunkMap(end, tables, schema))


def _anchor(tail: Sequence[Commit], sealed: Sequence[Commit]) -> str:
    """Return the newest sealed commit on the first-parent path of the head, where walks pass."""
    inline = {one.id: one for one in tail}
    inside = {one.id for one in sealed}
    at: str | None = tail[-1].id
    while at in inline and at not in inside:
        at = inline[at].parent
    return at if at is not None and at in inside else sealed[-1].id


def _merge_chunks(store: Store, state: State) -> State:
    """Merge runs of `MERGE_FAN_IN` chunks of one size level into one of the next."""
    for level in range(_level(LARGEST)):
        run = [one for one in state.chunks if _level(one.count) == level]
        if len(run) >= FAN:
            state = _merge(store, state, run[:FAN])
    return state


def _merge(store: Store, state: State, run: Sequence[Chunk]) -> State:
    log = Log(store, state)
    commits = [one for chunk in run for one in log.chunk_commits(chunk)]
    merged = write_chunk(store, commits, log.chunk_map(run[-1]))
    gone = {chunk.name for chunk in run}
    place = state.chunks.index(run[0])
    kept = [chunk for chunk in state.chunks if chunk.name not in gone]
    return replace(state, chunks=(*kept[:place], merged, *kept[place:]))


def _level(count: int) -> int:
    """Return the size level: below 64, 512, 4,096, and above."""
    level, limit = 0, SEAL
    while count >= limit and limit <= LARGEST:
        level, limit = level + 1, limit * FAN
    return level


def write_chunk(store: Store, commits: Sequence[Commit], end: ChunkMap) -> Chunk:
    """Seal commits in an object of their own. The name is new even if the content is not."""
    rows = commit_rows(commits)
    anchor = {
        "end": end.commit_id,
        "schema": [end.schema.hash, end.schema.location],
        "tables": {key: one.to_json() for key, one in end.tables.items()},
    }
    stamped = rows.replace_schema_metadata({"anchor": json.dumps(anchor)})
    out = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(out, stamped.schema, options=options) as writer:
        writer.write_table(stamped)
    body = out.getvalue()
    name = layout.chunk_name(_digest(body), ids.new_ulid())
    store.objects.create_bytes(name, body)
    return Chunk(name, len(commits), end.commit_id)


def read_chunk(store: Store, chunk: Chunk) -> tuple[list[Commit], ChunkMap]:
    """Return the commits of a chunk and the state at its end; `HistoryReclaimed` if it is missing.

    A chunk never changes and its name is never reused, so it is cached once read.
    """
    found: tuple[list[Commit], ChunkMap] | None = store.memory.get(chunk.name)
    if found is None:
        found = _read_chunk(store, chunk)
        store.memory.put(chunk.name, found, weight=chunk.count)
    return found


def _read_chunk(store: Store, chunk: Chunk) -> tuple[list[Commit], ChunkMap]:
    body = store.objects.read(chunk.name)
    if body is None:
        raise HistoryReclaimed(f"a chunk of the log that ends at {chunk.end} is missing")
    if not chunk.name.startswith(layout.chunk_name(_digest(body), "")):
        raise _damaged_chunk(chunk)
    try:
        return _understood(body)
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise _damaged_chunk(chunk) from error


def _damaged_chunk(chunk: Chunk) -> StorageError:
    message = f"{chunk.name}, a chunk of the log, is damaged; nothing was changed"
    hint = "restore the file from a copy"
    return StorageError(message, kind="permanent", effect="none", hint=hint)


def _digest(body: bytes) -> str:
    """Return the part of a chunk's name that proves its content."""
    return sha256(body).hexdigest()[:24]


def _understood(body: bytes) -> tuple[list[Commit], ChunkMap]:
    table = pa.ipc.open_file(io.BytesIO(body)).read_all()
    anchor = json.loads(table.schema.metadata[b"anchor"])
    tables = {key: TableEntry.from_json(key, facts) for key, facts in anchor["tables"].items()}
    end = ChunkMap(anchor["end"], tables, SchemaRow(*anchor["schema"]))
    return [commit_of(row) for row in table.to_pylist()], end


def merge_bases(ours: Mapping[str, Commit], theirs: Mapping[str, Commit]) -> tuple[str, ...]:
    """Return the best common ancestors of two ancestor sets: those not below another common one."""
    shared = ours.keys() & theirs.keys()
    below = {parent for one in shared for parent in ours[one].parents}
    return tuple(sorted(shared - _closure(ours, below)))


def _closure(known: Mapping[str, Commit], start: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        at = waiting.pop()
        if at not in seen and at in known:
            seen.add(at)
            waiting += known[at].parents
    return seen


def in_order(commits: Iterable[Commit]) -> list[Commit]:
    """Sort commits newest first: children before parents, then by publication time, then by id."""
    known = {one.id: one for one in commits}
    children = dict.fromkeys(known, 0)
    for one in known.values():
        for parent in one.parents:
            if parent in children:
                children[parent] += 1
    newest = sorted(known.values(), key=lambda one: (one.published_at, one.id), reverse=True)
    return list(_unwind(newest, children))


def _unwind(newest: Sequence[Commit], children: dict[str, int]) -> Iterator[Commit]:
    """Yield, of the commits without a remaining child, always the first one in `newest_first`."""
    import heapq

    place = {one.id: at for at, one in enumerate(newest)}
    ready = [at for at, one in enumerate(newest) if children[one.id] == 0]
    while ready:
        one = newest[heapq.heappop(ready)]
        yield one
        for parent in one.parents:
            if parent in children:
                children[parent] -= 1
                if children[parent] == 0:
                    heapq.heappush(ready, place[parent])
