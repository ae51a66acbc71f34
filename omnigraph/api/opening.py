"""`init` and `open`: the two ways to get a `Graph`.

Opening a graph for writing first recovers interrupted operations. Opening it read-only writes nothing.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.api.actors import resolve_actor
from omnigraph.api.error_boundary import guarded
from omnigraph.api.graph import Graph
from omnigraph.api.handle import Handle
from omnigraph.api.shared_handles import reuse_handle
from omnigraph.errors import AlreadyExists, BranchNotFound, InputError, SchemaUnsupported
from omnigraph.history.branch_state import BranchState
from omnigraph.history.branches import open_branch
from omnigraph.history.manifest import manifest_exists
from omnigraph.history.missing_manifest import absent_manifest_error
from omnigraph.storage.effects import Effects
from omnigraph.storage.layout import MAIN
from omnigraph.storage.store import Durability, Store, open_store
from omnigraph.values import clock_and_ids

if TYPE_CHECKING:
    from omnigraph.api.schema import SchemaText
    from omnigraph.storage.external_blobs import BlobLocation

Location = str | PathLike[str]
StorageOptions = Mapping[str, object]
ExternalBlobs = Iterable[str] | None


@guarded
def init(  # noqa: PLR0913 - all but two are keywords
    uri: Location,
    schema: "SchemaText",
    *,
    force: bool = False,
    exist_ok: bool = False,
    actor: str | None = None,
    durability: Durability = "fsync",
    storage_options: StorageOptions | None = None,
    external_blobs: ExternalBlobs = None,
) -> Graph:
    """Create a graph and open it.

    `schema` is `.pg` text, the path to a `.pg` file, or a `Schema`. `exist_ok` opens an existing graph if its schema is
    equivalent to `schema`. `force` takes over the location from an interrupted `init`, but never replaces an existing
    graph. `storage_options` configure an object store and override the `AWS_*` variables. For `external_blobs`, see
    `open`.
    """
    from omnigraph.api.schema import read_schema_text
    from omnigraph.history.schemas import StoredSchema
    from omnigraph.lang.schema import compile_schema
    from omnigraph.lang.schema.assign_identity import new_identity
    from omnigraph.publish.init import init_graph

    allowed_bases = _resolve_external_blobs(external_blobs)
    text, name = read_schema_text(schema)
    catalog = compile_schema(text, name)
    actor = resolve_actor(actor)
    store = open_store(os.fspath(uri), durability=durability, storage_options=storage_options)
    _require_directory(store)
    contract = StoredSchema(text, new_identity(catalog, clock_and_ids.new_ulid()))
    try:
        branch_state = init_graph(store, contract, force=force, actor=actor)
    except AlreadyExists:
        if not exist_ok or not manifest_exists(store):
            raise
        existing = open(
            uri, actor=actor, durability=durability, storage_options=storage_options, external_blobs=external_blobs
        )
        return _require_same_schema(existing, catalog)
    return Graph(Handle(store, branch_state, actor=actor, external_blobs=allowed_bases))


def _require_directory(store: Store) -> None:
    """Raise `InputError` if a new graph's location, or a folder above it, is a file."""
    if not store.root.is_local:
        return
    location, existing = Path(store.root.path), None
    with suppress(PermissionError):  # the write reports this error
        existing = next((folder for folder in (location, *location.parents) if folder.exists()), None)
    if existing is not None and not existing.is_dir():
        raise InputError(f"cannot create a graph at {location}: {existing} is a file", reason="not a directory")


@guarded
def open(  # noqa: PLR0913 - all but the first are keywords
    uri: Location,
    *,
    branch: str = MAIN,
    actor: str | None = None,
    read_only: bool = False,
    durability: Durability = "fsync",
    storage_options: StorageOptions | None = None,
    verify: bool | None = None,
    external_blobs: ExternalBlobs = None,
) -> Graph:
    """Open a graph. Unless `read_only` is true, recover interrupted operations first.

    `storage_options` configure an object store and override the `AWS_*` variables. If `verify` or `OMNIGRAPH_VERIFY=1`
    is set, each file is compared with its checksum on first use. `external_blobs` lists locations such as
    `s3://bucket/prefix` and `file:///data`. A write can then pass the URI of an object in one of these locations as a
    blob, and the object's bytes are copied into the graph. The default is the space-separated list in
    `OMNIGRAPH_EXTERNAL_BLOBS`. If that is not set, no location is allowed.
    """
    return Graph(
        open_handle(
            uri,
            branch=branch,
            actor=actor,
            read_only=read_only,
            durability=durability,
            storage_options=storage_options,
            verify=verify,
            external_blobs=external_blobs,
        )
    )


def open_handle(  # noqa: PLR0913 - all but the first are keywords
    uri: Location,
    *,
    branch: str,
    actor: str | None,
    read_only: bool,
    durability: Durability,
    storage_options: StorageOptions | None,
    verify: bool | None,
    external_blobs: ExternalBlobs = None,
) -> Handle:
    """Open a handle on a graph, with the same options as `open`."""
    allowed_bases = _resolve_external_blobs(external_blobs)
    actor = resolve_actor(actor)
    location = os.fspath(uri)
    verifies = verify if verify is not None else os.environ.get("OMNIGRAPH_VERIFY", "0") not in ("", "0")

    def open_new() -> Handle:
        effects = Effects(read_only=read_only)
        store = open_store(location, effects=effects, durability=durability, storage_options=storage_options)
        if verifies:
            from omnigraph.history.checksum_verification import FirstUseVerifier

            store = replace(store, table_verifier=FirstUseVerifier())
        branch_state = _open_branch(store, branch)
        if not read_only:
            from omnigraph.publish.recover import recover_when_due

            recover_when_due(store, interval=0)
        return Handle(store, branch_state, read_only=read_only, actor=actor, external_blobs=allowed_bases)

    store_options = tuple(sorted((storage_options or {}).items(), key=str))
    return reuse_handle(
        (location, actor, read_only, durability, str(store_options), verifies, allowed_bases), branch, open_new
    )


def _resolve_external_blobs(external_blobs: ExternalBlobs) -> "tuple[BlobLocation, ...]":
    if external_blobs is None:
        external_blobs = os.environ.get("OMNIGRAPH_EXTERNAL_BLOBS", "").split()
        if not external_blobs:
            return ()
    from omnigraph.storage.external_blobs import parse_allowed_bases

    return parse_allowed_bases(external_blobs)


def _open_branch(store: Store, branch: str) -> BranchState:
    try:
        return open_branch(store, branch)
    except BranchNotFound:
        if not manifest_exists(store):
            raise absent_manifest_error(store, MAIN) from None
        raise


def _require_same_schema(graph: Graph, catalog: Any) -> Graph:
    """Return the graph if its schema is equivalent to `catalog`. Otherwise, raise an error with the differences."""
    from omnigraph.lang.schema.migrate import plan_migration

    plan = plan_migration(graph.schema.ir, catalog)
    if plan.steps:
        count = len(plan.steps)
        raise SchemaUnsupported(
            f"the schema of the existing graph at {graph.uri} differs from the given schema"
            f" ({count} change{'s'[: count > 1]})",
            steps=plan.steps,
            hint="open the existing graph and change its schema, or choose a different location",
        )
    return graph
