"""The schema language's scalar types, and the class that represents a property's type.

Property types are compared by value. This module deals only with types, not with the values themselves.
"""

import enum
from dataclasses import replace

from omnigraph.records.frozen import record


class ScalarType(enum.Enum):
    """A scalar type. The enum value is the name of the type in a schema file."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"
    VECTOR = "Vector"

    @property
    def is_integer(self) -> bool:
        """Whether values are integers."""
        return self in _INTEGER_TYPES

    @property
    def is_float(self) -> bool:
        """Whether values are binary floating-point numbers."""
        return self is ScalarType.F32 or self is ScalarType.F64

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers of any kind."""
        return self.is_integer or self.is_float


_INTEGER_TYPES = frozenset({ScalarType.I32, ScalarType.I64, ScalarType.U32, ScalarType.U64})


@record
class PropertyType:
    """The type of a property, parameter or column.

    Enum values are stored in sorted order, so their order in a schema file does not matter.

    >>> PropertyType(ScalarType.STRING, is_list=True, nullable=True).display()
    '[String]?'
    """

    scalar: ScalarType
    nullable: bool = False
    is_list: bool = False
    enum_values: tuple[str, ...] | None = None
    vector_dim: int | None = None

    def __post_init__(self) -> None:
        if self.enum_values is not None:
            object.__setattr__(self, "enum_values", tuple(sorted(set(self.enum_values))))

    def display(self) -> str:
        """Return the type as it is written in a schema file.

        >>> PropertyType(ScalarType.VECTOR, vector_dim=8).display()
        'Vector(8)'
        >>> PropertyType(ScalarType.STRING, enum_values=("b", "a")).display()
        'enum(a, b)'
        """
        return self._display_non_null() + ("?" if self.nullable else "")

    def _display_non_null(self) -> str:
        if self.enum_values is not None:
            return f"enum({', '.join(self.enum_values)})"
        if self.is_vector:
            return f"Vector({self.vector_dim})"
        return f"[{self.scalar.value}]" if self.is_list else self.scalar.value

    def as_nullable(self, nullable: bool) -> "PropertyType":
        """Return the same type with the given nullability."""
        return self if nullable == self.nullable else replace(self, nullable=nullable)

    def element_type(self) -> "PropertyType":
        """Return the element type of a list or vector, or the scalar type itself, without `?`.

        >>> PropertyType(ScalarType.I32, is_list=True).element_type().display()
        'I32'
        """
        scalar_type = ScalarType.F32 if self.is_vector else self.scalar
        return PropertyType(scalar_type, enum_values=self.enum_values)

    @property
    def is_numeric(self) -> bool:
        """Whether a value is a single number rather than a list or vector."""
        return self.scalar.is_numeric and not self.is_list

    @property
    def is_integer(self) -> bool:
        """Whether a value is a single integer."""
        return self.scalar.is_integer and not self.is_list

    @property
    def is_vector(self) -> bool:
        """Whether a value is a vector with a fixed number of dimensions."""
        return self.scalar is ScalarType.VECTOR

    @property
    def is_enum(self) -> bool:
        """Whether values come from a fixed set of strings."""
        return self.enum_values is not None
