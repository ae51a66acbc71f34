"""Generate schema text from dataclasses and pydantic models.

A class becomes a node type, and its fields become properties. A class with two fields that refer to other classes
becomes an edge type from the first of those classes to the second. This module recognizes pydantic models by their
members and never imports pydantic.
"""

import dataclasses
import enum
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, get_type_hints

from omnigraph.errors import UsageError
from omnigraph.errors.counts import format_count
from omnigraph.lang.schema.merge.print_slots import quote
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType, ScalarType

from .proposal import ProposedProperty, ProposedType, print_types
from .python_types import PythonType, to_property_type, unwrap_annotation

_TYPES_HINT = (
    "use str, bool, int, float, bytes, date, datetime, an Enum, a Literal of strings or a list of scalars, "
    'or specify the type, as in Annotated[list[float], "Vector(8)"]'
)


@record
class ClassField:
    """A field in a class. `default` is None if the field has no default."""

    name: str
    type: PythonType
    default: Any = None
    description: str | None = None


def propose_classes(classes: Sequence[type]) -> str:
    """Return schema text with one type per class, in the given order."""
    names = {cls.__name__: cls for cls in classes}
    return print_types(_propose_class(cls, names) for cls in classes)


def _propose_class(cls: type, classes: Mapping[str, type]) -> ProposedType:
    fields = list(_class_fields(cls, classes))
    endpoints = {field.name: target for field in fields if (target := _endpoint_type(field, classes)) is not None}
    if len(endpoints) not in (0, 2):
        raise UsageError(
            reason=f"{cls.__name__} has {format_count(len(endpoints), 'reference')} to other classes; expected 0 or 2",
            hint="an edge class must have two fields typed as node classes, and a node class must have none",
        )
    own_fields = [field for field in fields if field.name not in endpoints]
    members = tuple(member for field in own_fields for member in _field_members(field, is_node=not endpoints))
    source_name, target_name = [endpoint.__name__ for endpoint in endpoints.values()] if endpoints else (None, None)
    properties = tuple(_propose_property(cls, field) for field in own_fields)
    annotations = tuple(_class_annotations(cls))
    return ProposedType(cls.__name__, properties, source_name, target_name, annotations, members)


def _class_fields(cls: type, classes: Mapping[str, type]) -> Iterator[ClassField]:
    if isinstance(model_fields := getattr(cls, "model_fields", None), Mapping):
        yield from (_model_field(name, info) for name, info in model_fields.items())
        return
    if not dataclasses.is_dataclass(cls):
        raise UsageError(reason=f"{cls.__name__} is neither a dataclass nor a pydantic model")
    hints = get_type_hints(cls, localns=dict(classes), include_extras=True)
    for field in dataclasses.fields(cls):
        default = None if field.default is dataclasses.MISSING else field.default
        yield ClassField(field.name, unwrap_annotation(hints[field.name]), default)


def _model_field(name: str, info: Any) -> ClassField:
    unwrapped = unwrap_annotation(info.annotation)
    inner_metadata = [inner for note in unwrapped.metadata for inner in getattr(note, "metadata", (note,))]
    python_type = dataclasses.replace(unwrapped, metadata=(*inner_metadata, *info.metadata))
    has_default = not info.is_required() and info.default_factory is None
    return ClassField(name, python_type, info.default if has_default else None, info.description)


def _endpoint_type(field: ClassField, classes: Mapping[str, type]) -> type | None:
    """Return the class that a field refers to (by its type or in `Annotated[str, Person]`), or None."""
    candidates = (field.type.type, *field.type.metadata)
    return next((candidate for candidate in candidates if any(candidate is cls for cls in classes.values())), None)


def _propose_property(cls: type, field: ClassField) -> ProposedProperty:
    property_type = to_property_type(field.type)
    if property_type is None:
        type_text = getattr(field.type.type, "__name__", str(field.type.type))
        reason = f"{cls.__name__}.{field.name} has the type {type_text}, which properties do not support"
        raise UsageError(reason=reason, hint=_TYPES_HINT)
    annotations = [note for note in field.type.metadata if isinstance(note, str) and note.startswith("@")]
    inline_annotations = [note for note in annotations if not note.startswith(("@range", "@check"))]
    default = _default_text(property_type, field.default)
    if default is not None:
        inline_annotations.append(f"@default({default})")
    if field.description:
        inline_annotations.append(f"@description({quote(field.description)})")
    return ProposedProperty(field.name, property_type, tuple(inline_annotations))


def _default_text(property_type: PropertyType, default: Any) -> str | None:
    """Return a default as it is written in a schema, or None if there is none or a schema cannot express it."""
    value = default.value if isinstance(default, enum.Enum) else default
    if value is None or property_type.is_list or property_type.scalar in (ScalarType.BLOB, ScalarType.VECTOR):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime | date):
        return quote(value.isoformat())
    return quote(value) if isinstance(value, str) else None


def _field_members(field: ClassField, *, is_node: bool) -> Iterator[str]:
    """Yield a field's constraints: `@range` and `@check` as written, and pydantic's `ge` and `le` bounds."""
    for note in field.type.metadata:
        if isinstance(note, str) and note.startswith(("@range(", "@check(")):
            constraint, _, arguments = note.partition("(")
            yield f"{constraint}({field.name}, {arguments}"
    bounds = [_find_bound(field, side) for side in ("ge", "le")]
    if is_node and any(isinstance(bound, int | float) for bound in bounds):
        yield f"@range({field.name}, {'..'.join('' if bound is None else repr(bound) for bound in bounds)})"


def _find_bound(field: ClassField, side: str) -> Any:
    return next((getattr(note, side) for note in field.type.metadata if hasattr(note, side)), None)


def _class_annotations(cls: type) -> Iterator[str]:
    """Yield the docstring's first line as a description, unless it is the field list that dataclasses generate."""
    first_line = (cls.__dict__.get("__doc__") or "").strip().partition("\n")[0]
    if first_line and not first_line.startswith(f"{cls.__name__}("):
        yield f"@description({quote(first_line)})"
