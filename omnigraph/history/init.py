"""A new graph: claim the root, make the tables, store the schema, write the first state.

The first manifest version is the commit point. Before it a cut-off init leaves a claim and garbage
that the next init passes over; after it the graph is there.
"""

from omnigraph import ids
from omnigraph.errors import AlreadyExists, InitializationClaimed, InitializationCommitted
from omnigraph.lang.schema.catalog import Edge, Node
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.storage import arrow, layout
from omnigraph.storage.probe import probe_create_if_absent
from omnigraph.storage.store import Store
from omnigraph.storage.table import create_table

from .commit import Commit, SchemaRow, TableEntry
from .manifest import Opened, create_manifest, manifest_exists
from .schemas import Contract, write_schema
from .state import Head, State


def init_graph(store: Store, contract: Contract, *, force: bool = False) -> Opened:
    """Make a graph at an empty root. `force` takes over the claim of an init that was cut off."""
    if manifest_exists(store):
        raise AlreadyExists(f"there is a graph at {store.root.uri} already")
    probe_create_if_absent(store)
    _claim(store, force)
    commit_id = ids.new_ulid()
    tables = _create_tables(store, contract.ir, commit_id)
    schema = write_schema(store, contract)
    opened = create_manifest(store, layout.MAIN, _genesis(commit_id, tables, schema))
    try:
        store.objects.remove(layout.CLAIM)
    except Exception as error:
        raise InitializationCommitted("the graph was made", uri=store.root.uri) from error
    return opened


def _claim(store: Store, force: bool) -> None:
    if force:
        store.objects.remove(layout.CLAIM)
    if not store.objects.create_json(layout.CLAIM, {"claimed_at": ids.now_micros()}):
        raise InitializationClaimed(
            "another init is under way, or was cut off", hint="try again with --force if it is over"
        )


def _create_tables(store: Store, ir: SchemaIR, commit_id: str) -> dict[str, TableEntry]:
    made: dict[str, TableEntry] = {}
    types: list[Node | Edge] = [*ir.catalog.nodes, *ir.catalog.edges]
    for one in types:
        key = arrow.table_key(one)
        location = layout.table_directory(key, ids.new_ulid())
        table = create_table(store, location, arrow.table_schema(ir, one))
        fields = len(table.schema.names)
        made[key] = TableEntry(key, location, 1, table.version, commit_id, 0, None, fields)
    return made


def _genesis(commit_id: str, tables: dict[str, TableEntry], schema: SchemaRow) -> State:
    now = ids.now_micros()
    first = Commit(
        id=commit_id,
        parents=(),
        operation="init",
        branch=layout.MAIN,
        manifest_version=1,
        created_at=now,
        published_at=now,
        schema=schema,
        tables=tables,
    )
    return State(Head(commit_id, layout.MAIN), schema, tables, (first,))
