"""Read a graph's schema, and plan and apply schema changes."""

from collections.abc import Iterator, Sequence
from typing import Any

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir import SchemaIR, ordered_key_columns
from omnigraph.lang.schema.migrate import describe_step
from omnigraph.lang.schema.migrate.steps import MigrationStep
from omnigraph.server import engine_access
from omnigraph.server.call import ServerCall
from omnigraph.server.models.answers import KeyOutput, SchemaApplyOutput, SchemaOutput, SchemaPlanOutput
from omnigraph.server.models.requests import EntityKindName, SchemaApplyRequest, SchemaPlanRequest
from omnigraph.server.wire.answer import Answer, json_answer
from omnigraph.server.wire.conditions import make_etag, matches_etag

from .documents import commit_output
from .writes import REPLAY_HEADER


def describe_steps(documents: Sequence[dict[str, Any]], steps: Sequence[MigrationStep]) -> list[dict[str, Any]]:
    """Return the JSON for migration steps, with a description of each step."""
    return [document | {"description": describe_step(step)} for document, step in zip(documents, steps, strict=True)]


def get_schema(call: ServerCall) -> Answer:
    """Return the schema of a branch or a revision."""
    graph = call.graph_for_read(call.query_values.get("branch"), call.query_values.get("snapshot"))
    graph.refresh()
    schema, head = graph.schema, graph.head
    etag = make_etag(head.id, "schema")
    if matches_etag(call.headers.get("if-none-match"), etag):
        return Answer(b"", status=304, headers={"ETag": etag})
    document = SchemaOutput(
        schema_source=schema.source,
        graph_branch=graph.branch_name,
        graph_commit_id=head.id,
        shape_hash=schema.current.shape_hash,
        keys=list(_describe_keys(schema.ir)),
    )
    return json_answer(document, headers={"ETag": etag})


def _describe_keys(ir: SchemaIR) -> Iterator[KeyOutput]:
    """Yield the keys of all types, with their columns in the order of the property ids, as in an id."""
    entity_types: tuple[NodeType | EdgeType, ...] = (*ir.catalog.nodes, *ir.catalog.edges)
    for entity_type in entity_types:
        if entity_type.key:
            kind: EntityKindName = "edge" if isinstance(entity_type, EdgeType) else "node"
            columns = ordered_key_columns(ir, entity_type.name, kind)
            yield KeyOutput(kind=kind, type=entity_type.name, columns=list(columns))


def plan_schema(call: ServerCall) -> Answer:
    """Return the migration steps from the schema of a branch to another schema."""
    body = call.body_as(SchemaPlanRequest)
    graph = call.graph_for_read(body.branch)
    source = engine_access.schema_text(body.schema_source)
    proposed = graph.schema.plan(source, allow_data_loss=body.allow_data_loss)
    plan = proposed.to_json()
    return json_answer(
        SchemaPlanOutput(
            uri=call.graph.uri,
            supported=plan["supported"],
            step_count=plan["step_count"],
            steps=describe_steps(plan["steps"], proposed.steps),
            warnings=plan["warnings"],
        )
    )


def apply_schema(call: ServerCall) -> Answer:
    """Change the schema of a branch as one commit."""
    body = call.body_as(SchemaApplyRequest)
    graph = call.graph_for_write(body.branch)
    applied = graph.schema.apply(
        engine_access.schema_text(body.schema_source),
        allow_data_loss=body.allow_data_loss,
        if_commit=call.condition,
        message=body.message,
        dry_run=body.dry_run,
        idempotency_key=call.idempotency_key,
    )
    members = applied.to_json()
    document = SchemaApplyOutput(
        uri=call.graph.uri,
        supported=members["supported"],
        applied=applied.applied,
        step_count=members["step_count"],
        graph_manifest_version=members["graph_manifest_version"],
        steps=describe_steps(members["steps"], applied.steps),
        commit=None if applied.commit is None else commit_output(applied.commit, call),
        warnings=members["warnings"],
    )
    if call.uses_old_names:
        # In version 0.3, the manifest version is required, even if nothing was applied.
        applied_version = document.graph_manifest_version
        document.manifest_version = graph.snapshot.manifest_version if applied_version is None else applied_version
    return json_answer(document, headers={REPLAY_HEADER: "true"} if applied.replayed else {})
