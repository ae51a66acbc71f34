"""Convert a type in a schema's syntax tree to a `PropertyType`.

This module rejects invalid types: unknown names, unsupported lists, invalid dimensions and repeated enum values. A
rejected type is replaced with a placeholder so that parsing can continue.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from omnigraph.errors.diagnostics import Span
from omnigraph.values import PropertyType, ScalarType

from . import literals
from .model import Literal
from .names import find_nearest_name

MAX_DIMENSION = 2**31 - 1
PLAIN_TYPES = {s.value: s for s in ScalarType if s is not ScalarType.VECTOR}

# Type names from other languages, which people write out of habit.
_FOREIGN_TYPE_NAMES = {
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
    """Reads one type. `rejected` is true if the result is only a placeholder."""

    def __init__(
        self, report_problem: Callable[[Span, str, str | None], None], source_span: Callable[[Any], Span]
    ) -> None:
        self._report_problem = report_problem
        self._source_span = source_span
        self.rejected = False

    def read_type(self, tree: Any) -> PropertyType:
        """Return the property type for a `type` tree."""
        core_tree, nullable_token = tree.children
        property_type: PropertyType = getattr(self, f"_{core_tree.data}")(core_tree)
        return property_type.as_nullable(nullable_token is not None)

    def _reject_type(self, span: Span, message: str, hint: str | None = None) -> PropertyType:
        self._report_problem(span, message, hint)
        self.rejected = True
        return PropertyType(ScalarType.STRING)

    def _plain(self, tree: Any) -> PropertyType:
        type_name = str(tree.children[0])
        if type_name in PLAIN_TYPES:
            return PropertyType(PLAIN_TYPES[type_name])
        suggestion = _FOREIGN_TYPE_NAMES.get(type_name.lower()) or find_nearest_name(
            type_name, [*PLAIN_TYPES, "Vector", "enum"]
        )
        known_types = f"valid types are {', '.join(PLAIN_TYPES)}, Vector(…) and enum(…)"
        hint = f"did you mean `{suggestion}`?" if suggestion else known_types
        return self._reject_type(self._source_span(tree), f"unknown type `{type_name}`", hint)

    def _list(self, tree: Any) -> PropertyType:
        element_type = self.read_type(tree.children[0])
        element_rule = tree.children[0].children[0].data
        if self.rejected:
            return element_type
        span = self._source_span(tree)
        if element_rule != "plain":
            plural = {"enum": "enums", "vector": "vectors", "list": "lists"}[element_rule]
            hint = "list elements must have a plain type, as in `[String]`"
            return self._reject_type(span, f"lists of {plural} are not supported", hint)
        if element_type.scalar is ScalarType.BLOB:
            return self._reject_type(span, "lists of Blobs are not supported")
        if element_type.nullable:
            hint = f"write `[{element_type.scalar.value}]?` for a list that may be null"
            return self._reject_type(span, "list elements cannot be nullable", hint)
        return replace(element_type, is_list=True)

    def _enum(self, tree: Any) -> PropertyType:
        enum_values: set[str] = set()
        for value_token in tree.children:
            if value_token in enum_values:
                self._report_problem(self._source_span(value_token), f"duplicate enum value `{value_token}`", None)
            enum_values.add(str(value_token))
        return PropertyType(ScalarType.STRING, enum_values=tuple(enum_values))

    def _vector(self, tree: Any) -> PropertyType:
        token = tree.children[0]
        span = self._source_span(token)
        if not token.isdigit():
            message = f"the dimension in Vector(…) must be a whole number, not `{token}`"
            return self._reject_type(span, message)
        dimension = literals.parse_integer(Literal("int", str(token)))
        if dimension == 0:
            return self._reject_type(span, "the dimension in Vector(…) must be greater than zero")
        if dimension is None or dimension > MAX_DIMENSION:
            message = f"the dimension in Vector(…) must be at most {MAX_DIMENSION}, not `{token}`"
            return self._reject_type(span, message)
        return PropertyType(ScalarType.VECTOR, vector_dim=dimension)
