"""Compare annotations. A migration may change descriptions and instructions, but no other annotations."""

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import StoredAnnotation

from .steps import MigrationStep, make_unsupported_change

# These annotations are meant only for people. Any other annotation may affect programs.
READER_ANNOTATIONS = frozenset({"description", "instruction"})


def reader_texts_differ(
    old_annotations: tuple[StoredAnnotation, ...], new_annotations: tuple[StoredAnnotation, ...]
) -> bool:
    """Return whether a description or an instruction changed."""
    return _reader_annotations(old_annotations) != _reader_annotations(new_annotations)


def refuse_annotation_changes(
    entity_label: str, old_annotations: tuple[StoredAnnotation, ...], new_annotations: tuple[StoredAnnotation, ...]
) -> Iterator[MigrationStep]:
    """Yield an unsupported step that lists all changed annotations other than descriptions and instructions."""
    old_opaque = _opaque_annotations(old_annotations)
    new_opaque = _opaque_annotations(new_annotations)
    if old_opaque != new_opaque:
        changed_names = ", ".join(
            f"@{annotation_name}"
            for annotation_name in sorted({annotation.name for annotation in old_opaque ^ new_opaque})
        )
        reason = f"unknown annotations ({changed_names}) cannot be changed"
        yield make_unsupported_change("OG-BC-105", entity_label, reason)


def _reader_annotations(annotations: tuple[StoredAnnotation, ...]) -> set[StoredAnnotation]:
    return {annotation for annotation in annotations if annotation.name in READER_ANNOTATIONS}


def _opaque_annotations(annotations: tuple[StoredAnnotation, ...]) -> set[StoredAnnotation]:
    return {annotation for annotation in annotations if annotation.name not in READER_ANNOTATIONS}
