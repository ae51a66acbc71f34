"""Repair: restores lost names and versions, reports external commits, adopts appended rows.

Never publishes a HEAD. Rows appended there are checked by the same rules as a load and become an
ordinary commit on top of the branch. That commit records the HEAD version they came from, so no row
is adopted twice, wherever a repair is interrupted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ConstraintViolation, OmnigraphError, UsageError
from omnigraph.history.audit import list_outcomes, record_repair, record_seen
from omnigraph.history.commit import Commit
from omnigraph.history.line import Line
from omnigraph.history.log import Log
from omnigraph.history.plan import PublishPlan, SameSchema, Signature, WriteTxn
from omnigraph.history.publish import publish
from omnigraph.history.schemas import Contract, read_schema
from omnigraph.history.state import State
from omnigraph.ingest.ids import agree, key_ids
from omnigraph.ingest.stage import stage
from omnigraph.lang.schema.catalog import Node
from omnigraph.rules.check import check, type_named
from omnigraph.rules.delta import Delta, TableDelta, written
from omnigraph.rules.lookup import Committed
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.head import FIRST, head_rows, unremembering
from omnigraph.storage.store import Store

from .check import check_graph
from .drift import (
    REBASED,
    Classification,
    Drift,
    read_drift,
    rebased_versions,
    seen_versions,
)
from .heads import read_heads
from .lost_versions import find_lost_versions
from .past import read_past
from .repair_report import Action, DatasetRepair, Repair
from .restore_names import NameChoice, repair_names
from .restore_versions import VersionRepair, repair_missing_manifests, repair_versions

ACTOR = "omnigraph:repair:force"
NAMES_ACTOR = "omnigraph:repair"
_REFUSED = "breaks_rules"
_HURT = "files of the branch are missing or damaged: restore them first"


def repair_graph(
    store: Store,
    line: Line | None,
    *,
    confirm: bool = False,
    force: bool = False,
    choice: NameChoice | None = None,
    accept: str | None = None,
) -> Repair:
    """Report what external writers did; with `force` and `confirm`, adopt appended rows.

    With `confirm`, lost names and manifest versions are restored and `name_choice` is carried out;
    `acknowledged_commit` is a commit to publish again on the caller's word. Without a
    `branch_state`, when the branch cannot be opened, rows are left alone.
    """
    if force and not confirm:
        raise UsageError(reason="force needs confirm: look at the preview first")
    named = repair_names(store, choice or NameChoice(), confirm=confirm, actor=NAMES_ACTOR)
    restored = repair_manifests(store, confirm=confirm, accept=accept)
    seen = check_graph(store, quick=True)
    lost = Repair(not confirm, (), damage=seen.damage, readable=seen.readable, names=named)
    if line is None:
        return replace(lost, versions=restored)
    found = list(_found(line, store))
    hurt = any(one.severity == "error" and one.branch == line.name for one in seen.damage)
    if hurt:
        commit, errors = None, {table_drift.key: _HURT for table_drift in found}
    else:
        commit, errors = _rebase(line, forced=force) if confirm else (None, {})
    taken = rebased_versions([commit]) if commit is not None else {}
    rows = tuple(_row(table_drift, confirm, force, taken, errors) for table_drift in found)
    _leave_audit(line)
    if force and not hurt:
        _note_refused(line, found, rows)
    return Repair(
        not confirm,
        rows,
        commit.manifest_version if commit is not None else None,
        commit.id if commit is not None else None,
        seen.damage,
        seen.readable,
        named,
        restored,
    )


def repair_manifests(
    store: Store, *, confirm: bool, accept: str | None = None
) -> tuple[VersionRepair, ...]:
    """Restore manifest versions that are provably lost, where that is possible.

    `acknowledged_commit` is a commit that the caller knows to have been acknowledged.
    """
    missing = repair_missing_manifests(store, confirm=confirm, actor=NAMES_ACTOR)
    fresh = unremembering(store)
    pasts = [read_past(fresh, one) for one in read_heads(fresh, [])]
    lost = find_lost_versions(fresh, pasts)
    actor = NAMES_ACTOR
    return missing + repair_versions(fresh, lost, confirm=confirm, actor=actor, accept=accept)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of this branch or of another one, and the drift at its HEAD.

    `already_reported`: an earlier repair reported that this drift must be left alone.
    """

    key: str
    version: int
    drift: Drift
    elsewhere: bool = False
    seen: bool = False


def _found(line: Line, store: Store) -> Iterator[_Table]:
    """Return the tables that the branch shows, then those that only other branches show."""
    own = line.refresh().state
    yield from _of_state(store, own)
    seen = {one.location for one in own.tables.values()}
    for head in read_heads(store, []):
        state = head.opened.state
        others = {k: e for k, e in state.tables.items() if e.location not in seen}
        seen |= {one.location for one in others.values()}
        for table_drift in _of_state(store, replace(state, tables=others)):
            key = f"{table_drift.key}@{head.label}"
            yield replace(table_drift, key=key, elsewhere=True)


def _of_state(store: Store, state: State) -> Iterator[_Table]:
    """Return the tables of a state, each with the drift above the version its log adopted."""
    known, fresh = _taken(store, state), unremembering(store)
    seen: Mapping[str, int] | None = None
    for key, entry in sorted(state.tables.items()):
        drift = read_drift(fresh, entry.location, known.get(entry.location, FIRST))
        if seen is None and drift.classification != "no_drift":
            seen = seen_versions(store)
        told = drift.head <= (seen or {}).get(entry.location, 0)
        yield _Table(key, entry.version, drift, seen=told)


def _taken(store: Store, state: State) -> Mapping[str, int]:
    log = Log(store, state)
    return rebased_versions(log.ancestors(state.head.commit_id).values())


def _row(
    one: _Table, confirm: bool, force: bool, taken: Mapping[str, int], errors: Mapping[str, str]
) -> DatasetRepair:
    drift = one.drift
    done = drift.location in taken
    action, skipped = _action(one, confirm, force)
    if skipped == _REFUSED and one.key not in errors:
        action, skipped = "no_effect", None  # the appended version held no rows
    if skipped == _REFUSED and errors.get(one.key) == _HURT:
        skipped = "damaged"
    return DatasetRepair(
        one.key,
        drift.classification,
        "forced" if done else action,
        tuple(step.operation for step in drift.steps),
        one.version,
        drift.head,
        done,
        None if done else skipped,
        drift.error or (errors.get(one.key) if action == "refused" else None),
    )


def _action(one: _Table, confirm: bool, force: bool) -> tuple[Action, str | None]:
    """Choose the action for drift that this run did not adopt."""
    kind = one.drift.classification
    harmless: dict[Classification, Action] = {
        "no_drift": "no_op",
        "rebased": "no_op",
        "verified_maintenance": "no_effect",
    }
    if one.drift.head < FIRST:
        return "refused" if confirm else "preview", "damaged"
    if kind in harmless:
        return harmless[kind], None
    if one.seen and not force:
        return "no_op", "seen"
    if one.elsewhere or not confirm:
        return "preview", "other_branch" if one.elsewhere else "needs_confirm"
    if kind == "appended":
        return "refused", "needs_force" if not force else _REFUSED
    return "refused", "not_only_appended_rows"


def _rebase(line: Line, *, forced: bool) -> tuple[Commit | None, dict[str, str]]:
    """Adopt appended rows in one commit; tables whose rows break a rule are left out."""
    errors: dict[str, str] = {}
    if not forced:
        return None, errors

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        errors.clear()
        return _plan(txn, errors)

    return publish(line, prepare, Signature(actor=ACTOR)), errors


def _plan(txn: WriteTxn, errors: dict[str, str]) -> PublishPlan | None:
    """Plan the adoption on this base; the base's log tells what was adopted before."""
    state = txn.base.state
    contract = read_schema(txn.store, state.schema)
    tables: dict[str, TableDelta] = {}
    heads: dict[str, int] = {}
    for one in _of_state(txn.store, state):
        if one.drift.classification != "appended":
            continue
        try:
            tables[one.key] = _appended(txn, contract, one)
        except OmnigraphError as error:
            errors[one.key] = error.message
        else:
            heads[one.drift.location] = one.drift.head
    return _judged(txn, contract, tables, heads, errors)


def _appended(txn: WriteTxn, contract: Contract, one: _Table) -> TableDelta:
    """Return the rows of HEAD that were not adopted before, with the columns of the table."""
    key, drift, fresh = one.key, one.drift, unremembering(txn.store)
    table = txn.table(key)
    rows = head_rows(fresh, drift.location, drift.head)
    if drift.since > FIRST:
        before = head_rows(fresh, drift.location, drift.since)["id"].to_pylist()
        rows = rows.filter(_beyond(rows["id"].to_pylist(), before))
    wanted = row_schema(table.schema)
    if not _same_columns(rows.schema, wanted):
        names = ", ".join(rows.schema.names)
        raise ConstraintViolation(f"its columns ({names}) no longer match those of the table")
    rows = rows.select(wanted.names)
    _check_keys(contract, key, rows)
    return written(key, rows, "insert")


def _beyond(ids: list[str], before: list[str]) -> pa.Array:
    """Mask the ids that exceed those adopted before; a repeated id counts as additional."""
    left = Counter(before)
    mask = []
    for one in ids:
        known = left[one] > 0
        left[one] -= known
        mask.append(not known)
    return pa.array(mask, pa.bool_())


def _same_columns(one: pa.Schema, other: pa.Schema) -> bool:
    if sorted(one.names) != sorted(other.names):
        return False
    return all(one.field(name).type.equals(other.field(name).type) for name in one.names)


def _check_keys(contract: Contract, key: str, rows: pa.Table) -> None:
    """Check that ids are not empty and match the keys."""
    told: list[str] = []

    def fault(_: int, error: OmnigraphError) -> None:
        told.append(str(error.details.get("reason") or error.message))

    node = type_named(contract.ir.catalog, key)
    ids = rows["id"].combine_chunks()
    if ids.null_count or pc.any(pc.equal(ids, "")).as_py():
        told.append("an id is empty")
    elif isinstance(node, Node) and node.key:
        agree(key_ids(contract.ir, node, rows, fault), ids, fault)
    if told:
        raise ConstraintViolation(told[0])


def _judged(
    txn: WriteTxn,
    contract: Contract,
    tables: dict[str, TableDelta],
    heads: dict[str, int],
    errors: dict[str, str],
) -> PublishPlan | None:
    """Plan all tables that obey the rules together; others are left out and reported."""
    state = txn.base.state
    while tables:
        lookup = Committed(txn)
        delta, broken = check(contract.ir.catalog, Delta(tables), lookup, limit=None)
        if not broken:
            needs = (SameSchema(state.schema.hash), *lookup.requirements)
            plan = stage(txn, delta, "repair", needs)
            taken = {state.tables[key].location for key in tables}
            named = {place: head for place, head in heads.items() if place in taken}
            return None if plan is None else replace(plan, details={REBASED: named})
        wrong = {one.type_key for one in broken} & tables.keys()
        for one in broken:
            errors.setdefault(one.type_key, one.error().message)
        tables = {
            key: table_delta for key, table_delta in tables.items() if wrong and key not in wrong
        }
    return None


def _note_refused(line: Line, found: Iterable[_Table], rows: Iterable[DatasetRepair]) -> None:
    """Record drift that can only be left alone, so that it is reported again only if it grows."""
    left = {
        one.drift.location: one.drift.head
        for one, row in zip(found, rows, strict=True)
        if not one.seen and one.drift.head >= FIRST and row.action in ("refused", "no_effect")
    }
    if left:
        record_seen(line.store, line.name, ACTOR, left)


def _leave_audit(line: Line) -> None:
    """Write one audit object per repair commit, also for repairs interrupted after the commit."""
    state = line.base().state
    commits: Iterable[Commit] = Log(line.store, state).ancestors(state.head.commit_id).values()
    made = {one.id: one for one in commits if REBASED in one.details}
    if not made or line.store.effects.read_only:
        return
    known = {outcome.operation_id for outcome in list_outcomes(line.store)}
    for one in made.values():
        if one.id not in known:
            record_repair(line.store, one.id, one.branch or line.name, one.actor)
