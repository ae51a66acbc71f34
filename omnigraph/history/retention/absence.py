"""Prove that an entity is gone: search every file of a root, referenced or not.

Owns what counts as a trace: a value in a stored row, deleted or not, or in an index; the bytes of
the id in any other file. It reads files, not versions, and writes nothing.
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
from omnigraph.history.log import Log
from omnigraph.history.manifest import read_manifest
from omnigraph.history.schemas import read_schema
from omnigraph.history.state import State
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.naming import quote_name, require_text
from omnigraph.storage import layout
from omnigraph.storage.physical import stored_batches
from omnigraph.storage.store import Store

from .packed import pieces_of
from .roots import list_refs
from .survey import MANIFESTS, TABLES, kind_of, place_of

_SHORT = 4  # bytes; a shorter id occurs in every large binary file by chance
_ENDS = frozenset({"src", "dst"})


@dataclass(frozen=True, slots=True)
class Trace:
    """A place where an entity is left: a file, and whether as a stored value or as bytes."""

    name: str
    kind: str
    type_key: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the trace as JSON data."""
        return {"name": self.name, "kind": self.kind, "type_key": self.type_key}


@dataclass(frozen=True, slots=True, repr=False)
class Absence:
    """The traces that a search found, and how much it read; true if there is no trace."""

    type_name: str
    entity_id: str
    traces: tuple[Trace, ...]
    files: int
    bytes: int

    def __bool__(self) -> bool:
        return not self.traces

    def __repr__(self) -> str:
        found = len(self.traces) or "no"
        of = f"{self.type_name} {self.entity_id!r}"
        return f"<Absence: {found} traces of {of} in {self.files:,} files>"

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {
            "type": self.type_name,
            "id": self.entity_id,
            "absent": bool(self),
            "traces": [one.to_json() for one in self.traces],
            "files": self.files,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True)
class _Search:
    """What to search for, and in which columns of which types it would be the entity."""

    store: Store
    entity_id: str
    columns: Mapping[str, frozenset[str]]  # by type key; other types cannot hold it
    keys: Mapping[str, str]  # of directories

    @property
    def needle(self) -> bytes:
        return self.entity_id.encode()


def find_traces(
    store: Store, type_name: str, entity_id: str, also: Sequence[str | Path] = ()
) -> Absence:
    """Search for an entity in every file of a root, and in other files and folders."""
    if not entity_id:
        raise InputError("an entity has an id", reason="empty id")
    states = list(_states(store))
    columns = _columns(store, states, type_name)
    search = _Search(store, entity_id, columns, _keys(store, states))
    listed = store.objects.list("")
    traces = [one for found in listed for one in _in_object(search, found.name)]
    files, size = len(listed), sum(found.size for found in listed)
    for path in _paths(also):
        files, size = files + 1, size + path.stat().st_size
        if _in_file(path, search):
            traces.append(Trace(str(path), "bytes"))
    return Absence(type_name, entity_id, tuple(traces), files, size)


def _states(store: Store) -> Iterator[State]:
    for ref in list_refs(store):
        with suppress(GraphNotInitialized):  # deleted since the listing
            yield read_manifest(store, ref.ulid).state


def _keys(store: Store, states: Iterable[State]) -> dict[str, str]:
    """Return the types of all table directories that any log references."""
    found: dict[str, str] = {}
    for state in states:
        log = Log(store, state)
        commits = [
            *state.tail,
            *(one for chunk in state.chunks for one in log.chunk_commits(chunk)),
        ]
        entries = [entry for one in commits for entry in one.tables.values() if entry is not None]
        found |= {entry.location: entry.key for entry in (*entries, *state.tables.values())}
    return found


def _columns(store: Store, states: Iterable[State], type_name: str) -> dict[str, frozenset[str]]:
    """Return the columns that hold ids of this type: `id` of its tables, endpoints of edges."""
    require_text(type_name, "type")
    found: dict[str, frozenset[str]] = {}
    known: set[str] = set()
    for state in states:
        catalog = read_schema(store, state.schema).ir.catalog
        known |= {one.name for one in catalog.nodes} | {one.name for one in catalog.edges}
        for node in catalog.nodes:
            if node.name == type_name:
                found[f"node:{type_name}"] = frozenset({"id"})
        for edge in catalog.edges:
            ends = _ENDS if type_name in (edge.source, edge.target) else frozenset()
            own = frozenset({"id"}) if edge.name == type_name else frozenset()
            if ends or own:
                found[f"edge:{edge.name}"] = ends | own | found.get(f"edge:{edge.name}", own)
    if not found:
        message, hint = (
            f"there is no type {quote_name(type_name)} on any branch",
            did_you_mean(type_name, known),
        )
        raise InputError(message, reason="unknown type", hint=hint)
    return found


def _in_object(search: _Search, name: str) -> Iterator[Trace]:
    """Search one object of the root; yield the trace if there is one."""
    key = search.keys.get(place_of(name))
    with suppress(ValueError):
        if name.endswith(".lance") and name.startswith(TABLES):
            if _in_rows(search, name, key):
                yield Trace(name, "index" if kind_of(name) == "_indices" else "row", key)
            return
        if name.startswith(f"{layout.COMMITS}/"):
            if _in_chunk(search, name):
                yield Trace(name, "log")
            return
    body = search.store.objects.read(name) or b""
    text = name.startswith((layout.INTENTS, layout.SCHEMAS, layout.AUDIT, "_refs", layout.GC))
    if _holds(body, search.needle, binary=not text):
        # A manifest holds text only in its newest commits: messages, and who made them.
        yield Trace(name, "log" if name.startswith(MANIFESTS) else "bytes", key)


def _in_rows(search: _Search, name: str, key: str | None) -> bool:
    """Whether a value in a file of rows, or of an index, is the id.

    An index does not record the column of its values, and an unknown table not its type.
    """
    if key is not None and key not in search.columns:
        return False
    wanted = {"id", *_ENDS} if key is None else search.columns[key]
    if kind_of(name) == "_indices":
        wanted = frozenset({"values", "min", "max"})
    for batch in stored_batches(search.store, name):
        for column in wanted & set(batch.schema.names):
            values = batch.column(column)
            text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
            if text and pc.any(pc.equal(values, search.entity_id)).as_py():
                return True
    return False


def _in_chunk(search: _Search, name: str) -> bool:
    """Whether a log chunk mentions the id, for example in a message."""
    body = search.store.objects.read(name)
    if body is None:
        return False
    rows = pa.ipc.open_file(io.BytesIO(body)).read_all()
    found = pc.match_substring(rows["metadata"], search.entity_id)
    return bool(pc.any(found).as_py())


def _holds(body: bytes, needle: bytes, *, binary: bool) -> bool:
    return needle in body and not (binary and len(needle) < _SHORT)


def _in_file(path: Path, search: _Search) -> bool:
    """Whether a file outside the root contains the id, compressed or not."""
    binary = path.suffix == ".arrays"
    pieces = pieces_of(path, overlap=len(search.needle))
    return any(_holds(one, search.needle, binary=binary) for one in pieces)


def _paths(places: Sequence[str | Path]) -> Iterator[Path]:
    for place in map(Path, places):
        if place.is_file():
            yield place
        elif place.is_dir():
            yield from sorted(one for one in place.rglob("*") if one.is_file())
