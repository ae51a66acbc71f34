"""Schema objects: the source text and the identities, written once under a new name.

A schema is a row of the state: it changes with the tables, may differ between branches, and a past
commit is read with its own.
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


_NAMED = 10  # types in the short form of a schema


@dataclass(frozen=True, slots=True)
class Contract:
    """A schema as a graph holds it: the text the user gave and what it means.

    `erased` are the directories of tables that were dropped with their history: no past commit of
    the branch shows them any more.
    """

    source: str
    ir: SchemaIR
    erased: tuple[str, ...] = ()

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
    erased = {"erased": list(contract.erased)} if contract.erased else {}
    store.objects.create_json(name, {"source": contract.source, "ir": ir, **erased})
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


def read_anew(store: Store, row: SchemaRow) -> Contract:
    """The schema of a state as it is stored now, whatever this process remembers."""
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
    """The directories of tables that a branch has dropped with their history."""
    return frozenset(read_schema(store, state.schema).erased)


def dropped_for_good(key: str, commit_id: str) -> HistoryReclaimed:
    """What a past commit says of a table that was dropped with its history."""
    return HistoryReclaimed(
        f"{key} as of commit {commit_id} was dropped with its history",
        first_unreadable_commit_id=commit_id,
        hint="read a later commit, or another branch that has kept it",
    )


def schemas_agree(one: Contract, other: Contract) -> bool:
    """Whether two schemas give every type and property the same meaning and the same number.

    So rows of one mean the same in the other. What both have dropped since they parted, and the
    layout of their texts, may differ.
    """
    same = one.ir is other.ir or (one.ir.catalog, one.ir.types) == (
        other.ir.catalog,
        other.ir.types,
    )
    return same and one.ir.domain == other.ir.domain


BRING_OVER = (
    "make a new branch of '{target}', and bring over what '{source}' has:"
    " omnigraph export, then load --mode merge"
)


def schemas_differ(source: str, target: str, *, alike: bool = False) -> SchemaMismatch:
    """The refusal of two branches whose schemas do not agree, with the way forward.

    Schemas that are `alike` say the same, and count their properties differently: what was changed
    on both came in another order, and no further change helps.
    """
    if not alike:
        return SchemaMismatch(source=source, target=target)
    return SchemaMismatch(
        f"the schemas of branches '{source}' and '{target}' say the same, but came to it by"
        " other changes or in another order",
        source=source,
        target=target,
        hint=BRING_OVER.format(source=source, target=target),
    )


def _lost(store: Store, what: str, kind: StorageKind) -> StorageError:
    return StorageError(
        f"the schema of this state {what} in {store.root.uri}; nothing was changed",
        kind=kind,
        effect="none",
        hint="restore the root from a copy",
    )
