"""A branch's log, with its newest commits inline and older ones in sealed chunks.

This module seals and merges chunks, and computes ancestry, merge bases and the state at any commit. A log may contain
more than the ancestors of its head, so a commit belongs to the history only if it is reachable from the head.
"""

import io
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from omnigraph.errors import CommitNotFound, HistoryReclaimed, StorageError
from omnigraph.records.frozen import record
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey

from .commit import Commit, SchemaRow, TableEntry
from .state import GraphState, LogChunk, commit_rows, parse_commit_row

CHUNK_COMMITS = 64  # number of commits in a first-level chunk
# Maximum total size of inline commit rows in bytes; commits that change many tables are sealed sooner.
MAX_TAIL_BYTES = 64 * 1024
MERGE_FAN_IN = 8  # number of chunks on one level that are merged into one chunk on the next level
MAX_CHUNK_COMMITS = 4096
_TABLES_PER_WEIGHT = 4  # four table entries take as much cache space as one commit
Part = TypeVar("Part")


@record
class ChunkEndState:
    """The tables and the schema at a chunk's last commit, so that a walk through the history can stop there."""

    commit_id: str
    tables: Mapping[TableKey, TableEntry]
    schema: SchemaRow


class HistoryLog:
    """The commits in a state's log, read lazily: first the tail, then the chunks from newest to oldest."""

    def __init__(self, store: Store, state: GraphState) -> None:
        self._store = store
        self._commits_by_id = {commit.id: commit for commit in state.tail}
        self._tail, self._chunks = state.tail, state.chunks
        self._unread_chunks = list(state.chunks)
        self._oldest_chunk = state.chunks[0] if state.chunks else None
        self._end_states: dict[str, ChunkEndState] = {}
        self._lock = threading.RLock()

    def find(self, commit_id: str) -> Commit | None:
        """Return the commit with the given id, or None if there is none."""
        with self._lock:
            while commit_id not in self._commits_by_id and self._unread_chunks:
                self._load_chunk(self._unread_chunks[-1])
                self._unread_chunks.pop()  # recorded only after a successful read, so that a failed chunk is read again
            return self._commits_by_id.get(commit_id)

    def get(self, commit_id: str) -> Commit:
        """Return the commit with the given id; raise `CommitNotFound` if the id is unknown."""
        commit = self.find(commit_id)
        if commit is None:
            raise CommitNotFound(f"commit {commit_id} not found", commit_id=commit_id)
        return commit

    def first_commit(self) -> Commit:
        """Return the graph's first commit, which is in the oldest part of every log."""
        if self._oldest_chunk is not None:
            first_commit = read_first_commit(self._store, self._oldest_chunk)
        else:
            first_commit = _find_first_commit(self._tail)
        if first_commit is None:
            raise HistoryReclaimed("the graph's first commit is missing")
        return first_commit

    def iter_all_commits(self, *, cache_chunks: bool = True) -> Iterator[Commit]:
        """Yield all commits: first those in the tail, then those in the chunks, which are read on demand.

        Within the tail and within each chunk, commits are yielded in reverse log order. Pass `cache_chunks=False` for a
        search that will not be repeated, so that its chunks do not occupy memory.
        """
        yield from reversed(self._tail)
        for chunk in reversed(self._chunks):
            yield from reversed(self._load_chunk(chunk) if cache_chunks else _peek_chunk(self._store, chunk)[0])

    def first_parents(self, commit_id: str) -> Iterator[Commit]:
        """Yield a commit, its first parent, and so on back to the first commit."""
        next_id: str | None = commit_id
        while next_id is not None:
            commit = self.get(next_id)
            yield commit
            next_id = commit.parent

    def ancestors(self, commit_id: str) -> dict[str, Commit]:
        """Return a commit and all its ancestors, by id."""
        ancestors: dict[str, Commit] = {}
        pending_ids = [commit_id]
        while pending_ids:
            ancestor_id = pending_ids.pop()
            if ancestor_id not in ancestors:
                ancestors[ancestor_id] = self.get(ancestor_id)
                pending_ids += ancestors[ancestor_id].parents
        return ancestors

    def iter_ancestors(self, commit_id: str) -> Iterator[Commit]:
        """Yield a commit and all its ancestors, in the order of `sort_newest_first`.

        Commits are read one by one up to the first merge commit. All remaining commits are read at once.
        """
        commit = self.get(commit_id)
        while len(commit.parents) == 1:
            yield commit
            commit = self.get(commit.parents[0])
        yield from sort_newest_first(self.ancestors(commit.id).values())

    def tables_and_schema_at(self, commit_id: str) -> tuple[dict[TableKey, TableEntry], SchemaRow]:
        """Return the tables and the schema at any commit, derived from the changes that commits record."""
        tables: dict[TableKey, TableEntry | None] = {}
        schema: SchemaRow | None = None
        next_id: str | None = commit_id
        while next_id is not None:
            source = self._end_state_at(next_id) or self.get(next_id)
            for table_key, entry in source.tables.items():
                tables.setdefault(table_key, entry)
            schema = schema or source.schema
            next_id = source.parent if isinstance(source, Commit) else None
        if schema is None:
            raise HistoryReclaimed(f"the history before commit {commit_id} contains no schema")
        return {table_key: entry for table_key, entry in tables.items() if entry is not None}, schema

    def stream_tokens_at(self, commit_id: str, stream_names: Iterable[str]) -> dict[str, str]:
        """Return the last token that was recorded for each stream up to a commit.

        A stream without a recorded token is omitted, so its batch is loaded again.
        """
        stream_tokens: dict[str, str] = {}
        requested_streams = set(stream_names)
        for commit in self.first_parents(commit_id) if requested_streams else ():
            stream_tokens = {**commit.streams, **stream_tokens}
            if requested_streams <= stream_tokens.keys():
                break
        return stream_tokens

    def _end_state_at(self, commit_id: str) -> ChunkEndState | None:
        """Return all tables and the schema at a commit, or None if no chunk ends at that commit."""
        if commit_id not in self._end_states:
            chunk = next((chunk for chunk in reversed(self._chunks) if chunk.last_commit_id == commit_id), None)
            if chunk is None:
                return None
            self._end_states[commit_id] = read_end_state(self._store, chunk)
        return self._end_states[commit_id]

    def chunk_commits(self, chunk: LogChunk) -> list[Commit]:
        """Return the commits in a chunk, in log order."""
        return self._load_chunk(chunk)

    def _load_chunk(self, chunk: LogChunk) -> list[Commit]:
        commits, end_state = read_chunk(self._store, chunk)
        for commit in commits:
            self._commits_by_id.setdefault(commit.id, commit)
        self._end_states[end_state.commit_id] = end_state
        return commits


def append_commits(store: Store, base_state: GraphState, commits: Sequence[Commit]) -> GraphState:
    """Append commits to a state's log and return the new state. If the tail is long, its oldest commits are sealed.

    Every attempt starts again from `base_state`, the state that the swap replaces. This state includes everything that
    other writers have sealed or merged in the meantime. Caches change only after the swap.
    """
    state = replace(base_state, tail=(*base_state.tail, *commits))
    while (seal_count := _count_to_seal(state.tail)) > 0:
        chunk = _seal_oldest(store, state, seal_count)
        state = replace(state, tail=state.tail[seal_count:], chunks=(*state.chunks, chunk))
        state = _merge_chunks(store, state)
    return state


def _count_to_seal(tail: Sequence[Commit]) -> int:
    """Return how many of the oldest commits to seal. The newest one, which is being published, is never sealed."""
    if len(tail) >= 2 * CHUNK_COMMITS:
        return min(len(tail) - CHUNK_COMMITS, MAX_CHUNK_COMMITS)
    return len(tail) // 2 if sum(map(_estimate_bytes, tail)) > MAX_TAIL_BYTES else 0


def _estimate_bytes(commit: Commit) -> int:
    """Estimate how many bytes a commit takes in the state, without serializing it."""
    return 350 + 150 * len(commit.tables) + len(commit.message or "")


def _seal_oldest(store: Store, state: GraphState, seal_count: int) -> LogChunk:
    sealed_commits = state.tail[:seal_count]
    history_log = HistoryLog(store, state)
    anchor_id = _find_anchor(state.tail, sealed_commits)
    tables, schema = history_log.tables_and_schema_at(anchor_id)
    return write_chunk(store, sealed_commits, ChunkEndState(anchor_id, tables, schema))


def _find_anchor(tail: Sequence[Commit], sealed_commits: Sequence[Commit]) -> str:
    """Return the newest sealed commit on the head's first-parent path.

    Every first-parent walk from the head passes through it.
    """
    tail_commits = {commit.id: commit for commit in tail}
    sealed_ids = {commit.id for commit in sealed_commits}
    commit_id: str | None = tail[-1].id
    while commit_id in tail_commits and commit_id not in sealed_ids:
        commit_id = tail_commits[commit_id].parent
    return commit_id if commit_id is not None and commit_id in sealed_ids else sealed_commits[-1].id


def _merge_chunks(store: Store, state: GraphState) -> GraphState:
    """Merge each run of `MERGE_FAN_IN` chunks on the same size level into one chunk on the next level."""
    for size_level in range(_size_level(MAX_CHUNK_COMMITS)):
        chunk_run = [chunk for chunk in state.chunks if _size_level(chunk.commit_count) == size_level]
        if len(chunk_run) >= MERGE_FAN_IN:
            state = _merge_run(store, state, chunk_run[:MERGE_FAN_IN])
    return state


def _merge_run(store: Store, state: GraphState, chunk_run: Sequence[LogChunk]) -> GraphState:
    # The merged chunks are not cached, because the new state no longer refers to them.
    contents = [_peek_chunk(store, chunk) for chunk in chunk_run]
    commits = [commit for chunk_commits, _ in contents for commit in chunk_commits]
    merged_chunk = write_chunk(store, commits, contents[-1][1])
    replaced_names = {chunk.name for chunk in chunk_run}
    insert_index = state.chunks.index(chunk_run[0])
    remaining_chunks = [chunk for chunk in state.chunks if chunk.name not in replaced_names]
    return replace(state, chunks=(*remaining_chunks[:insert_index], merged_chunk, *remaining_chunks[insert_index:]))


def _size_level(commit_count: int) -> int:
    """Return a chunk's size level. Levels start at 0, 64, 512 and 4,096 commits."""
    level, level_limit = 0, CHUNK_COMMITS
    while commit_count >= level_limit and level_limit <= MAX_CHUNK_COMMITS:
        level, level_limit = level + 1, level_limit * MERGE_FAN_IN
    return level


def write_chunk(store: Store, commits: Sequence[Commit], end_state: ChunkEndState) -> LogChunk:
    """Seal commits in a separate object, which always gets a new name, even if an older object is identical."""
    import pyarrow as pa

    commit_table = commit_rows(commits)
    anchor_facts = {
        "end": end_state.commit_id,
        "schema": [end_state.schema.hash, end_state.schema.location],
        "tables": {table_key: entry.to_json() for table_key, entry in end_state.tables.items()},
    }
    stamped_table = commit_table.replace_schema_metadata({"anchor": json.dumps(anchor_facts)})
    buffer = io.BytesIO()
    write_options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(buffer, stamped_table.schema, options=write_options) as writer:
        writer.write_table(stamped_table)
    body = buffer.getvalue()
    object_name = layout.chunk_name(_chunk_digest(body), clock_and_ids.new_ulid())
    store.objects.create_bytes(object_name, body)
    return LogChunk(object_name, len(commits), end_state.commit_id)


def read_chunk(store: Store, chunk: LogChunk) -> tuple[list[Commit], ChunkEndState]:
    """Return a chunk's commits and the state at its end; raise `HistoryReclaimed` if the chunk is missing.

    A chunk never changes and its name is never reused, so it is cached after the first read.
    """
    cached_chunk: tuple[list[Commit], ChunkEndState] | None = store.object_cache.get(chunk.name)
    if cached_chunk is None:
        cached_chunk = _read_chunk_object(store, chunk)
        store.object_cache.put(chunk.name, cached_chunk, weight=chunk.commit_count)
    return cached_chunk


def _peek_chunk(store: Store, chunk: LogChunk) -> tuple[list[Commit], ChunkEndState]:
    """Return the content of a chunk in the form that `read_chunk` returns, without adding it to the cache."""
    cached_chunk: tuple[list[Commit], ChunkEndState] | None = store.object_cache.get(chunk.name)
    return _read_chunk_object(store, chunk) if cached_chunk is None else cached_chunk


def read_end_state(store: Store, chunk: LogChunk) -> ChunkEndState:
    """Return the state at a chunk's end, which a writer needs each time it seals a chunk."""
    return _read_part(store, chunk, "end", lambda _, end_state: end_state)


def read_first_commit(store: Store, chunk: LogChunk) -> Commit | None:
    """Return the graph's first commit, which every change feed needs. It is in the oldest chunk."""
    return _read_part(store, chunk, "first", lambda commits, _: _find_first_commit(commits))


def _find_first_commit(commits: Iterable[Commit]) -> Commit | None:
    return next((commit for commit in commits if not commit.parents), None)


def _read_part(
    store: Store, chunk: LogChunk, part_name: str, select_part: Callable[[list[Commit], ChunkEndState], Part]
) -> Part:
    """Return part of a chunk and cache only that part, because the other commits would fill the cache needlessly."""
    cached_chunk: tuple[list[Commit], ChunkEndState] | None = store.object_cache.get(chunk.name)
    if cached_chunk is not None:
        return select_part(*cached_chunk)
    cache_key = f"{part_name} of {chunk.name}"
    part: Part | None = store.object_cache.get(cache_key)
    if part is None:
        commits, end_state = _read_chunk_object(store, chunk)
        part = select_part(commits, end_state)
        store.object_cache.put(cache_key, part, weight=1 + len(end_state.tables) // _TABLES_PER_WEIGHT)
    return part


def _read_chunk_object(store: Store, chunk: LogChunk) -> tuple[list[Commit], ChunkEndState]:
    body = store.objects.read(chunk.name)
    if body is None:
        raise HistoryReclaimed(f"the log chunk that ends at commit {chunk.last_commit_id} is missing")
    if not chunk.name.startswith(layout.chunk_name(_chunk_digest(body), "")):
        raise _damaged_chunk_error(chunk)
    try:
        return _parse_chunk(body)
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise _damaged_chunk_error(chunk) from error


def _damaged_chunk_error(chunk: LogChunk) -> StorageError:
    message = f"log chunk {chunk.name} is damaged; nothing was changed"
    hint = "restore the file from a backup"
    return StorageError(message, kind="permanent", effect="none", hint=hint)


def _chunk_digest(body: bytes) -> str:
    """Return the content hash that is part of a chunk's name and is used to verify the chunk."""
    from hashlib import sha256  # imported lazily, because it loads OpenSSL

    return sha256(body).hexdigest()[:24]


def _parse_chunk(body: bytes) -> tuple[list[Commit], ChunkEndState]:
    import pyarrow as pa

    commit_table = pa.ipc.open_file(io.BytesIO(body)).read_all()
    anchor_facts = json.loads(commit_table.schema.metadata[b"anchor"])
    tables = {
        TableKey(table_key): TableEntry.from_json(table_key, packed_entry)
        for table_key, packed_entry in anchor_facts["tables"].items()
    }
    end_state = ChunkEndState(anchor_facts["end"], tables, SchemaRow(*anchor_facts["schema"]))
    return [parse_commit_row(row) for row in commit_table.to_pylist()], end_state


def sort_newest_first(commits: Iterable[Commit]) -> list[Commit]:
    """Sort commits newest first by publication time, then by id, but never place a parent before its children."""
    commits_by_id = {commit.id: commit for commit in commits}
    child_counts = dict.fromkeys(commits_by_id, 0)
    for commit in commits_by_id.values():
        for parent in commit.parents:
            if parent in child_counts:
                child_counts[parent] += 1
    newest_first = sorted(commits_by_id.values(), key=lambda commit: (commit.published_at, commit.id), reverse=True)
    return list(_iter_children_first(newest_first, child_counts))


def _iter_children_first(newest_first: Sequence[Commit], child_counts: dict[str, int]) -> Iterator[Commit]:
    """Yield commits in `newest_first` order, each one as soon as all of its children have been yielded."""
    import heapq

    index_by_id = {commit.id: index for index, commit in enumerate(newest_first)}
    ready_indexes = [index for index, commit in enumerate(newest_first) if child_counts[commit.id] == 0]
    while ready_indexes:
        commit = newest_first[heapq.heappop(ready_indexes)]
        yield commit
        for parent in commit.parents:
            if parent in child_counts:
                child_counts[parent] -= 1
                if child_counts[parent] == 0:
                    heapq.heappush(ready_indexes, index_by_id[parent])
