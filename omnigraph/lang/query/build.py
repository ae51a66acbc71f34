"""Build our own nodes from the parser's generic tree of one query.

Owns the walk, the offsets and the problems that the grammar accepts and the language does not. It
must not recurse, so that deep nesting cannot overflow the stack. The actions of the grammar rules
are in `build_expressions`, `build_conditions`, `build_clauses` and `build_bodies`.
"""

from collections.abc import Callable
from typing import Any

from omnigraph.diagnostics import Diagnostic, Source, Span

from .model import Name, Query, Variable

Make = Callable[["Builder", Span, list[Any]], Any]


class Builder:
    """Builds nodes from syntax trees, one query after another."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self._offset = 0

    def query(self, tree: Any, offset: int) -> Query | None:
        """Build the query whose tree begins at `offset`; None if problems were found."""
        from .build_bodies import RULES

        self._offset = offset
        before = len(self.problems)
        made: Query = self._fold(tree, RULES)
        return made if len(self.problems) == before else None

    def _fold(self, tree: Any, rules: dict[str, Make]) -> Any:
        pending, order = [tree], []
        while pending:
            piece = pending.pop()
            order.append(piece)
            pending += getattr(piece, "children", ())
        made: list[Any] = []
        for piece in reversed(order):
            if not hasattr(piece, "children"):
                made.append(piece)
                continue
            cut = len(made) - len(piece.children)
            kids = made[cut:]
            del made[cut:]
            made.append(rules[piece.data](self, self._place(piece.meta), kids))
        return made[0]

    def _place(self, meta: Any) -> Span:
        if meta.empty:
            return Span(self._offset, self._offset)
        return Span(meta.start_pos + self._offset, meta.end_pos + self._offset)

    def span(self, token: Any) -> Span:
        """Return the position of a token in the source."""
        return Span(token.start_pos + self._offset, token.end_pos + self._offset)

    def report(self, span: Span, message: str, hint: str | None = None) -> None:
        """Record a problem and continue, so that all mistakes of a query are reported together."""
        self.problems.append(Diagnostic.at(self.source, span, message, hint=hint))

    def name(self, token: Any) -> Name:
        """Return a word with its position."""
        return Name(str(token), self.span(token))

    def variable(self, token: Any) -> Variable:
        """Return a variable, without its dollar sign."""
        return Variable(str(token)[1:], self.span(token))


def is_token(piece: Any) -> bool:
    """Whether a node of the parser's tree is a single token."""
    return hasattr(piece, "type") and hasattr(piece, "start_pos")
