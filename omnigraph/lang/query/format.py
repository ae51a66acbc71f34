"""The canonical layout of a `.gq` text.

Owns where lines break. Comments stay with the code they belong to, at most one blank line is kept,
and the formatted text must parse to an equal tree. Text with syntax errors is rejected.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from omnigraph.diagnostics import NOWHERE, Span
from omnigraph.lang import scan
from omnigraph.lang.layout import INDENT, Blank, Layout

from .model import (
    And,
    Binding,
    Clause,
    Condition,
    Delete,
    Filter,
    Negation,
    OptionalMatch,
    Or,
    Query,
    ReadBody,
    Statement,
    Update,
)
from .parse import parse_queries
from .spelling import Speller, glue, opening

WIDTH = 100
_Items = Sequence[tuple[str, Span]]
_Write = Callable[[int, Any, Blank], None]


def format_queries(text: str, name: str = "<query>") -> str:
    """Return the same queries in canonical layout; raise `ParseError` if one cannot be parsed.

    >>> print(format_queries('query q(){match{$p:Person{name:"A"}}return{$p.name}limit 3}'), end="")
    query q() {
        match {
            $p: Person { name: "A" }
        }
        return { $p.name }
        limit 3
    }
    """
    file = parse_queries(text, name)
    writer = _Writer(text)
    for query in file.queries:
        writer.query(query)
    return writer.finish()


class _Places:
    """Finds brackets and keywords that the tree does not keep, near positions that it does keep."""

    def __init__(self, text: str) -> None:
        self._text = text
        pieces = list(scan.lexemes(text, 0, len(text)))
        self._solid = [x for x in pieces if x.kind != "comment"]
        self._starts = [x.start for x in self._solid]
        self._comments = [x.start for x in pieces if x.kind == "comment"]

    def find(self, offset: int, wanted: str) -> Span:
        """Return the span of the first lexeme at or after `offset` whose text is `token_text`."""
        for index in range(bisect_left(self._starts, offset), len(self._solid)):
            piece = self._solid[index]
            if self._text[piece.start : piece.end] == wanted:
                return Span(piece.start, piece.end)
        raise AssertionError(f"the tree implies {wanted!r} after offset {offset}")

    def has_comment(self, span: Span) -> bool:
        """Whether `span` contains a comment."""
        return bisect_left(self._comments, span.start) < bisect_right(self._comments, span.end - 1)


class _Writer:
    """Writes one query after another."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spell = Speller(text)
        self._places = _Places(text)
        self._layout = Layout(text)

    def finish(self) -> str:
        """Return the formatted text."""
        return self._layout.finish()

    def query(self, node: Query) -> None:
        """Write a query from its first word to its last brace."""
        self._header(node)
        if isinstance(node.body, ReadBody):
            self._read(node.body)
        else:
            self._each(1, node.body.statements, self._statement)
        self._close(0, self._places.find(node.body.span.end, "}"))

    # Lines ----------------------------------------------------------------------------------

    def _one_line(self, depth: int, line: str, inner: Span) -> bool:
        """Whether a line is short enough and no comment has to go between its brackets."""
        fits = len(INDENT) * depth + len(line) <= WIDTH and "\n" not in line
        return fits and not self._places.has_comment(inner)

    def _close(self, depth: int, span: Span, line: str = "}") -> None:
        self._layout.item(depth, line, span, blank="never", closes=True)

    def _each(self, depth: int, nodes: Sequence[Any], write: _Write) -> None:
        for index, node in enumerate(nodes):
            write(depth, node, "keep" if index else "never")

    def _listing(
        self, depth: int, head: str, span: Span, items: _Items, blank: Blank, tail: str = ""
    ) -> None:
        """Write `heading { a, b } suffix` on one line if it fits, otherwise one item per line."""
        opened = self._places.find(span.start, "{")
        closed = self._places.find(items[-1][1].end, "}")
        line = f"{head} {{ {', '.join(text for text, _ in items)} }}{tail}"
        if self._one_line(depth, line, opened.to(closed)):
            self._layout.item(depth, line, span, blank=blank)
            return
        self._layout.item(depth, f"{head} {{", span.to(opened), blank=blank)
        last = len(items) - 1
        for index, (text, place) in enumerate(items):
            line = text + "," * (index < last)
            self._layout.item(depth + 1, line, place, blank="keep" if index else "never")
        self._close(depth, closed.to(span), "}" + tail)

    def _wrapped(self, depth: int, head: str, node: Condition) -> str:
        """Spell a condition after `prefix`; break before each `and` or `or` if it is too long."""
        line = head + self._spell.condition(node)
        if self._one_line(depth, line, NOWHERE) or not isinstance(node, And | Or):
            return line
        broken = f"\n{INDENT * (depth + 1)}{glue(node)} "
        return head + broken.join(self._spell.operands(node))

    # Headers --------------------------------------------------------------------------------

    def _header(self, node: Query) -> None:
        opened = self._places.find(node.span.start, "{")
        after = node.parameters[-1].span.end if node.parameters else node.name.span.end
        closed = self._places.find(after, ")")
        notes = self._notes(closed.end, opened.start)
        self._signature(node, closed.to(closed if notes else opened), ")" if notes else ") {")
        for text, place in notes:
            self._layout.item(1, text, place, blank="never")
        if notes:
            self._close(0, opened, "{")

    def _signature(self, node: Query, end: Span, tail: str) -> None:
        """Write name and parameters; one parameter per line if they do not fit on one line."""
        opened = self._places.find(node.name.span.end, "(")
        head = f"query {node.name.text}("
        given = [self._spell.parameter(one) for one in node.parameters]
        line = head + ", ".join(given) + tail
        if not given or self._one_line(0, line, opened.to(Span(end.start, end.start))):
            self._layout.item(0, line, node.span.to(end), blank="always")
            return
        self._layout.item(0, head, node.span.to(opened), blank="always")
        last = len(given) - 1
        for index, (text, one) in enumerate(zip(given, node.parameters, strict=True)):
            self._layout.item(1, text + "," * (index < last), one.span, blank="never")
        self._close(0, end, tail)

    def _notes(self, start: int, end: int) -> list[tuple[str, Span]]:
        """Return the annotations between two offsets, as written."""
        notes = []
        pieces = [x for x in scan.lexemes(self._text, start, end) if x.kind != "comment"]
        for index in range(0, len(pieces) - 4, 5):  # @ word ( string )
            at, word, _, string, last = pieces[index : index + 5]
            said = self._text[string.start : string.end]
            text = f"@{self._text[word.start : word.end]}({said})"
            notes.append((text, Span(at.start, last.end)))
        return notes

    # Reading --------------------------------------------------------------------------------

    def _read(self, node: ReadBody) -> None:
        opened = self._places.find(node.span.start, "{")
        self._layout.item(1, "match {", node.span.to(opened), blank="never")
        self._each(2, node.clauses, self._clause)
        closed = self._places.find(node.clauses[-1].span.end, "}")
        self._close(1, closed)
        columns = [(self._spell.projection(one), one.span) for one in node.projections]
        end = self._part("return distinct" if node.distinct else "return", closed.end, columns)
        if node.orderings:
            keys = [(self._spell.ordering(key), key.span) for key in node.orderings]
            end = self._part("order", end, keys)
        for word, amount in (("limit", node.limit), ("offset", node.offset)):
            if amount is not None:
                span = self._places.find(end, word).to(amount.span)
                self._layout.item(1, f"{word} {self._spell.expression(amount)}", span)
                end = span.end

    def _part(self, head: str, after: int, items: _Items) -> int:
        start = self._places.find(after, head.split(maxsplit=1)[0])
        span = start.to(self._places.find(items[-1][1].end, "}"))
        self._listing(1, head, span, items, "keep")
        return span.end

    def _clause(self, depth: int, node: Clause, blank: Blank) -> None:
        if isinstance(node, Negation | OptionalMatch):
            self._block(depth, node, blank)
        elif isinstance(node, Binding) and node.predicates:
            items = [
                (self._spell.predicate(p), p.name.span.to(p.value.span)) for p in node.predicates
            ]
            head = f"${node.variable.name}: {node.type_name.text}"
            self._listing(depth, head, node.span, items, blank)
        elif isinstance(node, Filter) and isinstance(node.condition, And | Or):
            self._layout.item(
                depth, self._wrapped(depth, "", node.condition), node.span, blank=blank
            )
        else:
            self._layout.item(depth, self._spell.clause(node), node.span, blank=blank)

    def _block(self, depth: int, node: Negation | OptionalMatch, blank: Blank) -> None:
        line = self._spell.clause(node)
        plain = len(node.clauses) == 1 and not isinstance(node.clauses[0], Negation | OptionalMatch)
        opened = self._places.find(node.span.start, "{")
        if plain and self._one_line(depth, line, opened.to(node.span)):
            self._layout.item(depth, line, node.span, blank=blank)
            return
        self._layout.item(depth, f"{opening(node)} {{", node.span.to(opened), blank=blank)
        self._each(depth + 1, node.clauses, self._clause)
        self._close(depth, self._places.find(node.clauses[-1].span.end, "}"))

    # Changing -------------------------------------------------------------------------------

    def _statement(self, depth: int, node: Statement, blank: Blank) -> None:
        if isinstance(node, Delete):
            line = self._wrapped(depth, f"delete {node.type_name.text} where ", node.where)
            self._layout.item(depth, line, node.span, blank=blank)
            return
        items = [(self._spell.predicate(one), one.span) for one in node.assignments]
        tail = ""
        if isinstance(node, Update):
            tail = self._wrapped(depth, "} where ", node.where)[1:]
        self._listing(depth, opening(node), node.span, items, blank, tail)
