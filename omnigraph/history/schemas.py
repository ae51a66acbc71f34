"""Schema objects, which contain the source text and the type identities. Each object is written only once.

A schema is part of the branch state: it changes together with the tables and may differ between branches. A past commit
is read with the schema that it was written with.
"""

import json
from collections.abc import Iterable

from omnigraph.errors import HistoryReclaimed, LanguageError, StorageError, StorageKind
from omnigraph.lang.schema.declared_order import with_source
from omnigraph.lang.schema.ir import SchemaIR, assigned_ids, hash_ir
from omnigraph.records.frozen import record
from omnigraph.storage import layout
from omnigraph.storage.store import Store
from omnigraph.values import clock_and_ids
from omnigraph.values.table_key import TableKey

from .commit import SchemaRow
from .state import GraphState

_CACHE_SIZE = 64


_SHOWN_TYPES = 10  # number of types shown in the repr of a schema


@record
class StoredSchema:
    """A schema as a graph stores it: the user's source text and its compiled form.

    `erased_directories` are the directories of tables that were dropped along with their history. Past commits on the
    branch no longer show these tables. `retired_ids` are the ids of dropped types and properties, which are never
    assigned again.
    """

    source: str
    ir: SchemaIR
    erased_directories: tuple[str, ...] = ()
    retired_ids: frozenset[int] = frozenset()

    def replaced_by(self, source: str, ir: SchemaIR, erased_directories: Iterable[str] = ()) -> "StoredSchema":
        """Return the schema that replaces this schema, including the ids of all dropped types and properties."""
        dropped_ids = {*assigned_ids(self.ir)} - {*assigned_ids(ir)}
        all_erased = tuple(sorted({*self.erased_directories, *erased_directories}))
        return StoredSchema(source, ir, all_erased, self.retired_ids | dropped_ids)

    def __repr__(self) -> str:
        catalog = self.ir.catalog
        type_names = [graph_type.name for graph_type in catalog.nodes] + [
            graph_type.name for graph_type in catalog.edges
        ]
        shown_names = ", ".join(type_names[:_SHOWN_TYPES] + ["…"] * (len(type_names) > _SHOWN_TYPES))
        return f"<Schema of {shown_names}; .source is its text>"


# A schema object is never overwritten, so cache entries never become stale.
_schema_cache: dict[tuple[str, SchemaRow], StoredSchema] = {}


def write_schema(store: Store, stored_schema: StoredSchema) -> SchemaRow:
    """Store a schema and return the row that references it in the state."""
    digest = hash_ir(stored_schema.ir)
    object_name = layout.schema_name(digest.removeprefix("sha256:")[:24], clock_and_ids.new_ulid())
    # Encode the schema as a string, because member order matters in a schema and control objects sort their members.
    encoded_ir = json.dumps(stored_schema.ir.to_json(), ensure_ascii=False, separators=(",", ":"))
    erased_member = {"erased": list(stored_schema.erased_directories)} if stored_schema.erased_directories else {}
    retired_member = {"retired": sorted(stored_schema.retired_ids)} if stored_schema.retired_ids else {}
    members = {"source": stored_schema.source, "ir": encoded_ir, **erased_member, **retired_member}
    store.objects.create_json(object_name, members)
    return SchemaRow(digest, object_name)


def read_schema(store: Store, schema_row: SchemaRow) -> StoredSchema:
    """Read a state's schema; raise an error if it is missing or does not match its hash."""
    cache_key = (store.root.identity, schema_row)
    stored_schema = _schema_cache.get(cache_key)
    if stored_schema is None:
        stored_schema = _load_schema(store, schema_row)
        if len(_schema_cache) >= _CACHE_SIZE:
            _schema_cache.clear()
        _schema_cache[cache_key] = stored_schema
    return stored_schema


def read_schema_uncached(store: Store, schema_row: SchemaRow) -> StoredSchema:
    """Read a state's schema from the store, bypassing the cache."""
    return _load_schema(store, schema_row)


def _load_schema(store: Store, schema_row: SchemaRow) -> StoredSchema:
    try:
        members = store.objects.read_json(schema_row.location)
    except StorageError as error:
        if error.kind != "permanent":
            raise
        raise _unusable_schema_error(f"{_describe_schema(store)} is damaged", "permanent") from error
    if members is None:
        raise _unusable_schema_error(f"{_describe_schema(store)} is missing", "not_found")
    try:
        ir = with_source(SchemaIR.from_json(json.loads(members["ir"])), members["source"])
        erased_directories, retired_ids = tuple(members.get("erased", ())), frozenset(members.get("retired", ()))
        stored_schema = StoredSchema(members["source"], ir, erased_directories, retired_ids)
    except (LanguageError, LookupError, TypeError, ValueError) as error:
        raise _unusable_schema_error(f"cannot read {_describe_schema(store)}", "permanent") from error
    if hash_ir(stored_schema.ir) != schema_row.hash:
        raise _unusable_schema_error(f"{_describe_schema(store)} is damaged", "permanent")
    return stored_schema


def read_erased_directories(store: Store, state: GraphState) -> frozenset[str]:
    """Return the directories of tables that a branch has dropped along with their history."""
    return frozenset(read_schema(store, state.schema).erased_directories)


def dropped_history_error(table_key: TableKey, commit_id: str) -> HistoryReclaimed:
    """Return an error for reading a past version of a table that was dropped along with its history."""
    return HistoryReclaimed(
        f"cannot read {table_key} as of commit {commit_id}: it was dropped along with its history",
        first_unreadable_commit_id=commit_id,
        hint="read a later commit, or a branch that still has the data",
    )


def schemas_agree(first_schema: StoredSchema, second_schema: StoredSchema) -> bool:
    """Return whether two schemas assign the same meaning and id to every type and property.

    If the schemas agree, rows written with one schema can be read with the other. The schemas may still differ in the
    layout of their source text and in the ids that they reserve for dropped properties.
    """
    same_types = first_schema.ir is second_schema.ir or (first_schema.ir.catalog, first_schema.ir.type_identities) == (
        second_schema.ir.catalog,
        second_schema.ir.type_identities,
    )
    return same_types and first_schema.ir.identity_domain == second_schema.ir.identity_domain


COPY_DATA_HINT = (
    "create a new branch from '{target}' and copy the data from '{source}' into it with"
    " `omnigraph export` and `omnigraph load --mode merge`"
)


def _describe_schema(store: Store) -> str:
    return f"the schema for this revision of {store.root.uri}"


def _unusable_schema_error(problem: str, kind: StorageKind) -> StorageError:
    return StorageError(
        f"{problem}; nothing was changed",
        kind=kind,
        effect="none",
        hint="restore the graph from a backup",
    )
