"""The syntax tree of a mutation: its statements, as written.

Part of the tree that `model` defines; import these nodes from there.
"""

from dataclasses import field
from typing import TYPE_CHECKING

from omnigraph.errors.diagnostics import NO_SPAN, Span
from omnigraph.records.frozen import record

if TYPE_CHECKING:
    from .model import Clause, Condition, Expression, Name, Variable


@record
class Assignment:
    """`age: $a` in insert, upsert, patch and update."""

    name: "Name"
    value: "Expression"
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Insert:
    """`insert Person { name: "Ann" }`."""

    type_name: "Name"
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Upsert:
    """`upsert Person { name: "Ann", age: 3 }`."""

    type_name: "Name"
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Patch:
    """`patch Person { name: "Ann", age: 3 }`."""

    type_name: "Name"
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Update:
    """`update Person set { age: 3 } where name = "Ann"`; bare words in `where` are `Alias`."""

    type_name: "Name"
    assignments: tuple[Assignment, ...]
    where: "Condition"
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Delete:
    """`delete Person where name = "Ann"`."""

    type_name: "Name"
    where: "Condition"
    span: Span = field(default=NO_SPAN, compare=False)


@record
class MatchedUpdate:
    """`match { .. } update $p set { age: $q.age }`."""

    clauses: tuple["Clause", ...]
    variable: "Variable"
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class MatchedDelete:
    """`match { .. } delete $p`."""

    clauses: tuple["Clause", ...]
    variable: "Variable"
    span: Span = field(default=NO_SPAN, compare=False)


Statement = Insert | Upsert | Patch | Update | Delete | MatchedUpdate | MatchedDelete


@record
class WriteBody:
    """One or more statements."""

    statements: tuple[Statement, ...]
    span: Span = field(default=NO_SPAN, compare=False)
