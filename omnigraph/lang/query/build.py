"""From the parser's generic tree of one query to our own nodes.

Owns the walk, the offsets and the list of what the grammar lets through and the language does
not. It never recurses, so that no text is too deep for it; what a rule means stands beside it in
`build_expressions`, `build_conditions`, `build_clauses` and `build_bodies`.
"""

from collections.abc import Callable
from typing import Any

from omnigraph.diagnostics import Diagnostic, Source, Span

from .model import Name, Query, Variable

Make = Callable[["Builder", Span, list[Any]], Any]


class Builder:
    """Makes our nodes from the trees of one query after the other."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self._offset = 0

    def query(self, tree: Any, offset: int) -> Query | None:
        """The query that `tree` shows, which begins at `offset`; None when problems were found."""
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
        """Where a token stands in the source."""
        return Span(token.start_pos + self._offset, token.end_pos + self._offset)

    def report(self, span: Span, message: str, hint: str | None = None) -> None:
        """Keep a problem and go on, so that all mistakes of a query are seen together."""
        self.problems.append(Diagnostic.at(self.source, span, message, hint=hint))

    def name(self, token: Any) -> Name:
        """A word at its place."""
        return Name(str(token), self.span(token))

    def variable(self, token: Any) -> Variable:
        """A variable, without its dollar sign."""
        return Variable(str(token)[1:], self.span(token))


def is_token(piece: Any) -> bool:
    """Whether a piece of the parser's tree is a single token."""
    return hasattr(piece, "type") and hasattr(piece, "start_pos")
