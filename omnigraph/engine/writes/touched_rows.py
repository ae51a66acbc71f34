"""Track the rows that each statement in a mutation writes or deletes, and reject other writes to deleted rows.

If one statement deletes a row, directly or along with its node, no other statement in the same query may write that
row, because the result would depend on the order of the statements. Writing an edge also counts as writing its nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StatementConflict
from omnigraph.lang.query import plan
from omnigraph.values.table_key import TableKey

_VERBS = {
    plan.InsertRow: "insert",
    plan.UpsertRow: "upsert",
    plan.PatchRow: "patch",
    plan.UpdateRows: "update",
    plan.MatchedUpdate: "update",
    plan.DeleteRows: "delete",
    plan.MatchedDelete: "delete",
}


@dataclass(frozen=True, slots=True)
class AffectedRows:
    """The rows in one table that a statement wrote or deleted; `endpoints` holds the nodes of written edges."""

    table_key: TableKey
    ids: pa.Array
    is_deleted: bool = False
    endpoints: Mapping[TableKey, pa.Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _NumberedRows:
    """The ids of the rows that one statement wrote or deleted in one table."""

    statement_number: int
    ids: pa.Array


@dataclass(slots=True)
class TouchedRows:
    """The rows that a mutation's statements have written and deleted so far."""

    statements: Sequence[plan.WriteStatement]
    written: dict[TableKey, list[_NumberedRows]] = field(default_factory=dict)
    deleted: dict[TableKey, list[_NumberedRows]] = field(default_factory=dict)

    @property
    def may_conflict(self) -> bool:
        """Whether the mutation contains both deletes and other statements, which may conflict with the deletes."""
        are_deletes = [isinstance(statement, plan.DeleteRows | plan.MatchedDelete) for statement in self.statements]
        return any(are_deletes) and not all(are_deletes)

    def record(self, statement_number: int, affected: AffectedRows) -> None:
        """Add the rows that a statement affected; raise `StatementConflict` if a deleted row was also written."""
        numbered_rows = _NumberedRows(statement_number, affected.ids)
        if affected.is_deleted:
            self._reject_common_rows(affected.table_key, numbered_rows, self.written)
            self.deleted.setdefault(affected.table_key, []).append(numbered_rows)
            return
        self._reject_common_rows(affected.table_key, numbered_rows, self.deleted)
        for node_key, node_ids in affected.endpoints.items():
            self._reject_common_rows(node_key, _NumberedRows(statement_number, node_ids), self.deleted)
        self.written.setdefault(affected.table_key, []).append(numbered_rows)

    def _reject_common_rows(
        self, table_key: TableKey, touching: _NumberedRows, earlier_rows: Mapping[TableKey, list[_NumberedRows]]
    ) -> None:
        for earlier in earlier_rows.get(table_key, ()):
            common_ids = touching.ids.filter(pc.is_in(touching.ids, value_set=earlier.ids))
            if len(common_ids):
                raise StatementConflict(
                    entity_kind=table_key.kind,
                    type_name=table_key.type_name,
                    entity_id=common_ids[0].as_py(),
                    first_statement=self._describe(earlier.statement_number),
                    second_statement=self._describe(touching.statement_number),
                )

    def _describe(self, statement_number: int) -> str:
        statement = self.statements[statement_number - 1]
        return f"{_VERBS[type(statement)]} {statement.type_name} (statement {statement_number})"
