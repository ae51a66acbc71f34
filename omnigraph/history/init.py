"""A new graph: claim the root, create the tables, store the schema, write the first manifest.

The first manifest version is the commit point. An init interrupted before it leaves a claim and
garbage that the next init ignores; after it the graph exists, and nothing is rolled back.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph import ids
from omnigraph.errors import (
    AlreadyExists,
    InitializationClaimed,
    InitializationCommitted,
    InitializationIndeterminate,
    InputError,
    OmnigraphError,
    StorageError,
)
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.storage import arrow, layout
from omnigraph.storage.cell import UnsyncedError
from omnigraph.storage.failures import reported, storage_failure
from omnigraph.storage.objects import sync_directory
from omnigraph.storage.probe import probe_create_if_absent
from omnigraph.storage.store import Store
from omnigraph.storage.table import create_table

from . import refs
from .commit import Commit, SchemaRow, TableEntry
from .file_checksums import record_checksums
from .line import Line, line_of, lines_at
from .manifest import Opened, create_manifest, manifest_exists, read_manifest, secure
from .schemas import Contract, write_schema
from .state import Head, State

if TYPE_CHECKING:
    from omnigraph.storage.checksums import FileChecksum

PROBED = "this store was probed: of several creators of one name exactly one wins"


def init_graph(
    store: Store, contract: Contract, *, force: bool = False, actor: str | None = None
) -> Line:
    """Create a graph at an empty root. `force` takes over the claim of an interrupted init."""
    _check_directories(contract.ir)
    if manifest_exists(store):
        raise AlreadyExists(f"a graph already exists at {store.root.uri}")
    missing = _missing_directories(store)
    probe_create_if_absent(store)
    _claim(store, force)
    with _released_on_refusal(store):
        _check_leftovers(store)
    commit_id = ids.new_ulid()
    with reported("none"):
        _sync_place(store, missing)
        tables, files = _create_tables(store, contract.ir, commit_id)
        schema = write_schema(store, contract)
    known = lines_at(store)
    opened = _create_first(store, _genesis(commit_id, tables, schema, actor, files))
    for one in known:  # only now: an init that loses must not invalidate the winner's branches
        one.ended = True
    line = line_of(store, layout.MAIN, layout.MAIN)
    line.advance(opened)
    try:
        store.objects.remove(layout.CLAIM)
        line.refresh()
    except Exception as error:
        reason = "it could not be read back, or the claim could not be removed"
        raise InitializationCommitted(uri=store.root.uri, reason=reason) from error
    return line


def _missing_directories(store: Store) -> list[Path]:
    """Return the directories that will be created on the path to a local root."""
    path = Path(store.root.path)
    return [one for one in (path, *path.parents) if not one.exists()] if store.root.local else []


def _sync_place(store: Store, made: list[Path]) -> None:
    """Sync the name of the root, and the directories created above it, against a power loss."""
    if not store.root.local or store.durability != "fsync":
        return
    for one in made:
        sync_directory(one.parent)
    with suppress(PermissionError):  # the parent may be unlistable on purpose
        sync_directory(Path(store.root.path).parent)


def _check_directories(ir: SchemaIR) -> None:
    """Refuse two types of one kind whose names have equal hashes: directories would look alike."""
    seen: dict[tuple[str, str], str] = {}
    for one in _types(ir):
        other = seen.setdefault((one.kind, layout.fnv1a64(one.name)), one.name)
        if other != one.name:
            message = f"the names of {one.kind} types '{other}' and '{one.name}' have equal hashes"
            raise InputError(message, reason="hash collision", hint="rename one of the two")


def _claim(store: Store, force: bool) -> None:
    if force:
        store.objects.remove(layout.CLAIM)
    if not store.objects.create_json(layout.CLAIM, {"claimed_at": ids.now_micros()}):
        raise InitializationClaimed(uri=store.root.uri)


@contextmanager
def _released_on_refusal(store: Store) -> Iterator[None]:
    """Release the claim if the block raises: nothing was written after it yet."""
    try:
        yield
    except OmnigraphError:
        with suppress(StorageError):
            store.objects.remove(layout.CLAIM)
        raise


def _check_leftovers(store: Store) -> None:
    """Refuse branch names without a main manifest: they remain of an interrupted copy."""
    if refs.list_numbers(store):
        raise AlreadyExists(
            f"{store.root.uri} holds part of a graph, perhaps of an interrupted copy",
            hint="remove it, or choose another location",
        )


def _types(ir: SchemaIR) -> list[Node | Edge]:
    return [*ir.catalog.nodes, *ir.catalog.edges]


def _create_tables(
    store: Store, ir: SchemaIR, commit_id: str
) -> tuple[dict[str, TableEntry], Mapping[str, Any]]:
    """Create the empty tables of a schema; return them and their packed file checksums."""
    made: dict[str, TableEntry] = {}
    files: dict[str, FileChecksum] = {}
    for one in _types(ir):
        key = arrow.table_key(one)
        location = layout.table_directory(key, ids.new_ulid())
        table = create_table(store, location, arrow.table_schema(ir, one))
        made[key] = TableEntry(
            key, location, 1, table.version, commit_id, 0, None, table.highest_field_id
        )
        files |= table.new_files
    return made, record_checksums(store, made, files)


def _create_first(store: Store, state: State) -> Opened:
    """Create the first manifest, the commit point; if the outcome is unclear, ask the store."""
    try:
        return create_manifest(store, layout.MAIN, state)
    except UnsyncedError as error:
        raise InitializationIndeterminate(uri=store.root.uri, reason=error.message) from error
    except Exception as error:
        return _look(store, state, error)


def _look(store: Store, state: State, error: Exception) -> Opened:
    try:
        found = read_manifest(store) if manifest_exists(store) else None
        if found is not None:
            secure(found)
    except (OmnigraphError, OSError) as unclear:
        reason = "the store did not answer when the outcome was checked"
        raise InitializationIndeterminate(uri=store.root.uri, reason=reason) from unclear
    if found is None:
        raise _not_there(store, error) from error
    if found.state.head != state.head:
        raise AlreadyExists(f"another init created the graph at {store.root.uri}") from error
    return found


def _not_there(store: Store, error: Exception) -> OmnigraphError:
    """Return the error for a missing manifest: on a local disk it cannot appear later, else it can.

    The claim can be released: a first manifest that arrives late and one of another init exclude
    each other.
    """
    with suppress(StorageError):
        store.objects.remove(layout.CLAIM)
    if store.root.local:
        return storage_failure(error, effect="none")
    reason = "the store did not answer, and the first manifest may still arrive"
    return InitializationIndeterminate(uri=store.root.uri, reason=reason)


def _genesis(
    commit_id: str,
    tables: dict[str, TableEntry],
    schema: SchemaRow,
    actor: str | None,
    files: Mapping[str, Any],
) -> State:
    now = ids.now_micros()
    first = Commit(
        id=commit_id,
        parents=(),
        operation="init",
        branch=layout.MAIN,
        manifest_version=1,
        created_at=now,
        published_at=now,
        actor=actor,
        message="created",
        note=PROBED,
        schema=schema,
        tables=tables,
        files=files,
    )
    return State(Head(commit_id, layout.MAIN), schema, tables, (first,))
