"""Checks the length of type and property names, which become file and column names.

Checks declared names only. Names that the graph already has are exempt, so that a schema with a
long name from an earlier release can still be changed.
"""

from collections.abc import Container, Iterable, Iterator

from omnigraph.lang.schema import model
from omnigraph.naming import LONGEST, find_length_fault, quote_name

from .findings import Findings, Stage
from .properties import written_properties


def check_name_lengths(
    declarations: Iterable[model.Declaration], existing: Container[str], findings: Findings
) -> None:
    """Reject new type and property names that are too long."""
    for declaration in declarations:
        for kind, name in _declared_names(declaration):
            fault = find_length_fault(name.text)
            if fault is not None and name.text not in existing:
                message = f"{quote_name(name.text)} cannot name a {kind}: {fault}"
                hint = f"choose a name of at most {LONGEST} characters"
                findings.add(Stage.CATALOG, name.span, message, hint)


def _declared_names(declaration: model.Declaration) -> Iterator[tuple[str, model.Name]]:
    yield "type", declaration.name
    for declared in written_properties(declaration):
        yield "property", declared.name
