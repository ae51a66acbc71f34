"""The parameter types of stored queries, as the server describes them.

Instead of a type, the server sends a kind, such as `int` for I32 and U32. This module sends no requests, and imports no
data libraries, because commands use it.
"""

from collections.abc import Mapping
from typing import Any

from omnigraph.values import PropertyType, ScalarType

# A type that represents each kind. It encodes every value of the kind, and the server checks the value's range.
_SCALARS = {
    "string": ScalarType.STRING,
    "blob": ScalarType.BLOB,
    "bool": ScalarType.BOOL,
    "int": ScalarType.I64,
    "bigint": ScalarType.I64,
    "float": ScalarType.F64,
    "date": ScalarType.DATE,
    "datetime": ScalarType.DATETIME,
    "vector": ScalarType.VECTOR,
}


def write_kind(parameter: Mapping[str, Any]) -> str:
    """Write the kind of a parameter, with `?` if it accepts null.

    >>> write_kind({"kind": "list", "item_kind": "string", "nullable": True})
    '[string]?'
    >>> write_kind({"kind": "vector", "vector_dim": 8, "nullable": False})
    'vector(8)'
    """
    kind = parameter["kind"]
    if kind == "list":
        kind = f"[{parameter.get('item_kind', 'string')}]"
    elif parameter.get("vector_dim") is not None:
        kind = f"{kind}({parameter['vector_dim']})"
    return f"{kind}?" if parameter["nullable"] else str(kind)


def property_type(parameter: Mapping[str, Any]) -> PropertyType | None:
    """Return a type with which to encode the values of a parameter, or None for a kind from a newer server.

    >>> property_type({"kind": "list", "item_kind": "date", "nullable": False}).display()
    '[Date]'
    """
    is_list = parameter["kind"] == "list"
    scalar = _SCALARS.get(parameter.get("item_kind", "") if is_list else parameter["kind"])
    if scalar is None:
        return None
    nullable, dimension = bool(parameter["nullable"]), parameter.get("vector_dim")
    return PropertyType(scalar, nullable=nullable, is_list=is_list, vector_dim=dimension)
