"""Mutations: run statements in order, each seeing the writes of earlier ones, as one commit.

Owns running a write plan. All statements run on an overlay of one base. If another writer commits
first, they run again on the newer base, with the same timestamp and the same generated ids.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from omnigraph import ids
from omnigraph.errors import InputError, ReadSetConflict
from omnigraph.history.commit import Commit
from omnigraph.history.line import Line
from omnigraph.history.log import Log
from omnigraph.history.memory import Shown
from omnigraph.history.plan import PublishPlan, Requirement, SameSchema, Signature, WriteTxn
from omnigraph.history.publish import publish
from omnigraph.history.schemas import read_schema
from omnigraph.history.snapshot import Snapshot
from omnigraph.ingest.load import Parsed
from omnigraph.ingest.stage import stage, stage_tables
from omnigraph.lang.query import plan
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.query.parameters import bind_parameters
from omnigraph.rules.check import check, type_named
from omnigraph.rules.delta import FRESH
from omnigraph.rules.identity import repeated_ids, resolve
from omnigraph.rules.unique import repeated_records
from omnigraph.storage.table import commit as commit_table
from omnigraph.values.coerce import Mode

from .overlay import Overlay
from .statements import Mint, Tally, execute


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a write; `replayed` if an earlier commit with the same key was found instead."""

    commit: Commit | None
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    replayed: bool = False


Operation = Callable[[Overlay, Tally, Mint], None]
"""One step of a write: changes an overlay. It may run several times, each on another base."""


def mutation(query: CompiledQuery, params: Mapping[str, Any], mode: Mode = "standard") -> Operation:
    """Return the operation of a mutation query; its timestamp is taken now."""
    written = query.plan
    if not isinstance(written, plan.WritePlan):
        raise InputError(reason=f"query `{query.name}` only reads; expected a mutation")
    bound = bind_parameters(query.parameters, params, mode, ids.now_millis())

    def run(overlay: Overlay, tally: Tally, mint: Mint) -> None:
        for statement in written.statements:
            execute(overlay, statement, bound, tally, mint)

    return run


def loading(parsed: Parsed) -> Operation:
    """Return the operation of an append or merge load inside a larger write."""
    if parsed.mode == "overwrite":
        raise InputError(reason="a transaction cannot overwrite whole types")

    def run(overlay: Overlay, tally: Tally, mint: Mint) -> None:
        for key, one in parsed.delta.tables.items():
            type_ = type_named(overlay.catalog, key)
            broken = next(chain(repeated_records(type_, one), repeated_ids(one)), None)
            if broken is not None:
                raise broken.error()
            origin = int(one.row_ids[0]) if len(one.row_ids) else FRESH
            overlay.write(key, one.rows, origin, strict=one.strict)
            kind, _, name = key.partition(":")
            tally.count(kind, name, parsed.counts[key])
            tally.ids.setdefault(name, []).extend(one.ids.to_pylist())

    return run


def run_write(  # noqa: PLR0913 - all but three are named
    line: Line,
    query: CompiledQuery,
    params: Mapping[str, Any],
    *,
    signature: Signature | None = None,
    conditions: Sequence[Requirement] | None = None,
    schema_hash: str | None = None,
    mode: Mode = "standard",
) -> Outcome:
    """Run a mutation query as one commit, or none if nothing matched.

    `conditions` are the caller's requirements, checked on every base and never retried. Without
    them, an update or delete requires its tables to be as this process knows them at the start.
    `schema_hash` identifies the schema that the query was compiled with.
    """
    operation = mutation(query, params, mode)
    if conditions is None:
        shown = Shown(line.base().state.tables)
        keys = strict_keys(query)
        conditions = (shown.strict(keys),) if keys else ()
    return run_operations(
        line, [operation], "mutate", signature=signature, conditions=conditions, schema=schema_hash
    )


def strict_keys(query: CompiledQuery) -> tuple[str, ...]:
    """Return the tables whose content decides what a mutation changes: updates and deletes."""
    found: dict[str, None] = {}
    for one in query.plan.statements if isinstance(query.plan, plan.WritePlan) else ():
        if isinstance(one, plan.UpdateRows):
            found[f"node:{one.type_name}"] = None
        elif isinstance(one, plan.DeleteRows):
            found[f"{one.kind}:{one.type_name}"] = None
            found |= dict.fromkeys(f"edge:{name}" for name in one.cascades)
    return tuple(found)


def run_operations(  # noqa: PLR0913 - all but three are named
    line: Line,
    operations: Iterable[Operation],
    name: str,
    *,
    signature: Signature | None = None,
    conditions: Sequence[Requirement] = (),
    schema: str | None = None,
    mint: Mint | None = None,
) -> Outcome:
    """Run operations one after another as one commit; a transaction has several.

    `id_generator` returns the ids that an earlier run of the operations generated.
    """
    operations, mint = list(operations), mint or Mint()
    expected = schema or line.base().state.schema.hash
    done: dict[str, Tally] = {}

    def prepare(txn: WriteTxn) -> PublishPlan | None:
        overlay = open_overlay(txn, expected)
        mint.restart()
        tally = done[txn.commit_id] = Tally()
        for one in operations:
            one(overlay, tally, mint)
        return _plan(overlay, name)

    commit = publish(line, prepare, signature, conditions)
    if commit is not None and commit.id not in done:
        return Outcome(commit, replayed=True)
    if commit is None:  # the operations cancelled out, or changed nothing
        return Outcome(None)
    tally = done[commit.id]
    return Outcome(commit, tally.nodes, tally.edges, tally.ids)


def open_overlay(txn: WriteTxn, schema: str | None = None) -> Overlay:
    """Open an empty overlay; raise ReadSetConflict if the base has another schema than expected."""
    row = txn.base.state.schema
    if schema is not None and row.hash != schema:
        raise ReadSetConflict(member="schema", expected=schema, actual=row.hash)
    return Overlay(txn, read_schema(txn.store, row).ir)


def overlay_snapshot(overlay: Overlay) -> Snapshot:
    """Return the overlay's content as a snapshot of private, unpublished table versions."""
    txn = overlay.txn
    delta, _ = resolve(overlay.delta(), overlay.lookup)
    state = txn.base.state
    tables = dict(state.tables)
    for key, staged in stage_tables(txn, delta).items():
        version = commit_table(txn.store, txn.table(key), staged).version
        entry = tables[key]
        tables[key] = replace(
            entry, lance_version=version, content_id=txn.commit_id, rows=entry.rows + staged.rows
        )
    head = state.head.commit_id
    log = Log(txn.store, state)
    return Snapshot(txn.store, txn.branch, head, txn.base.version, state.schema, tables, log)


def _plan(overlay: Overlay, name: str) -> PublishPlan | None:
    delta = overlay.delta()
    if not delta.tables:
        return None
    delta, found = check(overlay.catalog, delta, overlay.lookup)
    if found:
        raise found[0].error()
    schema = SameSchema(overlay.txn.base.state.schema.hash)
    return stage(overlay.txn, delta, name, (schema, *overlay.lookup.requirements))
