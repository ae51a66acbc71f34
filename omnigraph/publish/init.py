"""Create a graph: claim the root, create the tables, store the schema, and write the first manifest.

The first manifest version is the commit point. An init that is interrupted before that point leaves behind a claim and
garbage, which the next init ignores. Once the first manifest is written, the graph exists and nothing is rolled back.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import (
    AlreadyExists,
    InitializationClaimed,
    InitializationCommitted,
    InitializationIndeterminate,
    InputError,
    OmnigraphError,
    StorageError,
)
from omnigraph.history import refs
from omnigraph.history.branch_state import BranchState, branch_state_of, branch_states_at
from omnigraph.history.commit import Commit, SchemaRow, TableEntry
from omnigraph.history.file_checksums import record_checksums
from omnigraph.history.manifest import LoadedManifest, create_manifest, manifest_exists, read_manifest, sync_manifest
from omnigraph.history.schemas import StoredSchema, write_schema
from omnigraph.history.state import BranchHead, GraphState
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.storage import arrow, layout
from omnigraph.storage.failures import as_storage_errors, to_storage_error
from omnigraph.storage.local_objects import sync_directory
from omnigraph.storage.manifest_cell import UnsyncedError
from omnigraph.storage.store import Store
from omnigraph.storage.store_probe import probe_create_if_absent
from omnigraph.storage.table import create_table
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey

if TYPE_CHECKING:
    from omnigraph.storage.checksums import FileChecksum

PROBE_NOTE = "verified that this store refuses to overwrite existing objects"


def init_graph(store: Store, contract: StoredSchema, *, force: bool = False, actor: str | None = None) -> BranchState:
    """Create a graph at an empty root. `force` takes over an interrupted init's claim."""
    _check_hash_collisions(contract.ir)
    if manifest_exists(store):
        raise AlreadyExists(f"a graph already exists at {store.root.uri}")
    missing_directories = _missing_directories(store)
    probe_create_if_absent(store)
    _claim_root(store, force)
    with _release_claim_on_error(store):
        _check_no_leftovers(store)
    commit_id = clock_and_ids.new_ulid()
    with as_storage_errors("none"):
        _sync_root_path(store, missing_directories)
        tables, packed_checksums = _create_tables(store, contract.ir, commit_id)
        schema = write_schema(store, contract)
    stale_branches = branch_states_at(store)
    first_manifest = _create_first_manifest(store, _genesis_state(commit_id, tables, schema, actor, packed_checksums))
    for stale_branch in stale_branches:  # not earlier, because a losing init must not invalidate the winner's branches
        stale_branch.is_replaced = True
    main_branch = branch_state_of(store, layout.MAIN, layout.MAIN)
    main_branch.advance(first_manifest)
    try:
        store.objects.remove(layout.CLAIM)
        main_branch.refresh()
    except Exception as error:
        reason = "the graph could not be read back, or the claim could not be removed"
        raise InitializationCommitted(uri=store.root.uri, reason=reason) from error
    return main_branch


def _missing_directories(store: Store) -> list[Path]:
    """Return the directories that must be created on the path to a local root."""
    root_path = Path(store.root.path)
    return (
        [directory for directory in (root_path, *root_path.parents) if not directory.exists()]
        if store.root.is_local
        else []
    )


def _sync_root_path(store: Store, created_directories: list[Path]) -> None:
    """Sync the root's directory entry and any directories created above it, so that they survive a power loss."""
    if not store.root.is_local or store.durability != "fsync":
        return
    for directory in created_directories:
        sync_directory(directory.parent)
    with suppress(PermissionError):  # the parent directory may be deliberately unreadable
        sync_directory(Path(store.root.path).parent)


def _check_hash_collisions(ir: SchemaIR) -> None:
    """Raise an error if the names of two types of the same kind have equal hashes.

    Such types would share a directory.
    """
    names_by_hash: dict[tuple[str, str], str] = {}
    for graph_type in _list_types(ir):
        other_name = names_by_hash.setdefault((graph_type.kind, layout.fnv1a64(graph_type.name)), graph_type.name)
        if other_name != graph_type.name:
            message = f"the {graph_type.kind} type names '{other_name}' and '{graph_type.name}' have the same hash"
            raise InputError(message, reason="hash collision", hint="rename one of the types")


def _claim_root(store: Store, force: bool) -> None:
    if force:
        store.objects.remove(layout.CLAIM)
    if not store.objects.create_json(layout.CLAIM, {"claimed_at": clock_and_ids.now_micros()}):
        raise InitializationClaimed(uri=store.root.uri)


@contextmanager
def _release_claim_on_error(store: Store) -> Iterator[None]:
    """Release the claim if the block raises an exception. Nothing else has been written yet, so this is safe."""
    try:
        yield
    except OmnigraphError:
        with suppress(StorageError):
            store.objects.remove(layout.CLAIM)
        raise


def _check_no_leftovers(store: Store) -> None:
    """Raise an error if a root has branch names but no main manifest. An interrupted copy can leave such a root."""
    if refs.list_highest_numbers(store):
        raise AlreadyExists(
            f"{store.root.uri} contains part of a graph, perhaps from an interrupted copy",
            hint="remove the incomplete graph, or choose a different location",
        )


def _list_types(ir: SchemaIR) -> list[NodeType | EdgeType]:
    return [*ir.catalog.nodes, *ir.catalog.edges]


def _create_tables(store: Store, ir: SchemaIR, commit_id: str) -> tuple[dict[TableKey, TableEntry], Mapping[str, Any]]:
    """Create empty tables for a schema; return their entries and packed file checksums."""
    created_tables: dict[TableKey, TableEntry] = {}
    files: dict[str, FileChecksum] = {}
    for graph_type in _list_types(ir):
        table_key = arrow.table_key(graph_type)
        location = layout.table_directory(table_key, clock_and_ids.new_ulid())
        table = create_table(store, location, arrow.table_schema(ir, graph_type))
        created_tables[table_key] = TableEntry(
            table_key, location, 1, table.version, commit_id, 0, None, table.highest_field_id
        )
        files |= table.new_files
    return created_tables, record_checksums(store, created_tables, files)


def _create_first_manifest(store: Store, state: GraphState) -> LoadedManifest:
    """Create the first manifest, which is the commit point. If the outcome is unknown, read the manifest back."""
    try:
        return create_manifest(store, layout.MAIN, state)
    except UnsyncedError as error:
        raise InitializationIndeterminate(uri=store.root.uri, reason=error.message) from error
    except Exception as error:
        return _verify_first_manifest(store, state, error)


def _verify_first_manifest(store: Store, state: GraphState, error: Exception) -> LoadedManifest:
    try:
        manifest = read_manifest(store) if manifest_exists(store) else None
        if manifest is not None:
            sync_manifest(manifest)
    except (OmnigraphError, OSError) as check_error:
        reason = "the store did not respond when the outcome was checked"
        raise InitializationIndeterminate(uri=store.root.uri, reason=reason) from check_error
    if manifest is None:
        raise _missing_manifest_error(store, error) from error
    if manifest.state.head != state.head:
        raise AlreadyExists(f"another init created the graph at {store.root.uri}") from error
    return manifest


def _missing_manifest_error(store: Store, error: Exception) -> OmnigraphError:
    """Return the error for a missing manifest, which may still appear unless the store is a local disk.

    The claim can be released, because only one first manifest can ever exist: either this one, if it arrives late, or
    that of another init.
    """
    with suppress(StorageError):
        store.objects.remove(layout.CLAIM)
    if store.root.is_local:
        return to_storage_error(error, effect="none")
    reason = "the store did not respond, and the first manifest may still be written"
    return InitializationIndeterminate(uri=store.root.uri, reason=reason)


def _genesis_state(
    commit_id: str,
    tables: dict[TableKey, TableEntry],
    schema: SchemaRow,
    actor: str | None,
    packed_checksums: Mapping[str, Any],
) -> GraphState:
    created_at = clock_and_ids.now_micros()
    first_commit = Commit(
        id=commit_id,
        parents=(),
        operation="init",
        branch=layout.MAIN,
        manifest_version=1,
        created_at=created_at,
        published_at=created_at,
        actor=actor,
        message="created",
        note=PROBE_NOTE,
        schema=schema,
        tables=tables,
        files=packed_checksums,
    )
    return GraphState(BranchHead(commit_id, layout.MAIN), schema, tables, (first_commit,))
