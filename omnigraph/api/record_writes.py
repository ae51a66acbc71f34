"""Upsert or patch records in one commit.

This module reads the records, and determines which rows the write depends on and which digest identifies a repeated
request. The engine is imported only when something is written.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.api.handle import Handle, report_missing_branch
from omnigraph.api.log_events import log_operation
from omnigraph.api.results.receipt import Receipt, build_receipt
from omnigraph.api.write_options import AttemptCounter, WriteOptions, describe_load_request
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.values.name_rules import require_text

if TYPE_CHECKING:
    from omnigraph.engine.writes.record_writes import RecordWrite
    from omnigraph.ingest.given_columns import Verb


def write_partial_records(handle: Handle, type_name: str, data: Any, verb: "Verb", options: WriteOptions) -> Receipt:
    """Upsert or patch records in one commit. If nothing changes, no commit is made."""
    from omnigraph.engine.writes.mutate import run_operations
    from omnigraph.history.schemas import read_schema

    handle.require_writable("loading data")
    branch = handle.branch_name
    with (
        log_operation("load", branch) as event,
        report_missing_branch(handle.branch_state),
        handle.store.effects.recording() as requests,
        handle.accept_blobs(),
    ):
        schema_row = handle.branch_state.last_known().state.schema
        record_write = read_record_write(read_schema(handle.store, schema_row).ir, type_name, data, verb)
        requirement, attempts = handle.require_unchanged(record_write.row_filters()), AttemptCounter()
        options = handle.with_actor(options)
        event.start_phase("write")
        request = describe_record_write(verb, type_name, data) if options.idempotency_key else None
        outcome = run_operations(
            handle.branch_state,
            [record_write.run],
            "load",
            metadata=options.commit_metadata(request),
            conditions=options.requirements(requirement, attempts),
            schema_hash=schema_row.hash,
        )
        event.requests, event.retries = len(requests), attempts.retries
        event.rows = record_write.partial_records.record_count
        commit = handle.record_write(outcome.commit, requirement)
    receipt = replace(build_receipt(outcome, branch, event.elapsed_seconds()), commit=commit)
    is_keyed = not any(group.ids_generated for group in record_write.partial_records.groups)
    return replace(receipt, ids=record_write.named_ids) if is_keyed or not outcome.replayed else receipt


def read_record_write(ir: SchemaIR, type_name: str, data: Any, verb: "Verb") -> "RecordWrite":
    """Read the records for an upsert or a patch. Raise an error for the first problem."""
    from omnigraph.engine.writes.record_writes import RecordWrite
    from omnigraph.ingest.given_columns import read_partial_records

    return RecordWrite(read_partial_records(ir, require_text(type_name, "type"), data, verb), verb)


def describe_record_write(verb: "Verb", type_name: str, data: Any) -> object:
    """Return a description that identifies the request. Upserts have the same description as in earlier releases."""
    return describe_load_request("merge" if verb == "upsert" else verb, {type_name: data})
