"""Schema objects: source text and type identities, written once under a new name.

A schema is part of the state: it changes together with the tables, may differ between branches,
and a past commit is read with the schema that it was written with.
"""

import json
from dataclasses import dataclass

from omnigraph import ids
from omnigraph.errors import (
    HistoryReclaimed,
    LanguageError,
    SchemaMismatch,
    StorageError,
    StorageKind,
)
from omnigraph.lang.schema.ir import SchemaIR, ir_hash
from omnigraph.storage import layout
from omnigraph.storage.store import Store

from .commit import SchemaRow
from .state import State

_KEPT = 64


_NAMED = 10  # types shown in the repr of a schema


@dataclass(frozen=True, slots=True)
class Contract:
    """A schema as a graph stores it: the user's source text and its compiled form.

    `erased_directories` are those of tables that were dropped with their history: no past commit
    of the branch shows them any more.
    """

    source: str
    ir: SchemaIR
    erased: tuple[str, ...] = ()

    def __repr__(self) -> str:
        catalog = self.ir.catalog
        names = [one.name for one in catalog.nodes] + [one.name for one in catalog.edges]
        told = ", ".join(names[:_NAMED] + ["…"] * (len(names) > _NAMED))
        return f"<Schema of {told}; .source is its text>"


# A schema object is never overwritten, so cache entries never become stale.
_known: dict[tuple[str, SchemaRow], Contract] = {}


def write_schema(store: Store, contract: Contract) -> SchemaRow:
    """Store a schema and return the row that references it in the state."""
    digest = ir_hash(contract.ir)
    name = layout.schema_name(digest.removeprefix("sha256:")[:24], ids.new_ulid())
    # Encoded as a string: member order matters in a schema, but control objects sort their members.
    ir = json.dumps(contract.ir.to_json(), ensure_ascii=False, separators=(",", ":"))
    erased = {"erased": list(contract.erased)} if contract.erased else {}
    store.objects.create_json(name, {"source": contract.source, "ir": ir, **erased})
    return SchemaRow(digest, name)


def read_schema(store: Store, row: SchemaRow) -> Contract:
    """Read the schema of a state; refuse one that is missing or does not match its hash."""
    known = (store.root.identity, row)
    found = _known.get(known)
    if found is None:
        found = _read(store, row)
        if len(_known) >= _KEPT:
            _known.clear()
        _known[known] = found
    return found


def read_anew(store: Store, row: SchemaRow) -> Contract:
    """Read the schema of a state from the store, bypassing the cache."""
    return _read(store, row)


def _read(store: Store, row: SchemaRow) -> Contract:
    try:
        facts = store.objects.read_json(row.location)
    except StorageError as error:
        if error.kind != "permanent":
            raise
        raise _lost(store, "is damaged", "permanent") from error
    if facts is None:
        raise _lost(store, "is missing", "not_found")
    try:
        ir = SchemaIR.from_json(json.loads(facts["ir"]))
        contract = Contract(facts["source"], ir, tuple(facts.get("erased", ())))
    except (LanguageError, LookupError, TypeError, ValueError) as error:
        raise _lost(store, "cannot be read", "permanent") from error
    if ir_hash(contract.ir) != row.hash:
        raise _lost(store, "is damaged", "permanent")
    return contract


def erased_by(store: Store, state: State) -> frozenset[str]:
    """Return the directories of tables that a branch has dropped with their history."""
    return frozenset(read_schema(store, state.schema).erased)


def dropped_for_good(key: str, commit_id: str) -> HistoryReclaimed:
    """Return the error for a past commit's table that was dropped with its history."""
    return HistoryReclaimed(
        f"{key} as of commit {commit_id} was dropped with its history",
        first_unreadable_commit_id=commit_id,
        hint="read a later commit, or another branch that has kept it",
    )


def schemas_agree(one: Contract, other: Contract) -> bool:
    """Whether two schemas give every type and property the same meaning and the same number.

    Rows of one can then be read with the other. Properties that both have dropped since they
    diverged, and the layout of the source texts, may differ.
    """
    same = one.ir is other.ir or (one.ir.catalog, one.ir.types) == (
        other.ir.catalog,
        other.ir.types,
    )
    return same and one.ir.domain == other.ir.domain


BRING_OVER = (
    "create a new branch from '{target}', and copy the data of '{source}' to it:"
    " omnigraph export, then load --mode merge"
)


def schemas_differ(source: str, target: str, *, alike: bool = False) -> SchemaMismatch:
    """Return the error for two branches whose schemas do not agree, with a way out.

    With `same_meaning` the schemas declare the same, but number their properties differently: the
    same changes were made in a different order on each side, and no further change can fix that.
    """
    if not alike:
        return SchemaMismatch(source=source, target=target)
    return SchemaMismatch(
        f"the schemas of branches '{source}' and '{target}' declare the same types, but reached"
        " them by different changes or in a different order",
        source=source,
        target=target,
        hint=BRING_OVER.format(source=source, target=target),
    )


def _lost(store: Store, what: str, kind: StorageKind) -> StorageError:
    return StorageError(
        f"the schema of this state {what} in {store.root.uri}; nothing was changed",
        kind=kind,
        effect="none",
        hint="restore the root from a backup",
    )
