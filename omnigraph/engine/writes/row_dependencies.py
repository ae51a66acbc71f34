"""Determine which stored rows a mutation or query depends on, as row filters by table.

A statement depends on the columns that it reads or writes, in the rows that match its predicate. A delete writes all
columns of the rows that it removes, and also depends on the edges of the nodes that it removes. An upsert or a patch
depends on the columns that it assigns, in the row that it identifies. A query, or a match that selects the rows for a
statement, depends on the columns that it reads, in the rows that match its scan filters. The dependencies of some
queries, such as traversals and rankings, cannot be narrowed down in this way. Such a query depends on all rows of the
types that it reads.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.expressions.evaluate import TableSource, true_mask
from omnigraph.engine.operators.fetch import columns_read
from omnigraph.errors import ClientError, ExpressionError
from omnigraph.lang.query import plan
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.query.plan_variables import operands_of, variables_of
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.publish.unread_changes import RowFilter, RowMask
from omnigraph.publish.write_txn import WriteTxn
from omnigraph.rules.delta import as_single_array
from omnigraph.storage.find_rows import find
from omnigraph.values import PropertyType, ScalarType
from omnigraph.values.table_key import TableKey

from .assigned_rows import read_row
from .matched_writes import tables_read_by

ParamValues = Mapping[str, Any]
_ID_TYPE = PropertyType(ScalarType.STRING)

# Expressions whose value depends only on the row. A query with any other expression depends on whole types.
_EXACT_EXPRESSIONS = (
    plan.Constant
    | plan.Parameter
    | plan.PropertyValue
    | plan.SystemValue
    | plan.Entity
    | plan.Aggregate
    | plan.Compare
    | plan.TextTest
    | plan.InList
    | plan.IsNull
    | plan.And
    | plan.Or
    | plan.Not
    | plan.Truth
    | plan.Arithmetic
    | plan.Negative
    | plan.ScalarCall
    | plan.Case
)

# The parts of a plan that this module can analyze. A query with any other part depends on whole types.
_KNOWN_PARTS = frozenset(
    {"operators", "columns", "variables", "aggregated", "distinct", "order", "ranking", "limit", "offset"}
)


@dataclass(frozen=True, slots=True)
class BoundPredicate:
    """Predicates that must all be true for a row to match, and the values of their parameters."""

    predicates: tuple[plan.Predicate, ...]
    params: ParamValues

    def matches(self, rows: pa.Table) -> RowMask:
        """Return a mask of the matching rows.

        If an expression fails, all rows count as matches. The statement itself would fail in the same way.
        """
        is_match = np.ones(rows.num_rows, np.bool_)
        try:
            for predicate in self.predicates:
                is_match &= true_mask(TableSource(rows, self.params), predicate)
        except ExpressionError:
            return np.ones(rows.num_rows, np.bool_)
        return is_match

    @property
    def columns(self) -> set[str]:
        """The columns that the predicates read."""
        return {column_name for _, column_name in columns_read(*self.predicates)}


@dataclass(frozen=True, slots=True)
class HasId:
    """A predicate that matches the rows with the given ids."""

    ids: pa.Array

    def matches(self, rows: pa.Table) -> RowMask:
        """Return a mask of the matching rows."""
        is_match: RowMask = pc.is_in(as_single_array(rows["id"]), value_set=self.ids).to_numpy(zero_copy_only=False)
        return is_match

    @property
    def columns(self) -> set[str]:
        """The columns that the predicate reads."""
        return {"id"}


@dataclass(slots=True)
class TableDependency:
    """A filter for the rows that match any of the predicates, and for the edges of the nodes that a delete matches.

    The columns of all predicates are dependencies in every selected row, because a statement may test a row that an
    earlier statement changed.
    """

    predicates: list[BoundPredicate | HasId] = field(default_factory=list)
    endpoints: list[tuple[str, TableKey]] = field(default_factory=list)
    nodes: Mapping[TableKey, "TableDependency"] = field(default_factory=dict, repr=False)
    column_names: set[str] = field(default_factory=lambda: {"id"})
    reads_all_columns: bool = False

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns that must not change in the selected rows, or None for all columns."""
        return None if self.reads_all_columns else frozenset(self.column_names)

    def matches(self, txn: WriteTxn, rows: pa.Table) -> RowMask:
        """Return a mask of the rows that match a predicate or are edges of a matching node."""
        is_match = np.zeros(rows.num_rows, np.bool_)
        for predicate in self.predicates:
            is_match |= predicate.matches(rows)
        for endpoint_column, node_key in self.endpoints:
            is_match |= self._has_matching_node(txn, rows, endpoint_column, node_key)
        return is_match

    def _has_matching_node(self, txn: WriteTxn, rows: pa.Table, endpoint_column: str, node_key: TableKey) -> RowMask:
        """Return a mask of the edges whose endpoint in `endpoint_column` is a matching node in the base version."""
        endpoint_ids = as_single_array(rows[endpoint_column])
        node_columns = sorted({"id"}.union(*(predicate.columns for predicate in self.nodes[node_key].predicates)))
        nodes = find(txn.table(node_key), {"id": endpoint_ids.unique()}, node_columns)
        matching_nodes = nodes.filter(pa.array(self.nodes[node_key].matches(txn, nodes)))
        is_match: RowMask = pc.is_in(endpoint_ids, value_set=as_single_array(matching_nodes["id"])).to_numpy(
            zero_copy_only=False
        )
        return is_match


@dataclass(slots=True)
class RowDependencies:
    """The dependencies of a mutation or transaction, collected one statement or query at a time."""

    tables: dict[TableKey, TableDependency] = field(default_factory=dict)
    whole_tables: set[TableKey] = field(default_factory=set)

    def row_filters(self) -> dict[TableKey, RowFilter | None]:
        """Return the row filter for each table; None means that all rows in the table are dependencies."""
        return {**self.tables, **dict.fromkeys(self.whole_tables)}

    def add_mutation(self, statements: Iterable[plan.WriteStatement], params: ParamValues, ir: SchemaIR) -> None:
        """Add a dependency on the rows that the statements match or identify.

        An insert does not depend on any row that the caller has read.
        """
        for statement in statements:
            if isinstance(statement, plan.UpsertRow | plan.PatchRow):
                with suppress(ClientError):  # an invalid value is reported when the statement runs
                    row = read_row(ir, statement, params)
                    self.add_rows(row.table_key, pa.array([row.row_id], pa.string()), row.changed_values)
            elif isinstance(statement, plan.UpdateRows):
                table_key = TableKey.of(statement.kind, statement.type_name)
                dependency = self._add_predicate(table_key, (statement.where,), params)
                dependency.column_names |= {assignment.name for assignment in statement.assignments}
                assigned_values = (assignment.value for assignment in statement.assignments)
                dependency.column_names |= {column_name for _, column_name in columns_read(*assigned_values)}
            elif isinstance(statement, plan.DeleteRows):
                table_key = TableKey.of(statement.kind, statement.type_name)
                self._add_predicate(table_key, (statement.where,), params).reads_all_columns = True
                for edge_name in statement.cascades:
                    self._add_cascade(ir.catalog.edge(edge_name), table_key)
            elif isinstance(statement, plan.MatchedUpdate | plan.MatchedDelete):
                self._add_matched(statement, params, ir)

    def _add_matched(
        self, statement: plan.MatchedUpdate | plan.MatchedDelete, params: ParamValues, ir: SchemaIR
    ) -> None:
        """Add a dependency on the rows that a match reads, and on the columns and edges that its statement changes."""
        cascades = statement.cascades if isinstance(statement, plan.MatchedDelete) else ()
        if not _depends_on_rows_alone(statement.matched):
            self.whole_tables |= set(tables_read_by(statement.matched))
            self.whole_tables |= {TableKey.edge(edge_name) for edge_name in cascades}
            return
        self._add_scans(statement.matched, params)
        table_key = TableKey.of(statement.kind, statement.type_name)
        if isinstance(statement, plan.MatchedUpdate):
            self.tables[table_key].column_names |= {assignment.name for assignment in statement.assignments}
            return
        self.tables[table_key].reads_all_columns = True
        for edge_name in cascades:
            self._add_cascade(ir.catalog.edge(edge_name), table_key)

    def add_rows(self, table_key: TableKey, ids: pa.Array, column_names: Iterable[str]) -> None:
        """Add a dependency on the given columns of the rows with these ids, even if the rows do not exist."""
        dependency = self.tables.setdefault(table_key, TableDependency(nodes=self.tables))
        dependency.predicates.append(HasId(ids))
        dependency.column_names |= set(column_names)

    def add_query(self, query: CompiledQuery, params: ParamValues) -> None:
        """Add a dependency on the rows that a query reads, or on whole tables if the rows cannot be narrowed down."""
        read_plan = query.plan
        if not isinstance(read_plan, plan.ReadPlan) or not _depends_on_rows_alone(read_plan):
            self.whole_tables |= {TableKey.of(read.kind, read.type_name) for read in query.operation.reads}
            return
        self._add_scans(read_plan, params)

    def _add_scans(self, read_plan: plan.ReadPlan, params: ParamValues) -> None:
        """Add a dependency on the rows that pass the filters of a traversal-free read plan.

        The dependency is limited to the columns that the plan reads.
        """
        filters = [operator.predicate for operator in read_plan.operators if isinstance(operator, plan.Filter)]
        read_columns = columns_read(*_expressions_of(read_plan))
        whole_entities = _returned_entities(read_plan)
        for scan in read_plan.operators:
            if isinstance(scan, plan.NodeScan):
                own_filters = [predicate for predicate in filters if variables_of(predicate) == {scan.variable}]
                predicates = (*scan.filters, *own_filters)
                dependency = self._add_predicate(TableKey.node(scan.type_name), predicates, params)
                dependency.column_names |= {column for variable, column in read_columns if variable == scan.variable}
                dependency.reads_all_columns |= scan.variable in whole_entities

    def add_value(self, table_key: TableKey, entity_id: str, property_name: str) -> None:
        """Add a dependency on one property of one entity."""
        is_entity = plan.Compare(plan.SystemValue("_", "id", _ID_TYPE), "=", plan.Constant(entity_id, _ID_TYPE))
        self._add_predicate(table_key, (is_entity,), {}).column_names.add(property_name)

    def _add_predicate(
        self, table_key: TableKey, predicates: tuple[plan.Predicate, ...], params: ParamValues
    ) -> TableDependency:
        dependency = self.tables.setdefault(table_key, TableDependency(nodes=self.tables))
        bound_predicate = BoundPredicate(predicates, params)
        dependency.predicates.append(bound_predicate)
        dependency.column_names |= bound_predicate.columns
        return dependency

    def _add_cascade(self, edge_type: EdgeType | None, node_key: TableKey) -> None:
        if edge_type is None:
            return
        dependency = self.tables.setdefault(TableKey.edge(edge_type.name), TableDependency(nodes=self.tables))
        dependency.reads_all_columns = True
        for endpoint_column, endpoint_type in (("src", edge_type.source), ("dst", edge_type.target)):
            if endpoint_type == node_key.type_name and (endpoint_column, node_key) not in dependency.endpoints:
                dependency.endpoints.append((endpoint_column, node_key))


def _depends_on_rows_alone(read_plan: plan.ReadPlan) -> bool:
    """Return whether the rows that pass a query's scan filters determine its result.

    The result is False for a query that uses `now()`, whose value differs when the query is checked again, or a
    ranking, which depends on statistics for the whole type. The result is also False for a query that scans an
    interface or searches text, because neither can be tested on a single row.
    """
    unknown_parts = {part.name for part in fields(read_plan)} - _KNOWN_PARTS
    if read_plan.ranking is not None or any(getattr(read_plan, part_name) for part_name in unknown_parts):
        return False
    for operator in read_plan.operators:
        if not isinstance(operator, plan.NodeScan | plan.Filter):
            return False
        if isinstance(operator, plan.NodeScan) and operator.implementers:
            return False
    return all(_is_exact(expression) for expression in _expressions_of(read_plan))


def _is_exact(expression: plan.Value | plan.Predicate | plan.Ranking) -> bool:
    if not isinstance(expression, _EXACT_EXPRESSIONS):
        return False
    if isinstance(expression, plan.Parameter) and expression.name == plan.NOW_PARAMETER:
        return False
    return all(_is_exact(operand) for operand in operands_of(expression))


def _expressions_of(read_plan: plan.ReadPlan) -> list[plan.Value | plan.Predicate]:
    """Return the predicates, columns and sort keys in a query without traversals."""
    expressions: list[plan.Value | plan.Predicate] = [column.value for column in read_plan.columns]
    expressions += (sort_key.value for sort_key in read_plan.order)
    for operator in read_plan.operators:
        if isinstance(operator, plan.NodeScan):
            expressions += operator.filters
        elif isinstance(operator, plan.Filter):
            expressions.append(operator.predicate)
    return expressions


def _returned_entities(read_plan: plan.ReadPlan) -> set[str]:
    """Return the variables that a query returns as whole entities. Counting entities reads only their ids."""
    values = (column.value for column in read_plan.columns)
    arguments = (
        value.argument if isinstance(value, plan.Aggregate) and value.function != "count" else value for value in values
    )
    return {argument.variable for argument in arguments if isinstance(argument, plan.Entity)}
