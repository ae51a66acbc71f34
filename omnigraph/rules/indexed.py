"""Which columns of a type get an index, by what the schema says of it. Builds none."""

from omnigraph.lang.schema.catalog import Edge, Index, Key, Node, Unique
from omnigraph.values import ScalarType


def indexed_columns(one: Node | Edge) -> list[str]:
    """The columns of a type that get an index: ids, ends, and single values of its constraints."""
    names = {"id": None} | (dict.fromkeys(("src", "dst")) if isinstance(one, Edge) else {})
    for rule in one.constraints:
        if isinstance(rule, Key | Unique) or (isinstance(rule, Index) and _is_btree(rule)):
            names |= dict.fromkeys(name for name in rule.columns if _is_single(one, name))
    return list(names)


def _is_btree(rule: Index) -> bool:
    return dict(rule.options).get("kind", "btree") == "btree"


def _is_single(one: Node | Edge, name: str) -> bool:
    prop = one.property(name)
    if prop is None:
        return True
    kind = prop.type
    return not (kind.is_list or kind.is_vector or kind.scalar is ScalarType.BLOB)
