"""List the indexes that a schema declares for the columns of a type.

This module does not build indexes. Vector indexes are listed separately because they cannot be built until a table has
enough rows. Full-text indexes are listed separately because they can coexist with another index on the same column, and
because small writes never build them.
"""

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import EdgeType, Index, Key, NodeType, Unique
from omnigraph.storage.text.fulltext import TEXT_INDEX_KIND, text_index_key
from omnigraph.values import ScalarType

_BTREE_KINDS = ("btree", "bitmap")  # both kinds are stored as BTREE indexes


def scalar_indexes(entity_type: NodeType | EdgeType) -> dict[str, str]:
    """Return the kind of scalar index for each indexed column: `BTREE` or `NGRAM`.

    Ids, endpoints, and the single-valued columns in keys, `@unique` rules and declared indexes are indexed. Filters use
    only one index per column, so an equality index takes precedence over an ngram index.
    """
    endpoint_columns = ("src", "dst") if isinstance(entity_type, EdgeType) else ()
    kind_by_column = dict.fromkeys(("id", *endpoint_columns), "BTREE")
    for constraint in entity_type.constraints:
        if isinstance(constraint, Key | Unique) or (
            isinstance(constraint, Index) and _index_kind(constraint) in _BTREE_KINDS
        ):
            kind_by_column |= dict.fromkeys(
                (column_name for column_name in constraint.columns if _is_single_value(entity_type, column_name)),
                "BTREE",
            )
    for constraint in _index_constraints(entity_type, "ngram"):
        kind_by_column = (
            dict.fromkeys(
                (column_name for column_name in constraint.columns if _is_single_value(entity_type, column_name)),
                "NGRAM",
            )
            | kind_by_column
        )
    return kind_by_column


def vector_indexes(entity_type: NodeType | EdgeType) -> dict[str, str]:
    """Return the index kind, such as `IVF_COSINE`, for each indexed vector column."""
    index_constraints = (
        constraint
        for constraint in entity_type.constraints
        if isinstance(constraint, Index) and len(constraint.columns) == 1
    )
    metric_by_column = {
        constraint.columns[0]: dict(constraint.options).get("metric", "cosine") for constraint in index_constraints
    }
    return {
        column_name: f"IVF_{metric.upper()}"
        for column_name, metric in metric_by_column.items()
        if _is_vector(entity_type, column_name)
    }


def fulltext_indexes(entity_type: NodeType | EdgeType) -> dict[str, str]:
    """Return the kind of each full-text index on a type, keyed by storage key."""
    return {
        text_index_key(column_name): TEXT_INDEX_KIND
        for constraint in _index_constraints(entity_type, "fulltext")
        for column_name in constraint.columns
    }


def all_indexes(entity_type: NodeType | EdgeType) -> dict[str, str]:
    """Return the kind of each index on a type, keyed by storage key."""
    return scalar_indexes(entity_type) | vector_indexes(entity_type) | fulltext_indexes(entity_type)


def shadowed_ngram_indexes(entity_type: NodeType | EdgeType) -> list[tuple[str, str]]:
    """Return (property, reason) pairs for the declared ngram indexes that an equality index replaces."""
    kind_by_column = scalar_indexes(entity_type)
    shadowed_reason = (
        "no ngram index is built, because storage supports one index per column and an equality index exists"
    )
    ngram_columns = [
        column_name for constraint in _index_constraints(entity_type, "ngram") for column_name in constraint.columns
    ]
    return [
        (column_name, shadowed_reason) for column_name in ngram_columns if kind_by_column.get(column_name) == "BTREE"
    ]


def _index_constraints(entity_type: NodeType | EdgeType, index_kind: str) -> Iterator[Index]:
    index_rules = (constraint for constraint in entity_type.constraints if isinstance(constraint, Index))
    return (constraint for constraint in index_rules if _index_kind(constraint) == index_kind)


def _index_kind(constraint: Index) -> str:
    return dict(constraint.options).get("kind", "btree")


def _is_vector(entity_type: NodeType | EdgeType, column_name: str) -> bool:
    declared_property = entity_type.property(column_name)
    return declared_property is not None and declared_property.type.is_vector


def _is_single_value(entity_type: NodeType | EdgeType, column_name: str) -> bool:
    declared_property = entity_type.property(column_name)
    if declared_property is None:
        return True
    property_type = declared_property.type
    return not (property_type.is_list or property_type.is_vector or property_type.scalar is ScalarType.BLOB)
