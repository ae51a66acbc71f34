"""The immutable plan (IR) of a compiled query, with all names resolved.

This module defines the operators and expressions that engines run. A plan contains no rows from a graph. Positions in
the query text are used only in runtime errors and do not affect equality, so queries with the same meaning lower to
equal plans. The plan does not specify how neighbors are found; the engine decides this.
"""

from dataclasses import field
from typing import Literal as OneOf

from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

from .plan_paths import EdgeTest as EdgeTest
from .plan_paths import FindPaths as FindPaths
from .plan_paths import PathEntity as PathEntity
from .plan_paths import PathMode as PathMode
from .plan_paths import PathValue as PathValue
from .plan_scalars import Arithmetic as Arithmetic
from .plan_scalars import Case as Case
from .plan_scalars import Negative as Negative
from .plan_scalars import ScalarCall as ScalarCall
from .plan_scalars import ScalarFunction as ScalarFunction
from .plan_scalars import SourcePlace as SourcePlace
from .plan_scalars import Truth as Truth
from .plan_writes import Assign as Assign
from .plan_writes import DeleteRows as DeleteRows
from .plan_writes import InsertRow as InsertRow
from .plan_writes import MatchedDelete as MatchedDelete
from .plan_writes import MatchedUpdate as MatchedUpdate
from .plan_writes import PatchRow as PatchRow
from .plan_writes import UpdateRows as UpdateRows
from .plan_writes import UpsertRow as UpsertRow
from .plan_writes import WritePlan as WritePlan
from .plan_writes import WriteStatement as WriteStatement

ROW_VARIABLE = "_"  # the variable for the row that a mutation's `where` tests

Direction = OneOf["out", "in", "both"]
CompareOperator = OneOf["=", "!=", "<", "<=", ">", ">="]
TextOperator = OneOf["string_contains", "starts_with", "list_contains"]
AggregateFunction = OneOf["count", "sum", "avg", "min", "max", "collect"]
SystemField = OneOf["id", "from", "to"]

NOW_PARAMETER = "__now"  # the reserved parameter that contains the request time


# Values -------------------------------------------------------------------------------------


@record
class Constant:
    """A literal in the form that `omnigraph.values` stores, such as days for Date and milliseconds for DateTime."""

    value: object
    type: PropertyType


@record
class Parameter:
    """A declared parameter, or the reserved parameter `__now`."""

    name: str
    type: PropertyType


@record
class PropertyValue:
    """A declared property of a bound node or edge variable."""

    variable: str
    name: str
    type: PropertyType


@record
class SystemValue:
    """The `id` of an entity, or the `from` or `to` endpoint of an edge."""

    variable: str
    field: SystemField
    type: PropertyType


@record
class Entity:
    """A bound node or edge. In results, the entity is an object that includes its id. Aggregates count entities by id.

    `edge_types` lists the possible types of an edge. It is empty for a node.
    """

    variable: str
    type_name: str
    edge_types: tuple[str, ...] = ()


@record
class Score:
    """The score that a ranking assigns to a row: a BM25 score, a vector distance, or an RRF score."""

    ranking: "Ranking"


@record
class Aggregate:
    """An aggregate over the rows in a group. `argument` is evaluated for each row."""

    function: AggregateFunction
    argument: "Value"
    distinct: bool = False
    place: SourcePlace = field(default=SourcePlace(), compare=False)


ScalarValue = Arithmetic | Negative | ScalarCall | Case
PathRead = PathEntity | PathValue
Value = Constant | Parameter | PropertyValue | SystemValue | Entity | PathRead | Score | Aggregate | ScalarValue


# Predicates are three-valued; a row passes only if the predicate is TRUE --------------------


@record
class Compare:
    """A comparison by value. The result is unknown if either operand is null."""

    left: Value
    operator: CompareOperator
    right: Value


@record
class TextTest:
    """A test for a substring, a prefix, or a scalar in a list value."""

    left: Value
    operator: TextOperator
    right: Value


@record
class InList:
    """A test of whether a scalar is in a constant list or a list parameter."""

    operand: Value
    items: Value


@record
class IsNull:
    """A test of whether a value is null (or not null, if `negated` is true). Its result is never unknown."""

    operand: Value
    negated: bool = False


@record
class OfType:
    """A test of whether a node that was scanned as an interface has this node type."""

    variable: str
    type_name: str


@record
class TextSearch:
    """A `search`, `fuzzy` or `match_text` test on a String property of a bound node."""

    function: OneOf["search", "fuzzy", "match_text"]
    field: PropertyValue
    query: Value
    max_edits: Value | None = None


@record
class And:
    """A conjunction of predicates."""

    items: tuple["Predicate", ...]


@record
class Or:
    """A disjunction of predicates."""

    items: tuple["Predicate", ...]


@record
class Not:
    """The negation of a predicate. If the predicate is unknown, the negation is unknown as well."""

    item: "Predicate"


Predicate = Compare | TextTest | InList | IsNull | OfType | TextSearch | Truth | And | Or | Not


# Rankings -----------------------------------------------------------------------------------


@record
class Bm25:
    """A ranking by descending text score. Only matching rows are kept."""

    field: PropertyValue
    query: Value


@record
class Nearest:
    """A ranking by ascending distance. Rows without a vector are dropped. `model` is the model from `@embed`."""

    field: PropertyValue
    query: Value
    model: str | None = None


@record
class Fuse:
    """Reciprocal rank fusion of two rankings of one variable."""

    first: "Bm25 | Nearest"
    second: "Bm25 | Nearest"
    k: Value


Ranking = Bm25 | Nearest | Fuse


# Operators: each one extends or filters the rows of its predecessor -------------------------


@record
class NodeScan:
    """Scan the nodes of a type that pass the filters. If there are already rows, combine each of them with each node.

    `implementers` lists the node types to scan when `type_name` is an interface.
    """

    variable: str
    type_name: str
    filters: tuple[Predicate, ...] = ()
    implementers: tuple[str, ...] = ()


@record
class PlanStep:
    """An edge type in an expansion, and the direction in which it is traversed."""

    edge_type: str
    direction: Direction


@record
class Expand:
    """Traverse from a bound variable to new nodes.

    Unless `edge_variable` is set, the nodes found for each input row are distinct. `target` is None for the anonymous
    variable. `target_filters` apply only to the nodes that are bound to `target`, not to nodes that the traversal
    passes through.
    """

    source: str
    target: str | None
    steps: tuple[PlanStep, ...]
    target_type: str
    min_hops: int = 1
    max_hops: int = 1
    target_filters: tuple[Predicate, ...] = ()
    edge_variable: str | None = None
    edge_test: EdgeTest | None = None


@record
class CloseCycle:
    """Close a cycle after an `Expand`: keep only the rows in which two variables are bound to the same entity."""

    left: str
    right: str


@record
class Filter:
    """Keep the rows for which the predicate is TRUE."""

    predicate: Predicate


@record
class AntiJoin:
    """Drop the rows for which the inner operators produce at least one row."""

    outer: tuple[str, ...]
    inner: tuple["Operator", ...]


@record
class LeftJoin:
    """Extend rows by running the inner operators. If a row has no result, the `introduced` variables are null.

    If a variable is null, `Expand` finds no nodes for it and `CloseCycle` drops the row.
    """

    outer: tuple[str, ...]
    inner: tuple["Operator", ...]
    introduced: tuple[str, ...]


Operator = NodeScan | Expand | FindPaths | CloseCycle | Filter | AntiJoin | LeftJoin


# Whole plans --------------------------------------------------------------------------------


@record
class PlanColumn:
    """A result column. `type` is None for a whole entity."""

    name: str
    value: Value
    type: PropertyType | None


@record
class SortKey:
    """A sort key. If `column` is set, the key is a result column. Otherwise, `value` is computed for each row.

    An `Entity` is sorted by its id.
    """

    value: Value
    descending: bool = False
    column: str | None = None


@record
class ReadPlan:
    """A read: a match, followed by projection or grouping, ordering or ranking, offset and limit.

    `variables` lists every named variable (nodes and edges) in order of first appearance. This order determines how
    rows are sorted by default and how ties are broken. `having` keeps the groups for which it is TRUE. Its operands are
    group keys, aggregates and constants.
    """

    operators: tuple[Operator, ...]
    columns: tuple[PlanColumn, ...]
    variables: tuple[str, ...]
    aggregated: bool = False
    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    ranking: Ranking | None = None
    limit: Value | None = None
    offset: Value | None = None
    having: Predicate | None = None


@record
class UnionPlan:
    """Concatenate the rows of several reads, then remove duplicates and apply the ordering, offset and limit.

    Each part returns the columns named in `columns`, and its values are converted to the types that `columns`
    specifies. Rows with equal sort keys keep their original order, both between parts and within each part.
    """

    parts: tuple[ReadPlan, ...]
    columns: tuple[PlanColumn, ...]
    keeps_duplicates: bool = False
    order: tuple[SortKey, ...] = ()
    limit: Value | None = None
    offset: Value | None = None


Plan = ReadPlan | UnionPlan | WritePlan
