"""Schema objects: the source text and the identities, written once under a new name.

A schema is a row of the state: it changes with the tables, may differ between branches, and a past
commit is read with its own.
"""

import json
from dataclasses import dataclass

from omnigraph import ids
from omnigraph.errors import LanguageError, StorageError, StorageKind
from omnigraph.lang.schema.ir import SchemaIR, ir_hash
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .commit import SchemaRow

_KEPT = 64


_NAMED = 10  # types in the short form of a schema


@dataclass(frozen=True, slots=True)
class Contract:
    """A schema as a graph holds it: the text the user gave and what it means."""

    source: str
    ir: SchemaIR

    def __repr__(self) -> str:
        catalog = self.ir.catalog
        names = [one.name for one in catalog.nodes] + [one.name for one in catalog.edges]
        told = ", ".join(names[:_NAMED] + ["…"] * (len(names) > _NAMED))
        return f"<Schema of {told}; .source is its text>"


# A schema object is never written twice, so what was read once stays true.
_known: dict[tuple[str, SchemaRow], Contract] = {}


def write_schema(store: Store, contract: Contract) -> SchemaRow:
    """Store a schema; the row that names it goes into the state."""
    digest = ir_hash(contract.ir)
    name = layout.schema_name(digest.removeprefix("sha256:")[:24], ids.new_ulid())
    # As text: the record of a schema has an order of members, and control objects sort theirs.
    ir = json.dumps(contract.ir.to_json(), ensure_ascii=False, separators=(",", ":"))
    store.objects.create_json(name, {"source": contract.source, "ir": ir})
    return SchemaRow(digest, name)


def read_schema(store: Store, row: SchemaRow) -> Contract:
    """The schema of a state; one that is missing or does not hash as recorded is refused."""
    known = (store.root.identity, row)
    found = _known.get(known)
    if found is None:
        found = _read(store, row)
        if len(_known) >= _KEPT:
            _known.clear()
        _known[known] = found
    return found


def _read(store: Store, row: SchemaRow) -> Contract:
    facts = store.objects.read_json(row.location)
    if facts is None:
        raise _lost(store, "is missing", "not_found")
    try:
        contract = Contract(facts["source"], SchemaIR.from_json(json.loads(facts["ir"])))
    except (LanguageError, LookupError, TypeError, ValueError) as error:
        raise _lost(store, "cannot be read", "permanent") from error
    if ir_hash(contract.ir) != row.hash:
        raise _lost(store, "is damaged", "permanent")
    return contract


def _lost(store: Store, what: str, kind: StorageKind) -> StorageError:
    return StorageError(
        f"the schema of this state {what} in {store.root.uri}; nothing was changed",
        kind=kind,
        effect="none",
        hint="restore the root from a copy",
    )
