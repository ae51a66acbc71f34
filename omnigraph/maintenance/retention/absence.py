"""Search every file in a root, referenced or not, to verify that an entity was erased.

This module defines what counts as a trace: the id as a value in an index or a stored row (deleted or not), or the id's
bytes in any other file. The search reads files rather than versions and writes nothing.
"""

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

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

from .absence_report import Absence, ResidualTrace
from .local_traces import Paths, contains_id_bytes, find_local_traces
from .mark_live import list_refs

_ENDPOINT_COLUMNS = frozenset({"src", "dst"})


@dataclass(frozen=True, slots=True)
class _EntitySearch:
    """The id to search for, and the columns of each type in which this id identifies the entity."""

    store: Store
    entity_id: str
    id_columns: Mapping[TableKey, frozenset[str]]  # columns by type key; other types cannot contain the id
    type_keys: Mapping[str, TableKey]  # type keys by table directory

    @property
    def id_bytes(self) -> bytes:
        return self.entity_id.encode()


def find_traces(store: Store, type_name: str, entity_id: str, other_paths: Paths = ()) -> Absence:
    """Search for an entity in every file in a root, and in the files and folders in `other_paths`."""
    if not entity_id:
        raise InputError("the entity id must not be empty", reason="empty id")
    states = list(_read_states(store))
    id_columns = _find_id_columns(store, states, type_name)
    search = _EntitySearch(store, entity_id, id_columns, _map_directories_to_types(store, states))
    listed_files = store.objects.list("")
    traces = [trace for listed_file in listed_files for trace in _search_object(search, listed_file.name)]
    file_count, total_bytes = (len(listed_files), sum(listed_file.size for listed_file in listed_files))
    other_traces, other_files, other_bytes = find_local_traces(entity_id, other_paths)
    return Absence(type_name, entity_id, (*traces, *other_traces), file_count + other_files, total_bytes + other_bytes)


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
    if contains_id_bytes(body, search.id_bytes, is_binary=not is_text):
        # The only text in a manifest is the messages and authors of its newest commits.
        yield ResidualTrace(object_name, "log" if object_name.startswith(MANIFEST_ROOTS) else "bytes", type_key)


def _rows_contain_id(search: _EntitySearch, file_name: str, type_key: TableKey | None) -> bool:
    """Return whether the id occurs as a value in a data file or an index file.

    All values in an index are searched, because an index does not record which column it covers. In a table of unknown
    type, all id and endpoint columns are searched.
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
