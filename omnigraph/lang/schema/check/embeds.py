"""Check that the source property of each `@embed` vector exists."""

from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import ScalarType

from .draft import PropertyDraft, TypeDraft
from .findings import CheckStage, SchemaFindings


def check_embeddings(node_draft: TypeDraft, findings: SchemaFindings) -> None:
    """Check that every `@embed` in a node refers to a String property of the same node."""
    for vector_draft in node_draft.properties.values():
        if vector_draft.definition.embed is not None:
            _check_embedding_source(node_draft, vector_draft, vector_draft.definition.embed.source, findings)


def _check_embedding_source(
    node_draft: TypeDraft, vector_draft: PropertyDraft, source_name: str, findings: SchemaFindings
) -> None:
    annotation = vector_draft.find_annotation("embed")
    span = annotation.arguments[0].span if annotation is not None else vector_draft.declaration.span
    source_draft = node_draft.properties.get(source_name)
    if source_draft is None:
        if node_draft.has_all_interfaces:
            message = (
                f"`@embed` on `{vector_draft.definition.name}`: {node_draft.label} has no property `{source_name}`"
            )
            findings.add(CheckStage.ANNOTATION, span, message, did_you_mean(source_name, node_draft.properties))
        return
    source_type = source_draft.definition.type
    if source_draft.has_valid_type and (source_type.scalar is not ScalarType.STRING or source_type.is_list):
        message = (
            f"`@embed` on `{vector_draft.definition.name}`: the source must be a String property, "
            f"but `{source_name}` is {source_type.display()}"
        )
        findings.add(CheckStage.ANNOTATION, span, message)
