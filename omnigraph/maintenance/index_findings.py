"""Findings about indexes: which index is damaged, and the command that repairs it.

This module defines an index's user-visible name (type, column, kind) and the text of the repair command. It reads only
the metadata of a table version.
"""

import shlex
from dataclasses import dataclass

from omnigraph.storage.column_index import list_segments
from omnigraph.storage.table import Table
from omnigraph.storage.text.fulltext import TEXT_INDEX_KIND, index_column
from omnigraph.storage.vector_index import is_vector_kind
from omnigraph.values.table_key import TableKey

from .branch_heads import is_tag_label
from .finding import IntegrityFinding


@dataclass(frozen=True, slots=True)
class IndexName:
    """An index, identified by its type, column and kind."""

    type_key: TableKey
    column: str
    kind: str

    def __str__(self) -> str:
        """Return a noun phrase that describes the index.

        >>> print(IndexName(TableKey("node:Doc"), "kind", "btree"))
        the btree index on column 'kind' of node type 'Doc'
        """
        type_key = self.type_key
        return f"the {self.kind} index on column '{self.column}' of {type_key.kind} type '{type_key.type_name}'"


def name_index(type_key: TableKey, index_key: str, stored_kind: str) -> IndexName:
    """Return an index's user-visible name, derived from its storage key and kind.

    >>> name_index(TableKey("node:Doc"), "fulltext:body", "INVERTED").kind
    'full-text'
    """
    if stored_kind == TEXT_INDEX_KIND:
        return IndexName(type_key, index_column(index_key), "full-text")
    return IndexName(type_key, index_key, "vector" if is_vector_kind(stored_kind) else stored_kind.lower())


def names_by_segment(table: Table, type_key: TableKey) -> dict[str, IndexName]:
    """Map the UUID of each index segment in a table to the index that it belongs to."""
    return {uuid: name_index(type_key, index_key, kind) for uuid, index_key, kind in list_segments(table)}


def index_finding(
    index: IndexName,
    fault: str,
    branch: str,
    root_uri: str,
    *,
    index_directory: str | None = None,
    rebuild: bool = True,
) -> IntegrityFinding:
    """Build the finding for a faulty index, including the command that repairs it on a branch.

    Pass `rebuild=False` if files are missing, which `ensure-indices` detects without the `--rebuild` option.
    """
    reason = f"{index} {fault}" if index_directory is None else f"{index} {fault}: {index_directory}"
    return IntegrityFinding(
        "index",
        reason,
        branch=branch,
        type_key=index.type_key,
        name=index_directory,
        hint=_repair_hint(index, branch, root_uri, rebuild=rebuild),
        column=index.column,
        index_kind=index.kind,
    )


def _repair_hint(index: IndexName, branch: str, root_uri: str, *, rebuild: bool) -> str:
    if is_tag_label(branch):
        return f"{branch}: restore the index files from a backup; the indexes on a tag cannot be rebuilt"
    words = ["omnigraph", "ensure-indices", root_uri]
    words += ["--rebuild", "--index", _spell_column(index)] if rebuild else []
    words += ["--branch", branch] if branch != "main" else []
    return f"rebuild the index: `{shlex.join(words)}`"


def _spell_column(index: IndexName) -> str:
    """Return the column in the form that `ensure-indices` accepts. Node types need no prefix."""
    type_key = index.type_key
    return f"{type_key.type_name if type_key.kind == 'node' else type_key}.{index.column}"
