"""Translate Python annotations to property types, such as `int` to I64 and `str | None` to String?.

`Annotated` adds what Python annotations cannot express: a string that starts with `@` is a schema annotation, and a
type name such as `"I32"` or `"Vector(8)"` replaces the default type.
"""

import enum
import re
import types
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from omnigraph.records.frozen import record
from omnigraph.values import PropertyType, ScalarType

key: Final = "@key"
"""Marks a field as part of the key, as in `name: Annotated[str, omnigraph.key]`."""

_SCALARS: dict[Any, ScalarType] = {
    str: ScalarType.STRING,
    bool: ScalarType.BOOL,
    int: ScalarType.I64,
    float: ScalarType.F64,
    bytes: ScalarType.BLOB,
    date: ScalarType.DATE,
    datetime: ScalarType.DATETIME,
}
_LISTS = (list, tuple, set, frozenset, Sequence)
_UNIONS = (Union, types.UnionType)
_ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+")
_VECTOR = re.compile(r"Vector\((\d+)\)")


@record
class PythonType:
    """The parts of a Python annotation: the underlying type, whether `None` is allowed, and the metadata."""

    type: Any
    nullable: bool = False
    metadata: tuple[Any, ...] = ()


def unwrap_annotation(annotation: Any) -> PythonType:
    """Strip `Annotated` and `None` from an annotation.

    >>> unwrap_annotation(Annotated[str, "@key"])
    PythonType(type=<class 'str'>, nullable=False, metadata=('@key',))
    >>> unwrap_annotation(int | None).nullable
    True
    """
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        unwrapped = unwrap_annotation(inner)
        return replace(unwrapped, metadata=(*unwrapped.metadata, *metadata))
    if get_origin(annotation) in _UNIONS:
        others = [argument for argument in get_args(annotation) if argument is not type(None)]
        if len(others) == 1:
            return replace(unwrap_annotation(others[0]), nullable=len(others) < len(get_args(annotation)))
    return PythonType(annotation)


def to_property_type(python_type: PythonType) -> PropertyType | None:
    """Return the property type for a Python type, or None if there is none.

    >>> to_property_type(unwrap_annotation(list[int] | None)).display()
    '[I64]?'
    >>> to_property_type(unwrap_annotation(Literal["a", "b"])).display()
    'enum(a, b)'
    """
    explicit = next(_explicit_types(python_type.metadata), None)
    property_type = explicit or _plain_type(python_type.type)
    return None if property_type is None else property_type.as_nullable(python_type.nullable)


def _explicit_types(metadata: Sequence[Any]) -> Iterator[PropertyType]:
    scalars = {scalar.value: scalar for scalar in ScalarType if scalar is not ScalarType.VECTOR}
    for note in metadata:
        if isinstance(note, str) and note in scalars:
            yield PropertyType(scalars[note])
        elif isinstance(note, str) and (vector := _VECTOR.fullmatch(note)):
            yield PropertyType(ScalarType.VECTOR, vector_dim=int(vector[1]))


def _plain_type(python_type: Any) -> PropertyType | None:
    if python_type in _SCALARS:
        return PropertyType(_SCALARS[python_type])
    if get_origin(python_type) is Literal:
        return _enum_type(get_args(python_type))
    if isinstance(python_type, type) and issubclass(python_type, enum.Enum):
        return _enum_type([member.value for member in python_type])
    if get_origin(python_type) in _LISTS:
        elements = [argument for argument in get_args(python_type) if argument is not Ellipsis]
        element = to_property_type(unwrap_annotation(elements[0])) if len(elements) == 1 else None
        is_plain = element is not None and not (element.is_list or element.nullable or element.is_enum)
        return replace(element, is_list=True) if element is not None and is_plain else None
    return None


def _enum_type(values: Sequence[Any]) -> PropertyType | None:
    """Return an enum if all values are words. Otherwise, return the type that all values share, or None."""
    if values and all(isinstance(value, str) and _ENUM_VALUE.fullmatch(value) for value in values):
        return PropertyType(ScalarType.STRING, enum_values=tuple(values))
    value_types = {type(value) for value in values}
    return PropertyType(_SCALARS[value_types.pop()]) if len(value_types) == 1 and value_types <= set(_SCALARS) else None
