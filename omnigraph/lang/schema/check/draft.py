"""Partially checked declarations that one check passes to the next."""

from omnigraph.errors.diagnostics import Span
from omnigraph.lang.schema import catalog, model
from omnigraph.records.frozen import record


@record
class PropertyDraft:
    """A property declaration and the parts of its definition that have been checked so far."""

    declaration: model.Property
    definition: catalog.PropertyDefinition

    @property
    def has_valid_type(self) -> bool:
        """Return whether the declared type is valid."""
        return not self.declaration.type_rejected

    def find_annotation(self, annotation_name: str) -> model.Annotation | None:
        """Return the first annotation with this name, or None if there is none."""
        return next(
            (annotation for annotation in self.declaration.annotations if annotation.name.text == annotation_name), None
        )


@record
class TypeDraft:
    """A declaration with its properties. A node's draft also contains the properties of its interfaces.

    `has_all_interfaces` is False if an interface is invalid. In that case, a missing property may belong to that
    interface, so it must not be reported.
    """

    kind: catalog.TypeKind
    name: model.Name
    properties: dict[str, PropertyDraft]
    constraints: tuple[model.Constraint, ...] = ()
    has_all_interfaces: bool = True

    @property
    def label(self) -> str:
        """Return the declaration's label for messages, such as ``node `Lamp```."""
        return f"{self.kind} `{self.name.text}`"


def inline_constraint_span(property_draft: PropertyDraft, constraint_name: str) -> Span:
    """Return the position of an inline constraint, such as `@key`, on a property."""
    annotation = property_draft.find_annotation(constraint_name)
    return annotation.span if annotation is not None else property_draft.declaration.span
