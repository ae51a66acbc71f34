"""Which columns of a type get an index, of which kind, by what the schema says. Builds none.

Indexes of vectors stand apart: they may have to wait until there is something to build them from.
So do those of words, which may stand beside another index of their column, and which no small write
builds on its way.
"""

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import Edge, Index, Key, Node, Unique
from omnigraph.storage.texts import KIND, text_slot
from omnigraph.values import ScalarType

_ORDERED = ("btree", "bitmap")  # one of them answers for both


def indexed_columns(one: Node | Edge) -> dict[str, str]:
    """The columns of a type that get an index, and its kind: `BTREE`, or `NGRAM` for texts.

    These are ids, ends, and single values of constraints. Storage filters by one index per column,
    and one that finds equal values comes first.
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
    """The vectors of a type that get an index, and its kind, which names the metric."""
    rules = (rule for rule in one.constraints if isinstance(rule, Index) and len(rule.columns) == 1)
    found = {rule.columns[0]: dict(rule.options).get("metric", "cosine") for rule in rules}
    return {
        name: f"IVF_{metric.upper()}" for name, metric in found.items() if _is_vector(one, name)
    }


def text_columns(one: Node | Edge) -> dict[str, str]:
    """The texts of a type that get an index of their words, by the keys of such indexes."""
    return {text_slot(name): KIND for rule in _of_kind(one, "fulltext") for name in rule.columns}


def every_index(one: Node | Edge) -> dict[str, str]:
    """All indexes that a type gets, by the keys that storage has for them, and their kinds."""
    return indexed_columns(one) | vector_columns(one) | text_columns(one)


def pending_indexes(one: Node | Edge) -> list[tuple[str, str]]:
    """The indexes that the schema asks for and that are not built: (property, reason)."""
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
