"""Search every file in a root, referenced or not, to verify that an entity was erased.

This module defines what counts as a trace: the id as a value in an index or a stored row (deleted or not), or the id's
bytes in any other file. The search reads files rather than versions and writes nothing.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import GraphNotInitialized, InputError
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.manifest import read_manifest
from omnigraph.history.schemas import read_schema
from omnigraph.history.state import GraphState
from omnigraph.lang.schema.type_names import unknown_type_error
from omnigraph.storage import layout
from omnigraph.storage.file_roles import MANIFEST_ROOTS, TABLE_ROOTS, owning_directory, subdirectory_of
from omnigraph.storage.raw_files import read_raw_batches
from omnigraph.storage.store import Store
from omnigraph.values.name_rules import require_text
from omnigraph.values.table_key import TableKey

from .mark_live import list_refs
from .unpack_files import read_unpacked

_MIN_BINARY_MATCH = 4  # minimum id length in bytes; a shorter id occurs by chance in every large binary file
_ENDPOINT_COLUMNS = frozenset({"src", "dst"})


@dataclass(frozen=True, slots=True)
class ResidualTrace:
    """A trace of an entity: the file that contains it, and whether the trace is a stored value or raw bytes."""

    name: str
    kind: str
    type_key: TableKey | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the trace as JSON-compatible data."""
        return {"name": self.name, "kind": self.kind, "type_key": self.type_key}


@dataclass(frozen=True, slots=True, repr=False)
class Absence:
    """The traces that a search found, and how much data was read. The result is truthy if there are no traces."""

    type_name: str
    entity_id: str
    traces: tuple[ResidualTrace, ...]
    files: int
    bytes: int

    def __bool__(self) -> bool:
        return not self.traces

    def __repr__(self) -> str:
        trace_count = len(self.traces) or "no"
        entity_label = f"{self.type_name} {self.entity_id!r}"
        return f"<Absence: {trace_count} traces of {entity_label} in {self.files:,} files>"

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON-compatible data."""
        return {
            "type": self.type_name,
            "id": self.entity_id,
            "absent": bool(self),
            "traces": [trace.to_json() for trace in self.traces],
            "files": self.files,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True)
class _EntitySearch:
    """The id to search for, and for each type, the columns in which this id identifies the entity."""

    store: Store
    entity_id: str
    id_columns: Mapping[TableKey, frozenset[str]]  # columns by type key; other types cannot contain the id
    type_keys: Mapping[str, TableKey]  # type keys by table directory

    @property
    def id_bytes(self) -> bytes:
        return self.entity_id.encode()


def find_traces(store: Store, type_name: str, entity_id: str, other_paths: Sequence[str | Path] = ()) -> Absence:
    """Search for an entity in every file in a root, and in the files and folders in `other_paths`."""
    if not entity_id:
        raise InputError("the entity id must not be empty", reason="empty id")
    states = list(_read_states(store))
    id_columns = _find_id_columns(store, states, type_name)
    search = _EntitySearch(store, entity_id, id_columns, _map_directories_to_types(store, states))
    listed_files = store.objects.list("")
    traces = [trace for listed_file in listed_files for trace in _search_object(search, listed_file.name)]
    file_count, total_bytes = (len(listed_files), sum(listed_file.size for listed_file in listed_files))
    for other_path in _expand_paths(other_paths):
        file_count, total_bytes = file_count + 1, total_bytes + other_path.stat().st_size
        if _file_contains_id(other_path, search):
            traces.append(ResidualTrace(str(other_path), "bytes"))
    return Absence(type_name, entity_id, tuple(traces), file_count, total_bytes)


def _read_states(store: Store) -> Iterator[GraphState]:
    for ref in list_refs(store):
        with suppress(GraphNotInitialized):  # deleted after the listing
            yield read_manifest(store, ref.ulid).state


def _map_directories_to_types(store: Store, states: Iterable[GraphState]) -> dict[str, TableKey]:
    """Return the type of every table directory that a log references."""
    type_by_directory: dict[str, TableKey] = {}
    for state in states:
        log = HistoryLog(store, state)
        commits = [*state.tail, *(commit for chunk in state.chunks for commit in log.chunk_commits(chunk))]
        entries = [entry for commit in commits for entry in commit.tables.values() if entry is not None]
        type_by_directory |= {entry.location: entry.key for entry in (*entries, *state.tables.values())}
    return type_by_directory


def _find_id_columns(store: Store, states: Iterable[GraphState], type_name: str) -> dict[TableKey, frozenset[str]]:
    """Return the columns that contain ids of this type: the `id` columns in its tables, and edge endpoint columns."""
    require_text(type_name, "type")
    columns_by_type: dict[TableKey, frozenset[str]] = {}
    existing_types: set[str] = set()
    for state in states:
        catalog = read_schema(store, state.schema).ir.catalog
        existing_types |= {declared_type.name for declared_type in catalog.nodes} | {
            declared_type.name for declared_type in catalog.edges
        }
        for node in catalog.nodes:
            if node.name == type_name:
                columns_by_type[TableKey.node(type_name)] = frozenset({"id"})
        for edge in catalog.edges:
            endpoint_columns = _ENDPOINT_COLUMNS if type_name in (edge.source, edge.target) else frozenset()
            own_columns = frozenset({"id"}) if edge.name == type_name else frozenset()
            if endpoint_columns or own_columns:
                columns_by_type[TableKey.edge(edge.name)] = (
                    endpoint_columns | own_columns | columns_by_type.get(TableKey.edge(edge.name), own_columns)
                )
    if not columns_by_type:
        hint = "no branch has a type with this name"
        raise unknown_type_error(type_name, existing_types, fallback_hint=hint)
    return columns_by_type


def _search_object(search: _EntitySearch, object_name: str) -> Iterator[ResidualTrace]:
    """Search one object in the root, and yield a trace if the object contains one."""
    type_key = search.type_keys.get(owning_directory(object_name))
    with suppress(ValueError):
        if object_name.endswith(".lance") and object_name.startswith(TABLE_ROOTS):
            if _rows_contain_id(search, object_name, type_key):
                yield ResidualTrace(
                    object_name, "index" if subdirectory_of(object_name) == "_indices" else "row", type_key
                )
            return
        if object_name.startswith(f"{layout.COMMITS}/"):
            if _chunk_mentions_id(search, object_name):
                yield ResidualTrace(object_name, "log")
            return
    body = search.store.objects.read(object_name) or b""
    is_text = object_name.startswith((layout.INTENTS, layout.SCHEMAS, layout.AUDIT, "_refs", layout.GC))
    if _contains_id_bytes(body, search.id_bytes, is_binary=not is_text):
        # The only text in a manifest is the messages and authors of its newest commits.
        yield ResidualTrace(object_name, "log" if object_name.startswith(MANIFEST_ROOTS) else "bytes", type_key)


def _rows_contain_id(search: _EntitySearch, file_name: str, type_key: TableKey | None) -> bool:
    """Return whether the id occurs as a value in a data file or an index file.

    All values in an index are searched, because an index does not record its column. In a table of unknown type, all id
    and endpoint columns are searched.
    """
    if type_key is not None and type_key not in search.id_columns:
        return False
    searched_columns = {"id", *_ENDPOINT_COLUMNS} if type_key is None else search.id_columns[type_key]
    if subdirectory_of(file_name) == "_indices":
        searched_columns = frozenset({"values", "min", "max"})
    for batch in read_raw_batches(search.store, file_name):
        for column_name in searched_columns & set(batch.schema.names):
            values = batch.column(column_name)
            is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
            if is_text and pc.any(pc.equal(values, search.entity_id)).as_py():
                return True
    return False


def _chunk_mentions_id(search: _EntitySearch, chunk_name: str) -> bool:
    """Return whether a log chunk mentions the id, for example in a message."""
    body = search.store.objects.read(chunk_name)
    if body is None:
        return False
    commit_rows = pa.ipc.open_file(io.BytesIO(body)).read_all()
    matches = pc.match_substring(commit_rows["metadata"], search.entity_id)
    return bool(pc.any(matches).as_py())


def _contains_id_bytes(body: bytes, id_bytes: bytes, *, is_binary: bool) -> bool:
    return id_bytes in body and not (is_binary and len(id_bytes) < _MIN_BINARY_MATCH)


def _file_contains_id(file_path: Path, search: _EntitySearch) -> bool:
    """Return whether a file outside the root contains the id, compressed or not."""
    is_binary = file_path.suffix == ".arrays"
    pieces = read_unpacked(file_path, overlap_bytes=len(search.id_bytes))
    return any(_contains_id_bytes(piece, search.id_bytes, is_binary=is_binary) for piece in pieces)


def _expand_paths(given_paths: Sequence[str | Path]) -> Iterator[Path]:
    for given_path in map(Path, given_paths):
        if given_path.is_file():
            yield given_path
        elif given_path.is_dir():
            yield from sorted(nested_path for nested_path in given_path.rglob("*") if nested_path.is_file())
