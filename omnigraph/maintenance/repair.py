"""Repair a graph: restore lost names and versions, report external commits, and adopt appended rows.

External writers commit to a table's HEAD, which the graph does not read. Rows that they append are checked against the
same rules as a load and become an ordinary commit on the branch. That commit records the HEAD version that the rows
came from, so no row is adopted twice, even if a repair is interrupted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ConstraintViolation, OmnigraphError, UsageError
from omnigraph.history.branch_state import BranchState
from omnigraph.history.commit import Commit
from omnigraph.history.commit_log import HistoryLog
from omnigraph.history.recovery_records import list_recovery_records, record_external_changes_seen, record_repair
from omnigraph.history.schemas import StoredSchema, read_schema
from omnigraph.history.state import GraphState
from omnigraph.ingest.assign_ids import check_ids_match_keys, key_ids
from omnigraph.ingest.stage import stage
from omnigraph.lang.schema.type_names import type_for_key
from omnigraph.publish.publish import publish
from omnigraph.publish.requirements import SameSchema
from omnigraph.publish.write_plan import CommitMetadata, PublishPlan
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.check_delta import check_delta
from omnigraph.rules.delta import Delta, TableDelta, build_table_delta
from omnigraph.rules.lookup import RecordingLookup
from omnigraph.storage.blobs import row_schema
from omnigraph.storage.store import Store
from omnigraph.storage.table_head import FIRST_VERSION, read_head_rows, without_caches
from omnigraph.values.table_key import TableKey

from .branch_heads import read_heads
from .branch_log import read_branch_log
from .check import check_graph
from .drift import REBASED_DETAIL, Drift, DriftClassification, adopted_versions, read_drift, reported_versions
from .lost_versions import find_lost_versions
from .repair_report import DatasetRepair, Repair, RepairAction, VersionRepair
from .restore_names import NameChoice, repair_names
from .restore_versions import repair_missing_manifests, repair_versions

FORCE_ACTOR = "omnigraph:repair:force"
REPAIR_ACTOR = "omnigraph:repair"
_BREAKS_RULES = "breaks_rules"
_DAMAGED_BRANCH = "files on the branch are missing or damaged: restore them first"


def repair_graph(
    store: Store,
    branch_state: BranchState | None,
    *,
    confirm: bool = False,
    force: bool = False,
    name_choice: NameChoice | None = None,
    acknowledged_commit: str | None = None,
) -> Repair:
    """Report changes made by external writers. With `force` and `confirm`, adopt appended rows.

    With `confirm`, lost names and manifest versions are restored, and `name_choice` is applied. `acknowledged_commit`
    is a lost commit to publish again, because the caller knows that it was acknowledged. If the branch cannot be
    opened, pass None as `branch_state`. No rows are then adopted.
    """
    if force and not confirm:
        raise UsageError(reason="'force' requires 'confirm'; review the preview first")
    name_repairs = repair_names(store, name_choice or NameChoice(), confirm=confirm, actor=REPAIR_ACTOR)
    version_repairs = repair_manifests(store, confirm=confirm, acknowledged_commit=acknowledged_commit)
    checkup = check_graph(store, quick=True)
    partial_report = Repair(not confirm, (), damage=checkup.damage, readable=checkup.readable, names=name_repairs)
    if branch_state is None:
        return replace(partial_report, versions=version_repairs)
    table_drifts = list(_read_table_drifts(branch_state, store))
    is_damaged = any(finding.severity == "error" and finding.branch == branch_state.name for finding in checkup.damage)
    commit, errors = None, dict[TableKey, str]()
    if is_damaged:
        errors = {table_drift.table_key: _DAMAGED_BRANCH for table_drift in table_drifts}
    elif confirm:
        commit, errors = _adopt_rows(branch_state, is_forced=force)
    adopted_heads = adopted_versions([commit]) if commit is not None else {}
    table_reports = tuple(
        _table_report(table_drift, confirm, force, adopted_heads, errors) for table_drift in table_drifts
    )
    _record_missing_audits(branch_state)
    if force and not is_damaged:
        _record_refused(branch_state, table_drifts, table_reports)
    return Repair(
        not confirm,
        table_reports,
        commit.manifest_version if commit is not None else None,
        commit.id if commit is not None else None,
        checkup.damage,
        checkup.readable,
        name_repairs,
        version_repairs,
    )


def repair_manifests(
    store: Store, *, confirm: bool, acknowledged_commit: str | None = None
) -> tuple[VersionRepair, ...]:
    """Restore manifest versions that are provably lost, where possible.

    The caller guarantees that `acknowledged_commit` was acknowledged, so the commit is published again.
    """
    manifest_repairs = repair_missing_manifests(store, confirm=confirm, actor=REPAIR_ACTOR)
    fresh_store = without_caches(store)
    branch_logs = [read_branch_log(fresh_store, head) for head in read_heads(fresh_store, [])]
    lost_versions = find_lost_versions(fresh_store, branch_logs)
    actor = REPAIR_ACTOR
    return manifest_repairs + repair_versions(
        fresh_store, lost_versions, confirm=confirm, actor=actor, acknowledged_commit=acknowledged_commit
    )


@dataclass(frozen=True, slots=True)
class _TableDrift:
    """A table on the repaired branch or on another branch, and the drift at the table's HEAD.

    `already_reported` means that an earlier repair reported this drift as not repairable.
    """

    table_key: TableKey
    version: int
    drift: Drift
    other_branch: str | None = None
    already_reported: bool = False

    @property
    def label(self) -> str:
        """The table's name in reports, followed by its branch unless this is the branch being repaired."""
        return f"{self.table_key}@{self.other_branch}" if self.other_branch else self.table_key


def _read_table_drifts(branch_state: BranchState, store: Store) -> Iterator[_TableDrift]:
    """Yield the tables in the branch's state, followed by tables that only other branches contain."""
    own_state = branch_state.refresh().state
    yield from _read_state_drifts(store, own_state)
    seen_locations = {entry.location for entry in own_state.tables.values()}
    for head in read_heads(store, []):
        state = head.manifest.state
        other_tables = {
            type_key: table_entry
            for type_key, table_entry in state.tables.items()
            if table_entry.location not in seen_locations
        }
        seen_locations |= {entry.location for entry in other_tables.values()}
        for table_drift in _read_state_drifts(store, replace(state, tables=other_tables)):
            yield replace(table_drift, other_branch=head.label)


def _read_state_drifts(store: Store, state: GraphState) -> Iterator[_TableDrift]:
    """Yield the tables in a state, each with the drift since the version that the log records as adopted."""
    adopted_heads, fresh_store = _read_adopted_heads(store, state), without_caches(store)
    reported_heads: Mapping[str, int] | None = None
    for type_key, entry in sorted(state.tables.items()):
        drift = read_drift(fresh_store, entry.location, adopted_heads.get(entry.location, FIRST_VERSION))
        if reported_heads is None and drift.classification != "no_drift":
            reported_heads = reported_versions(store)
        already_reported = drift.head_version <= (reported_heads or {}).get(entry.location, 0)
        yield _TableDrift(type_key, entry.version, drift, already_reported=already_reported)


def _read_adopted_heads(store: Store, state: GraphState) -> Mapping[str, int]:
    log = HistoryLog(store, state)
    return adopted_versions(log.ancestors(state.head.commit_id).values())


def _table_report(
    table_drift: _TableDrift,
    confirm: bool,
    force: bool,
    adopted_heads: Mapping[str, int],
    errors_by_type: Mapping[TableKey, str],
) -> DatasetRepair:
    drift = table_drift.drift
    was_adopted = drift.location in adopted_heads
    action, skip_reason = _choose_action(table_drift, confirm, force)
    if skip_reason == _BREAKS_RULES and table_drift.table_key not in errors_by_type:
        action, skip_reason = "no_effect", None  # the appended version contained no rows
    if skip_reason == _BREAKS_RULES and errors_by_type.get(table_drift.table_key) == _DAMAGED_BRANCH:
        skip_reason = "damaged"
    return DatasetRepair(
        table_drift.label,
        drift.classification,
        "forced" if was_adopted else action,
        tuple(step.operation for step in drift.steps),
        table_drift.version,
        drift.head_version,
        was_adopted,
        None if was_adopted else skip_reason,
        drift.error or (errors_by_type.get(table_drift.table_key) if action == "refused" else None),
    )


def _choose_action(table_drift: _TableDrift, confirm: bool, force: bool) -> tuple[RepairAction, str | None]:
    """Choose the action for drift that this run did not adopt."""
    classification = table_drift.drift.classification
    harmless_actions: dict[DriftClassification, RepairAction] = {
        "no_drift": "no_op",
        "rebased": "no_op",
        "verified_maintenance": "no_effect",
    }
    if table_drift.drift.head_version < FIRST_VERSION:
        return "refused" if confirm else "preview", "damaged"
    if classification in harmless_actions:
        return harmless_actions[classification], None
    if table_drift.already_reported and not force:
        return "no_op", "seen"
    if table_drift.other_branch or not confirm:
        return "preview", "other_branch" if table_drift.other_branch else "needs_confirm"
    if classification == "appended":
        return "refused", "needs_force" if not force else _BREAKS_RULES
    return "refused", "not_only_appended_rows"


def _adopt_rows(branch_state: BranchState, *, is_forced: bool) -> tuple[Commit | None, dict[TableKey, str]]:
    """Adopt appended rows in one commit, omitting tables whose rows break a rule."""
    errors_by_type: dict[TableKey, str] = {}
    if not is_forced:
        return None, errors_by_type

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        errors_by_type.clear()
        return _plan_adoption(txn, errors_by_type)

    return publish(branch_state, prepare, CommitMetadata(actor=FORCE_ACTOR)), errors_by_type


def _plan_adoption(txn: WriteTxn, errors_by_type: dict[TableKey, str]) -> PublishPlan | None:
    """Return a plan that adopts rows on top of the transaction's base, whose log records the rows already adopted."""
    state = txn.base.state
    contract = read_schema(txn.store, state.schema)
    deltas: dict[TableKey, TableDelta] = {}
    adopted_heads: dict[str, int] = {}
    for table_drift in _read_state_drifts(txn.store, state):
        if table_drift.drift.classification != "appended":
            continue
        try:
            deltas[table_drift.table_key] = _appended_delta(txn, contract, table_drift)
        except OmnigraphError as error:
            errors_by_type[table_drift.table_key] = error.message
        else:
            adopted_heads[table_drift.drift.location] = table_drift.drift.head_version
    return _plan_valid_tables(txn, contract, deltas, adopted_heads, errors_by_type)


def _appended_delta(txn: WriteTxn, contract: StoredSchema, table_drift: _TableDrift) -> TableDelta:
    """Return the rows at HEAD that have not been adopted yet, with the table's columns."""
    type_key = table_drift.table_key
    drift = table_drift.drift
    fresh_store = without_caches(txn.store)
    table = txn.table(type_key)
    head_table = read_head_rows(fresh_store, drift.location, drift.head_version)
    if drift.adopted_version > FIRST_VERSION:
        adopted_table = read_head_rows(fresh_store, drift.location, drift.adopted_version)
        head_ids, adopted_ids = head_table["id"].to_pylist(), adopted_table["id"].to_pylist()
        head_table = head_table.filter(_mask_additional_ids(head_ids, adopted_ids))
    expected_schema = row_schema(table.schema)
    if not _has_same_columns(head_table.schema, expected_schema):
        names = ", ".join(head_table.schema.names)
        raise ConstraintViolation(f"the columns at HEAD ({names}) no longer match the table")
    head_table = head_table.select(expected_schema.names)
    _check_keys(contract, type_key, head_table)
    return build_table_delta(type_key, head_table, "insert")


def _mask_additional_ids(entity_ids: list[str], adopted_ids: list[str]) -> pa.Array:
    """Return a mask of the ids that have not been adopted yet.

    If an id occurs more often than it was adopted, its additional occurrences count as not adopted.
    """
    remaining = Counter(adopted_ids)
    mask = []
    for entity_id in entity_ids:
        is_adopted = remaining[entity_id] > 0
        remaining[entity_id] -= is_adopted
        mask.append(not is_adopted)
    return pa.array(mask, pa.bool_())


def _has_same_columns(actual_schema: pa.Schema, expected_schema: pa.Schema) -> bool:
    if sorted(actual_schema.names) != sorted(expected_schema.names):
        return False
    return all(
        actual_schema.field(column).type.equals(expected_schema.field(column).type) for column in actual_schema.names
    )


def _check_keys(contract: StoredSchema, type_key: TableKey, rows: pa.Table) -> None:
    """Check that no id is empty, and that the id of each keyed entity matches its key."""
    faults: list[str] = []

    def record_fault(_: int, error: OmnigraphError) -> None:
        faults.append(str(error.details.get("reason") or error.message))

    schema_type = type_for_key(contract.ir.catalog, type_key)
    entity_ids = rows["id"].combine_chunks()
    if entity_ids.null_count or pc.any(pc.equal(entity_ids, "")).as_py():
        faults.append("an id is empty")
    elif schema_type.key:
        check_ids_match_keys(key_ids(contract.ir, schema_type, rows, record_fault), entity_ids, record_fault)
    if faults:
        raise ConstraintViolation(faults[0])


def _plan_valid_tables(
    txn: WriteTxn,
    contract: StoredSchema,
    deltas: dict[TableKey, TableDelta],
    adopted_heads: dict[str, int],
    errors_by_type: dict[TableKey, str],
) -> PublishPlan | None:
    """Plan to adopt the rows of a set of tables that satisfies the rules. Omit and report the other tables."""
    state = txn.base.state
    while deltas:
        lookup = RecordingLookup(txn)
        delta, violations = check_delta(contract.ir.catalog, Delta(deltas), lookup, limit=None)
        if not violations:
            requirements = (SameSchema(state.schema.hash), *lookup.requirements)
            plan = stage(txn, delta, "repair", requirements)
            planned_locations = {state.tables[type_key].location for type_key in deltas}
            planned_heads = {
                location: head_version
                for location, head_version in adopted_heads.items()
                if location in planned_locations
            }
            return None if plan is None else replace(plan, details={REBASED_DETAIL: planned_heads})
        invalid_types = {violation.type_key for violation in violations} & deltas.keys()
        for violation in violations:
            errors_by_type.setdefault(violation.type_key, violation.to_error().message)
        deltas = {
            type_key: table_delta
            for type_key, table_delta in deltas.items()
            if invalid_types and type_key not in invalid_types
        }
    return None


def _record_refused(
    branch_state: BranchState, table_drifts: Iterable[_TableDrift], table_reports: Iterable[DatasetRepair]
) -> None:
    """Record drift that cannot be repaired, so that it is reported again only if it grows."""
    refused_heads = {
        table_drift.drift.location: table_drift.drift.head_version
        for table_drift, table_report in zip(table_drifts, table_reports, strict=True)
        if not table_drift.already_reported
        and table_drift.drift.head_version >= FIRST_VERSION
        and table_report.action in ("refused", "no_effect")
    }
    if refused_heads:
        record_external_changes_seen(branch_state.store, branch_state.name, FORCE_ACTOR, refused_heads)


def _record_missing_audits(branch_state: BranchState) -> None:
    """Write an audit object for every repair commit that lacks one, because a repair may have been interrupted."""
    state = branch_state.last_known().state
    commits: Iterable[Commit] = HistoryLog(branch_state.store, state).ancestors(state.head.commit_id).values()
    repair_commits = {commit.id: commit for commit in commits if REBASED_DETAIL in commit.details}
    if not repair_commits or branch_state.store.effects.read_only:
        return
    audited_ids = {outcome.operation_id for outcome in list_recovery_records(branch_state.store)}
    for commit in repair_commits.values():
        if commit.id not in audited_ids:
            record_repair(branch_state.store, commit.id, commit.branch or branch_state.name, commit.actor)
