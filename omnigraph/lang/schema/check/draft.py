"""The half-checked forms that pass from one check to the next."""

from omnigraph.diagnostics import Span
from omnigraph.lang.schema import catalog, model
from omnigraph.record import record


@record
class Site:
    """A property: as it is written, and what it means so far."""

    written: model.Property
    made: catalog.Property

    @property
    def readable(self) -> bool:
        """Whether its type may be trusted."""
        return not self.written.refused

    def annotation(self, name: str) -> model.Annotation | None:
        """The first annotation of that name."""
        return next((a for a in self.written.annotations if a.name.text == name), None)


@record
class Draft:
    """A declaration with its properties, for a node those of its interfaces included.

    `complete` is False when an interface could not be read: properties may then be missing that
    are not at fault.
    """

    kind: catalog.TypeKind
    name: model.Name
    sites: dict[str, Site]
    constraints: tuple[model.Constraint, ...] = ()
    complete: bool = True

    @property
    def label(self) -> str:
        """How messages call it: ``node `Lamp```."""
        return f"{self.kind} `{self.name.text}`"


def span_of(site: Site, mark: str) -> Span:
    """Where a mark such as `@key` stands on a property."""
    found = site.annotation(mark)
    return found.span if found is not None else site.written.span
