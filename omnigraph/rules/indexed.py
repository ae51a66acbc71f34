"""Which columns of a type get which kind of index, as the schema declares. Builds none.

Vector indexes are separate: they may have to wait until there is enough data to build them from.
So are full-text indexes, which may exist beside another index of their column and which small
writes never build.
"""

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import Edge, Index, Key, Node, Unique
from omnigraph.storage.texts import KIND, text_slot
from omnigraph.values import ScalarType

_ORDERED = ("btree", "bitmap")  # both are stored as a BTREE index


def indexed_columns(one: Node | Edge) -> dict[str, str]:
    """Return the columns that get a scalar index, with its kind: `BTREE`, or `NGRAM` for strings.

    These are ids, endpoints, and single-valued constraint columns. Storage filters by one index
    per column; an index for equality takes precedence.
    """
    ends = ("src", "dst") if isinstance(one, Edge) else ()
    found = dict.fromkeys(("id", *ends), "BTREE")
    for rule in one.constraints:
        if isinstance(rule, Key | Unique) or (isinstance(rule, Index) and _kind(rule) in _ORDERED):
            found |= dict.fromkeys((n for n in rule.columns if _is_single(one, n)), "BTREE")
    for rule in _of_kind(one, "ngram"):
        found = dict.fromkeys((n for n in rule.columns if _is_single(one, n)), "NGRAM") | found
    return found


def vector_columns(one: Node | Edge) -> dict[str, str]:
    """Return the vector columns that get an index, with its kind, which names the metric."""
    rules = (rule for rule in one.constraints if isinstance(rule, Index) and len(rule.columns) == 1)
    found = {rule.columns[0]: dict(rule.options).get("metric", "cosine") for rule in rules}
    return {
        name: f"IVF_{metric.upper()}" for name, metric in found.items() if _is_vector(one, name)
    }


def text_columns(one: Node | Edge) -> dict[str, str]:
    """Return the full-text indexes of a type, by their storage keys."""
    return {text_slot(name): KIND for rule in _of_kind(one, "fulltext") for name in rule.columns}


def every_index(one: Node | Edge) -> dict[str, str]:
    """Return all indexes of a type and their kinds, by their storage keys."""
    return indexed_columns(one) | vector_columns(one) | text_columns(one)


def pending_indexes(one: Node | Edge) -> list[tuple[str, str]]:
    """Return declared ngram indexes that an equality index shadows, as (property, reason)."""
    built = indexed_columns(one)
    taken = "ngram: the column has an index for equal values, and storage filters by one per column"
    asked = [name for rule in _of_kind(one, "ngram") for name in rule.columns]
    return [(name, taken) for name in asked if built.get(name) == "BTREE"]


def _of_kind(one: Node | Edge, kind: str) -> Iterator[Index]:
    every = (rule for rule in one.constraints if isinstance(rule, Index))
    return (rule for rule in every if _kind(rule) == kind)


def _kind(rule: Index) -> str:
    return dict(rule.options).get("kind", "btree")


def _is_vector(one: Node | Edge, name: str) -> bool:
    prop = one.property(name)
    return prop is not None and prop.type.is_vector


def _is_single(one: Node | Edge, name: str) -> bool:
    prop = one.property(name)
    if prop is None:
        return True
    kind = prop.type
    return not (kind.is_list or kind.is_vector or kind.scalar is ScalarType.BLOB)
