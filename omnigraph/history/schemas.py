"""Schema objects: the source text and the identities, written once under a new name.

A schema is a row of the state: it changes with the tables, may differ between branches, and a past
commit is read with its own.
"""

from dataclasses import dataclass
from functools import lru_cache

from omnigraph import ids
from omnigraph.errors import StorageError
from omnigraph.lang.schema.ir import SchemaIR, ir_hash
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .commit import SchemaRow


@dataclass(frozen=True, slots=True)
class Contract:
    """A schema as a graph holds it: the text the user gave and what it means."""

    source: str
    ir: SchemaIR


def write_schema(store: Store, contract: Contract) -> SchemaRow:
    """Store a schema; the row that names it goes into the state."""
    digest = ir_hash(contract.ir)
    name = layout.schema_name(digest.removeprefix("sha256:")[:24], ids.new_ulid())
    store.objects.create_json(name, {"source": contract.source, "ir": contract.ir.to_json()})
    return SchemaRow(digest, name)


def read_schema(store: Store, row: SchemaRow) -> Contract:
    """The schema of a state; one that is missing or does not hash as recorded is refused."""
    return _read(store, row)


@lru_cache(maxsize=64)
def _read(store: Store, row: SchemaRow) -> Contract:
    facts = store.objects.read_json(row.location)
    if facts is None:
        raise StorageError("the schema of this state is missing", kind="not_found")
    contract = Contract(facts["source"], SchemaIR.from_json(facts["ir"]))
    if ir_hash(contract.ir) != row.hash:
        raise StorageError("the schema of this state is damaged", kind="permanent")
    return contract
