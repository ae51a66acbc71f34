"""The unresolved syntax tree of a `.gq` file.

The parser builds these nodes, and the formatter prints them. Names are not resolved, and types are not checked.
Equality ignores spans, so files with the same meaning have equal trees.
"""

from dataclasses import field
from typing import Literal as OneOf

from omnigraph.errors.diagnostics import NO_SPAN, Span
from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

from .model_writes import Assignment as Assignment
from .model_writes import Delete as Delete
from .model_writes import Insert as Insert
from .model_writes import MatchedDelete as MatchedDelete
from .model_writes import MatchedUpdate as MatchedUpdate
from .model_writes import Patch as Patch
from .model_writes import Statement as Statement
from .model_writes import Update as Update
from .model_writes import Upsert as Upsert
from .model_writes import WriteBody as WriteBody
from .scalar_model import Arithmetic as Arithmetic
from .scalar_model import ArithmeticOperator as ArithmeticOperator
from .scalar_model import Case as Case
from .scalar_model import CaseBranch as CaseBranch
from .scalar_model import Negative as Negative
from .scalar_model import ScalarCall as ScalarCall
from .scalar_model import Truth as Truth

LiteralKind = OneOf["string", "int", "float", "bool", "null", "date", "datetime"]
ComparisonOperator = OneOf["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"]
SearchFunction = OneOf["search", "fuzzy", "match_text", "bm25", "nearest", "rrf"]
PathMode = OneOf["any shortest", "all shortest", "walk", "trail", "acyclic", "simple"]
AggregateFunction = OneOf["count", "sum", "avg", "min", "max", "collect"]


@record
class Name:
    """An identifier, edge word or type name, with its position."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False)


# Expressions --------------------------------------------------------------------------------


@record
class Literal:
    """A constant. `text` is the decoded string, or the number, date or word exactly as written."""

    kind: LiteralKind
    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@record
class ListLiteral:
    """A list literal such as `[1, 2, 3]`."""

    items: tuple[Literal, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Variable:
    """A variable such as `$x`. Its name excludes the dollar sign. `$_` is anonymous."""

    name: str
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Field:
    """A property access such as `$x.title`, `$x.id` or `$w.from`."""

    variable: str
    name: str
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Now:
    """A call to `now()`."""

    span: Span = field(default=NO_SPAN, compare=False)


@record
class Call:
    """A call to a search or ranking function."""

    function: SearchFunction
    arguments: tuple["Expression", ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Aggregate:
    """An aggregate such as `count($x)`, `count(distinct $x.p)` or `collect($x.p)`."""

    function: AggregateFunction
    argument: "Expression"
    distinct: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@record
class AllRows:
    """The `*` in `count(*)`."""

    span: Span = field(default=NO_SPAN, compare=False)


@record
class Alias:
    """A bare word.

    In `order` and `having`, it is a result column. In the `where` and `set` of an update or delete, it is a property,
    `id` or an edge endpoint.
    """

    name: str
    span: Span = field(default=NO_SPAN, compare=False)


ScalarExpression = Arithmetic | Negative | ScalarCall | Case
Expression = Literal | ListLiteral | Variable | Field | Now | Call | Aggregate | AllRows | Alias | ScalarExpression


# Conditions ---------------------------------------------------------------------------------


@record
class Comparison:
    """A comparison, `left operator right`."""

    left: Expression
    operator: ComparisonOperator
    right: Expression
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Membership:
    """The membership test `operand in [..]` or `operand in $list`."""

    operand: Expression
    items: Expression
    span: Span = field(default=NO_SPAN, compare=False)


@record
class IsNull:
    """The null test `operand is null` or `operand is not null`."""

    operand: Expression
    negated: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@record
class TextMatch:
    """A `search(..)`, `fuzzy(..)` or `match_text(..)` call that is used as a condition."""

    call: Call
    span: Span = field(default=NO_SPAN, compare=False)


@record
class And:
    """A condition that is true if all of its operands are true."""

    items: tuple["Condition", ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Or:
    """A condition that is true if any of its operands is true."""

    items: tuple["Condition", ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Not:
    """A condition that is true if its operand is false. If the operand is unknown, the result is unknown as well."""

    item: "Condition"
    span: Span = field(default=NO_SPAN, compare=False)


Condition = Comparison | Membership | IsNull | TextMatch | Truth | And | Or | Not


# Match clauses ------------------------------------------------------------------------------


@record
class InlinePredicate:
    """A property match such as `name: "Ann"` inside a binding."""

    name: Name
    value: Expression


@record
class Binding:
    """A binding such as `$p: Person { name: "Ann" }`."""

    variable: Variable
    type_name: Name
    predicates: tuple[InlinePredicate, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Hops:
    """A hop range such as `{1,3}`. `high` is None for `{2,}`, which the checker rejects."""

    low: int
    high: int | None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class PathPattern:
    """The prefix that turns a traversal into a path, such as `$p = any shortest`. `cost` is the property after `by`."""

    variable: Variable
    mode: PathMode
    cost: Field | None = None


@record
class Traversal:
    """A traversal such as `$a knows{1,3} $b`, `$a <knows|likes> $b` or `$a $w:knows $b where $w.k > 1`."""

    source: Variable
    edges: tuple[Name, ...]
    target: Variable
    undirected: bool = False
    hops: Hops | None = None
    edge_variable: Variable | None = None
    edge_test: Condition | None = None
    path: PathPattern | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class WordPair:
    """A clause such as `$a contains $b`: a filter if `$a` is a parameter, or a `contains` traversal if it is not."""

    left: Variable
    word: Name
    right: Variable
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Filter:
    """A condition used as a clause."""

    condition: Condition
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Negation:
    """A negated block, `not { clauses }`."""

    clauses: tuple["Clause", ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class OptionalMatch:
    """An optional block, `optional { clauses }`, which works like a left join."""

    clauses: tuple["Clause", ...]
    span: Span = field(default=NO_SPAN, compare=False)


Clause = Binding | Traversal | WordPair | Filter | Negation | OptionalMatch


# Bodies -------------------------------------------------------------------------------------


@record
class Projection:
    """One result column."""

    expression: Expression
    alias: Name | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Ordering:
    """A sort key. `direction` is None if the query does not specify one."""

    expression: Expression
    direction: OneOf["asc", "desc"] | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class ReadBody:
    """A read: its match, return, having, order, limit and offset."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    orderings: tuple[Ordering, ...] = ()
    limit: Literal | Variable | None = None
    offset: Literal | Variable | None = None
    distinct: bool = False
    span: Span = field(default=NO_SPAN, compare=False)
    having: Condition | None = None


@record
class UnionBody:
    """A union of several reads. Only the union as a whole can have an order, limit or offset.

    `keeps_duplicates` is true for `union all`.
    """

    parts: tuple[ReadBody, ...]
    keeps_duplicates: bool = False
    orderings: tuple[Ordering, ...] = ()
    limit: Literal | Variable | None = None
    offset: Literal | Variable | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Parameter:
    """A parameter declaration such as `$n: I32? = 10`."""

    name: str
    type: PropertyType
    default: Literal | ListLiteral | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Query:
    """One named query with its parameters and body."""

    name: Name
    parameters: tuple[Parameter, ...]
    body: ReadBody | UnionBody | WriteBody
    description: str | None = None
    instruction: str | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@record
class QueryFile:
    """All queries in a `.gq` file, in source order."""

    queries: tuple[Query, ...] = ()
