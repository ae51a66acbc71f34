"""The unresolved syntax tree of a mutation and its statements.

These nodes belong to the tree that `model` defines. Other modules import them from `model`.
"""

from dataclasses import field
from typing import TYPE_CHECKING

from omnigraph.errors.diagnostics import NO_SPAN, Span
from omnigraph.records.frozen import record

if TYPE_CHECKING:
    from .model import Clause, Condition, Expression, Name, Variable


@record
class Assignment:
    """An assignment such as `age: $a` in an insert, upsert, patch or update."""

    name: "Name"
    value: "Expression"
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Insert:
    """An insert such as `insert Person { name: "Ann" }`."""

    type_name: "Name"
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Upsert:
    """An upsert such as `upsert Person { name: "Ann", age: 3 }`."""

    type_name: "Name"
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Patch:
    """A patch such as `patch Person { name: "Ann", age: 3 }`."""

    type_name: "Name"
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Update:
    """An update such as `update Person set { age: 3 } where name = "Ann"`. Bare words are `Alias` nodes."""

    type_name: "Name"
    assignments: tuple[Assignment, ...]
    where: "Condition"
    span: Span = field(default=NO_SPAN, compare=False)


@record
class Delete:
    """A deletion such as `delete Person where name = "Ann"`."""

    type_name: "Name"
    where: "Condition"
    span: Span = field(default=NO_SPAN, compare=False)


@record
class MatchedUpdate:
    """An update of matched entities, such as `match { .. } update $p set { age: $q.age }`."""

    clauses: tuple["Clause", ...]
    variable: "Variable"
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@record
class MatchedDelete:
    """A deletion of matched entities, such as `match { .. } delete $p`."""

    clauses: tuple["Clause", ...]
    variable: "Variable"
    span: Span = field(default=NO_SPAN, compare=False)


Statement = Insert | Upsert | Patch | Update | Delete | MatchedUpdate | MatchedDelete


@record
class WriteBody:
    """The body of a mutation, which consists of one or more statements."""

    statements: tuple[Statement, ...]
    span: Span = field(default=NO_SPAN, compare=False)
