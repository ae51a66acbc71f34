"""Build syntax tree nodes from the parser's generic tree for one query.

This module walks the tree, adjusts offsets, and reports text that the grammar accepts but the language rejects. The
walk must not recurse, so that deep nesting cannot overflow the stack. The actions for the grammar rules are in
the other `build_*` modules.
"""

from collections.abc import Callable
from typing import Any

from omnigraph.errors.diagnostics import Diagnostic, SourceText, Span
from omnigraph.lang.parse_tree import Token

from .model import Name, Query, Variable

RuleAction = Callable[["Builder", Span, list[Any]], Any]


class Builder:
    """Builds syntax tree nodes from parser trees, one query at a time."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self.case_depths: list[tuple[Span, int]] = []  # the nesting depth of each `case` expression built so far
        self._declaration_offset = 0

    def build_query(self, syntax_tree: Any, offset: int) -> Query | None:
        """Build a query from its tree, which begins at `offset` in the file. Return None if there were problems."""
        from .build_bodies import RULES

        self._declaration_offset = offset
        problem_count = len(self.problems)
        query: Query = self._build_bottom_up(syntax_tree, RULES)
        return query if len(self.problems) == problem_count else None

    def _build_bottom_up(self, syntax_tree: Any, rule_actions: dict[str, RuleAction]) -> Any:
        pending_nodes, visit_order = [syntax_tree], []
        while pending_nodes:
            tree_node = pending_nodes.pop()
            visit_order.append(tree_node)
            pending_nodes += getattr(tree_node, "children", ())
        built_nodes: list[Any] = []
        for tree_node in reversed(visit_order):
            if not hasattr(tree_node, "children"):
                built_nodes.append(tree_node)
                continue
            first_child = len(built_nodes) - len(tree_node.children)
            children = built_nodes[first_child:]
            del built_nodes[first_child:]
            built_nodes.append(rule_actions[tree_node.data](self, self._rule_span(tree_node), children))
        return built_nodes[0]

    def _rule_span(self, tree: Any) -> Span:
        if tree.start_pos is None:
            return Span(self._declaration_offset, self._declaration_offset)
        return Span(tree.start_pos + self._declaration_offset, tree.end_pos + self._declaration_offset)

    def token_span(self, token: Any) -> Span:
        """Return the position of a token in the source."""
        return Span(token.start_pos + self._declaration_offset, token.end_pos + self._declaration_offset)

    def report_problem(self, span: Span, message: str, hint: str | None = None) -> None:
        """Record a problem without raising an error, so that all mistakes in a query are reported together."""
        self.problems.append(Diagnostic.at_span(self.source, span, message, hint=hint))

    def withdraw_problem(self, span: Span) -> None:
        """Remove the problem recorded for a span, because the text turned out to be valid in its context."""
        self.problems = [problem for problem in self.problems if (problem.start, problem.end) != (span.start, span.end)]

    def make_name(self, token: Any) -> Name:
        """Return a word and its position as a `Name`."""
        return Name(str(token), self.token_span(token))

    def make_variable(self, token: Any) -> Variable:
        """Build a variable. Its name excludes the dollar sign."""
        return Variable(str(token)[1:], self.token_span(token))


def is_token(tree_node: Any) -> bool:
    """Return whether a node in the parser's tree is a single token."""
    return isinstance(tree_node, Token)
