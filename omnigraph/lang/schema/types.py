"""Reads a written type into the `PropertyType` of a property.

Owns the rejection of types: unknown names, unsupported lists, bad dimensions, repeated enum values.
Returns a placeholder for a rejected type, so that reading continues.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from omnigraph.diagnostics import Span
from omnigraph.values import PropertyType, ScalarType

from . import literals
from .model import Literal
from .names import nearest

MAX_DIMENSION = 2**31 - 1
PLAIN = {s.value: s for s in ScalarType if s is not ScalarType.VECTOR}

# Type names of other languages that people write by habit.
_HABITS = {
    "string": "String",
    "str": "String",
    "text": "String",
    "varchar": "String",
    "bool": "Bool",
    "boolean": "Bool",
    "int": "I32` or `I64",
    "integer": "I32` or `I64",
    "long": "I64",
    "uint": "U32` or `U64",
    "float": "F32` or `F64",
    "double": "F64",
    "number": "F64",
    "decimal": "F64",
    "bytes": "Blob",
    "binary": "Blob",
    "timestamp": "DateTime",
    "time": "DateTime",
    "embedding": "Vector(…)",
}


class TypeReader:
    """Reads one type; `rejected` states whether the result is only a placeholder."""

    def __init__(
        self,
        report: Callable[[Span, str, str | None], None],
        span: Callable[[Any], Span],
    ) -> None:
        self._report = report
        self._span = span
        self.refused = False

    def read(self, tree: Any) -> PropertyType:
        """Return the property type of a `type` tree."""
        core, nullable = tree.children
        made: PropertyType = getattr(self, f"_{core.data}")(core)
        return made.as_nullable(nullable is not None)

    def _refuse(self, span: Span, message: str, hint: str | None = None) -> PropertyType:
        self._report(span, message, hint)
        self.refused = True
        return PropertyType(ScalarType.STRING)

    def _plain(self, tree: Any) -> PropertyType:
        name = str(tree.children[0])
        if name in PLAIN:
            return PropertyType(PLAIN[name])
        close = _HABITS.get(name.lower()) or nearest(name, [*PLAIN, "Vector", "enum"])
        hint = f"`{close}`?" if close else f"types are {', '.join(PLAIN)}, Vector(…) and enum(…)"
        return self._refuse(self._span(tree), f"unknown type `{name}`", hint)

    def _list(self, tree: Any) -> PropertyType:
        element = self.read(tree.children[0])
        kind = tree.children[0].children[0].data
        if self.refused:
            return element
        span = self._span(tree)
        if kind != "plain":
            what = {"enum": "enums", "vector": "vectors", "list": "lists"}[kind]
            hint = "list elements are plain types, such as `[String]`"
            return self._refuse(span, f"lists of {what} are not supported", hint)
        if element.scalar is ScalarType.BLOB:
            return self._refuse(span, "lists of Blob are not supported: `[Blob]`")
        if element.nullable:
            hint = f"write `[{element.scalar.value}]?` for a list that may be absent"
            return self._refuse(span, "list elements cannot be nullable", hint)
        return replace(element, is_list=True)

    def _enum(self, tree: Any) -> PropertyType:
        seen: set[str] = set()
        for value in tree.children:
            if value in seen:
                self._report(self._span(value), f"duplicate enum value `{value}`", None)
            seen.add(str(value))
        return PropertyType(ScalarType.STRING, enum_values=tuple(seen))

    def _vector(self, tree: Any) -> PropertyType:
        token = tree.children[0]
        span = self._span(token)
        if not token.isdigit():
            message = f"the dimension of a Vector must be a whole number, not `{token}`"
            return self._refuse(span, message)
        size = literals.integer(Literal("int", str(token)))
        if size == 0:
            return self._refuse(span, "the dimension of a Vector must be greater than zero")
        if size is None or size > MAX_DIMENSION:
            message = f"the maximum dimension of a Vector is {MAX_DIMENSION}, not `{token}`"
            return self._refuse(span, message)
        return PropertyType(ScalarType.VECTOR, vector_dim=size)
