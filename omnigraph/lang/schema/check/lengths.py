"""Check the lengths of type and property names, which are also used as file and column names.

Only declared names are checked. Names already in use in the graph are exempt, so a schema with long names from an
earlier release can still be changed.
"""

from collections.abc import Container, Iterable, Iterator

from omnigraph.lang.schema import model
from omnigraph.values.name_rules import MAX_NAME_BYTES, find_length_fault, quote_name

from .findings import CheckStage, SchemaFindings
from .properties import declared_properties


def check_name_lengths(
    declarations: Iterable[model.Declaration], existing_names: Container[str], findings: SchemaFindings
) -> None:
    """Reject new type and property names that are too long."""
    for declaration in declarations:
        for name_kind, name in _declared_names(declaration):
            length_fault = find_length_fault(name.text)
            if length_fault is not None and name.text not in existing_names:
                message = f"{quote_name(name.text)} cannot be used as a {name_kind} name: {length_fault}"
                hint = f"choose a name with at most {MAX_NAME_BYTES} characters"
                findings.add(CheckStage.CATALOG, name.span, message, hint)


def _declared_names(declaration: model.Declaration) -> Iterator[tuple[str, model.Name]]:
    yield "type", declaration.name
    for declared_property in declared_properties(declaration):
        yield "property", declared_property.name
