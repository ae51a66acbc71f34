"""What is wrong with a schema, collected over all checks.

Owns the order in which findings are shown: by stage of checking, then by place. The first one
gives the error its class, so the order of the stages is part of the language.
"""

from enum import IntEnum

from omnigraph.diagnostics import Diagnostic, Kind, Source, Span


class Stage(IntEnum):
    """The checks in their order; all up to `CONSTRAINT` are parse errors."""

    PROPERTY = 1
    INTERFACE = 2
    ANNOTATION = 3
    CONSTRAINT = 4
    CATALOG = 5
    SHAPE = 6

    @property
    def kind(self) -> Kind:
        """The class of the errors of this stage."""
        return "catalog" if self >= Stage.CATALOG else "parse"


class Findings:
    """Collects errors; the same error at the same place is kept once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: dict[tuple[Stage, Span, str], Diagnostic] = {}

    def add(self, stage: Stage, span: Span, message: str, hint: str | None = None) -> None:
        """Keep an error and go on."""
        made = Diagnostic.at(self.source, span, message, kind=stage.kind, hint=hint)
        self._found.setdefault((stage, span, message), made)

    def line(self, span: Span) -> int:
        """The line on which a span begins."""
        return self.source.locate(span.start)[0]

    def in_order(self) -> tuple[Diagnostic, ...]:
        """All errors, by stage, then by place."""
        keys = sorted(self._found, key=lambda k: (k[0], k[1].start, k[1].end, k[2]))
        return tuple(self._found[key] for key in keys)
