"""Select which indexes to rebuild: all of them, or those that a caller specifies by name.

This module defines the syntax of these names. `Doc` selects all indexes on a type, and `Doc.age` selects the indexes on
one column. `edge:Knows` distinguishes an edge type from a node type with the same name.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from omnigraph.errors import InputError
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.rules.declared_indexes import all_indexes
from omnigraph.storage.text.fulltext import index_column
from omnigraph.values.name_rules import quote_name, require_text
from omnigraph.values.table_key import TableKey


@dataclass(frozen=True, slots=True)
class IndexSelection:
    """The selected columns for each table. An empty set selects all indexes on the table."""

    everything: bool = False
    columns_by_table: Mapping[TableKey, frozenset[str]] = field(default_factory=dict)

    def contains_table(self, table_key: TableKey) -> bool:
        """Return whether any index on a table is selected."""
        return self.everything or table_key in self.columns_by_table

    def contains(self, table_key: TableKey, column: str) -> bool:
        """Return whether the indexes on a column are selected."""
        columns = self.columns_by_table.get(table_key)
        return self.everything or (columns is not None and (not columns or column in columns))


NO_INDEXES = IndexSelection()


def select_indexes(catalog: Catalog, rebuild: bool | Collection[str]) -> IndexSelection:
    """Return the indexes that a caller wants to rebuild; raise `InputError` for an unknown name."""
    if isinstance(rebuild, bool):
        return IndexSelection(everything=rebuild)
    if isinstance(rebuild, str):
        message = f"`rebuild` must be a list of names or a Boolean, not the string {quote_name(rebuild)}"
        raise InputError(
            message, reason="one string", hint=f"pass rebuild=[{rebuild!r}], or rebuild=True to rebuild all indexes"
        )
    columns_by_table: dict[TableKey, frozenset[str]] = {}
    for name in rebuild:
        entity_type, column = _resolve_name(catalog, require_text(name, "index"))
        table_key = TableKey.of(entity_type.kind, entity_type.name)
        known = columns_by_table.get(table_key)
        is_whole = column is None or known == frozenset()
        columns_by_table[table_key] = frozenset() if is_whole else (known or frozenset()) | {str(column)}
    return IndexSelection(columns_by_table=columns_by_table)


def _resolve_name(catalog: Catalog, name: str) -> tuple[NodeType | EdgeType, str | None]:
    type_text, dot, column = name.strip().partition(".")
    kind, colon, type_name = type_text.rpartition(":")
    entity_type = resolve_type(catalog, type_name, kind if colon else None)
    indexed_columns = sorted({index_column(index_key) for index_key in all_indexes(entity_type)})
    if dot and column not in indexed_columns:
        message = f"{entity_type.kind} type '{entity_type.name}' has no index on column {quote_name(column)}"
        hint = did_you_mean(column, indexed_columns, f"columns with an index: {', '.join(indexed_columns)}")
        raise InputError(message, reason="no index", hint=hint)
    return entity_type, column if dot else None
