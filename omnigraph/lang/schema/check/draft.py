"""Partially checked declarations that one check passes to the next."""

from omnigraph.diagnostics import Span
from omnigraph.lang.schema import catalog, model
from omnigraph.record import record


@record
class Site:
    """A property: its declaration, and its definition as far as it is known."""

    written: model.Property
    made: catalog.Property

    @property
    def readable(self) -> bool:
        """Return whether the type was read without an error."""
        return not self.written.refused

    def annotation(self, name: str) -> model.Annotation | None:
        """Return the first annotation with this name, or None."""
        return next((a for a in self.written.annotations if a.name.text == name), None)


@record
class Draft:
    """A declaration with its properties, for a node including those of its interfaces.

    `has_all_interfaces` is False if an interface could not be read: a missing property may then
    belong to that interface and must not be reported.
    """

    kind: catalog.TypeKind
    name: model.Name
    sites: dict[str, Site]
    constraints: tuple[model.Constraint, ...] = ()
    complete: bool = True

    @property
    def label(self) -> str:
        """Return the label used in messages: ``node `Lamp```."""
        return f"{self.kind} `{self.name.text}`"


def span_of(site: Site, mark: str) -> Span:
    """Return the position of an inline constraint such as `@key` on a property."""
    found = site.annotation(mark)
    return found.span if found is not None else site.written.span
