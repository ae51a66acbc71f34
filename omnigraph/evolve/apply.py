"""Applies a schema plan to a branch: checked, staged, published in one commit or not at all.

The schema row and all tables change in the same commit. A concurrent schema change is a conflict.
If no rows must be rewritten, the commit is retried over concurrent writes. Otherwise it is a long
operation, which other processes finish or discard if this process dies; writers that publish first
win.
"""

from collections.abc import Sequence

from omnigraph.errors import ReadSetConflict
from omnigraph.history.commit import Commit, SchemaRow
from omnigraph.history.line import Line
from omnigraph.history.long import publish_long
from omnigraph.history.plan import (
    PublishPlan,
    Requirement,
    SameContent,
    SameSchema,
    Signature,
    WriteTxn,
    hold,
)
from omnigraph.history.publish import publish
from omnigraph.history.schemas import Contract, write_schema

from .judge import judge, judged_keys
from .proposal import SchemaPlan
from .tables import Tables, stage_tables, writes_data

OPERATION = "schema_apply"


def check_plan(line: Line, plan: SchemaPlan) -> None:
    """Raise the error that applying the plan would raise; writes nothing."""
    refusal = plan.migration.refusal()
    if refusal is not None:
        raise refusal
    txn = WriteTxn(line.store, line.name, line.refresh(), "", 0)
    _Judge(plan)(txn)


def apply_plan(
    line: Line,
    plan: SchemaPlan,
    signature: Signature,
    conditions: Sequence[Requirement] = (),
) -> Commit | None:
    """Publish a plan; return None when there is nothing to change.

    Raises `SchemaUnsupported` for a plan that cannot be applied, `SchemaViolation` when data does
    not fit, `ReadSetConflict` when the schema of the branch changed since the plan was made.
    """
    refusal = plan.migration.refusal()
    if refusal is not None:
        raise refusal
    if not plan.steps:
        return None
    base = WriteTxn(line.store, line.name, line.refresh(), "", 0)
    judged = _Judge(plan)
    hold(conditions, base)
    judged(base)  # before the writer slot is taken: a long scan must not block writers
    if writes_data(plan, base):
        return _apply_long(line, plan, signature, conditions, judged)
    schema = _Written(plan)

    def prepare(txn: WriteTxn) -> PublishPlan:
        return _stage(plan, txn, judged, schema)

    return publish(line, prepare, signature, conditions)


def _apply_long(
    line: Line,
    plan: SchemaPlan,
    signature: Signature,
    conditions: Sequence[Requirement],
    judged: "_Judge",
) -> Commit | None:
    schema = _Written(plan)

    def stage(txn: WriteTxn) -> PublishPlan:
        hold(conditions, txn)
        return _stage(plan, txn, judged, schema, conditions)

    types = (one for one in plan.before.ir.types if one.kind != "interface")
    keys = tuple(f"{one.kind}:{one.name}" for one in types)
    return publish_long(line, OPERATION, stage, signature, keys)


class _Judge:
    """Checks the data of a plan, each table content once; a passed content stays valid."""

    def __init__(self, plan: SchemaPlan) -> None:
        self.plan = plan
        self.keys = judged_keys(plan)
        self.passed: dict[str, str] | None = None

    def __call__(self, txn: WriteTxn) -> list[Requirement]:
        """Raise for data that does not fit; return requirements that keep the checked content."""
        _same_schema(self.plan, txn)
        entries = {key: txn.base.state.tables[key] for key in sorted(self.keys)}
        contents = {key: one.content_id for key, one in entries.items()}
        if self.passed != contents:
            judge(self.plan, txn)
            self.passed = contents
        return [SameContent(key, one.content_id, one.version) for key, one in entries.items()]


class _Written:
    """Writes the schema object once for all attempts."""

    def __init__(self, plan: SchemaPlan) -> None:
        self.plan = plan
        self.row: tuple[int, SchemaRow] | None = None

    def __call__(self, txn: WriteTxn, made: Tables) -> SchemaRow:
        epoch = txn.base.state.head.gc_epoch
        # A garbage collection since then may have deleted the object.
        if self.row is None or self.row[0] != epoch:
            erased = tuple(sorted({*self.plan.before.erased, *made.erased}))
            contract = Contract(self.plan.source, self.plan.after, erased)
            self.row = epoch, write_schema(txn.store, contract)
        return self.row[1]


def _stage(
    plan: SchemaPlan,
    txn: WriteTxn,
    judged: _Judge,
    schema: _Written,
    conditions: Sequence[Requirement] = (),
) -> PublishPlan:
    needs = judged(txn)
    made = stage_tables(plan, txn)
    return PublishPlan(
        OPERATION,
        requirements=(*conditions, SameSchema(plan.base.hash), *needs, *made.seen),
        registered=made.registered,
        dropped=frozenset(made.dropped),
        adopted=made.adopted,
        schema=schema(txn, made),
        files=made.files,
    )


def _same_schema(plan: SchemaPlan, txn: WriteTxn) -> None:
    """Require the schema row that the plan was made for; any other schema needs a new plan."""
    now = txn.base.state.schema
    if now != plan.base:
        raise ReadSetConflict(
            "the schema of the branch changed since the plan was made",
            member="schema",
            expected=plan.base.hash,
            actual=now.hash,
            hint="plan the change again and review it",
        )
