"""Format a `.gq` file in its canonical layout.

This module decides where lines break. Comments stay with the code that they belong to, and consecutive blank lines are
reduced to one. The formatted text must parse to an equal tree. Text with syntax errors is rejected.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from omnigraph.errors.diagnostics import NO_SPAN, Span
from omnigraph.lang import coarse_scan
from omnigraph.lang.comment_layout import INDENT, BlankLinePolicy, Layout

from .model import (
    And,
    Binding,
    Clause,
    Condition,
    Delete,
    Filter,
    MatchedDelete,
    MatchedUpdate,
    Negation,
    OptionalMatch,
    Or,
    Query,
    ReadBody,
    Statement,
    Traversal,
    UnionBody,
    Update,
    WriteBody,
)
from .parse import parse_queries
from .print_syntax import Speller, block_opening, combining_word, union_words

MAX_LINE_WIDTH = 100
_SpelledItems = Sequence[tuple[str, Span]]
_NodeWriter = Callable[[int, Any, BlankLinePolicy], None]


def format_queries(query_text: str, source_name: str = "<query>") -> str:
    """Return the queries in canonical layout, or raise `ParseError` if any of them cannot be parsed.

    >>> print(format_queries('query q(){match{$p:Person{name:"A"}}return{$p.name}limit 3}'), end="")
    query q() {
        match {
            $p: Person { name: "A" }
        }
        return { $p.name }
        limit 3
    }
    """
    query_file = parse_queries(query_text, source_name)
    writer = _QueryWriter(query_text)
    for query in query_file.queries:
        writer.write_query(query)
    return writer.finish()


class _TokenFinder:
    """Uses the positions of nearby tree nodes to find brackets and keywords that the syntax tree omits."""

    def __init__(self, text: str) -> None:
        self._text = text
        all_lexemes = list(coarse_scan.lexemes(text, 0, len(text)))
        self._code_lexemes = [lexeme for lexeme in all_lexemes if lexeme.kind != "comment"]
        self._code_starts = [lexeme.start for lexeme in self._code_lexemes]
        self._comment_starts = [lexeme.start for lexeme in all_lexemes if lexeme.kind == "comment"]

    def find_token(self, offset: int, token_text: str) -> Span:
        """Return the span of the first lexeme at or after `offset` whose text is `token_text`."""
        for lexeme_index in range(bisect_left(self._code_starts, offset), len(self._code_lexemes)):
            lexeme = self._code_lexemes[lexeme_index]
            if self._text[lexeme.start : lexeme.end] == token_text:
                return Span(lexeme.start, lexeme.end)
        raise AssertionError(f"expected {token_text!r} at or after offset {offset}")

    def has_comment(self, span: Span) -> bool:
        """Return whether `span` contains a comment."""
        return bisect_left(self._comment_starts, span.start) < bisect_right(self._comment_starts, span.end - 1)


class _QueryWriter:
    """Writes formatted queries, one after another."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._speller = Speller(text)
        self._tokens = _TokenFinder(text)
        self._layout = Layout(text)

    def finish(self) -> str:
        """Return the formatted text."""
        return self._layout.finish()

    def write_query(self, query: Query) -> None:
        """Write a query from its first word to its last brace."""
        self._write_header(query)
        if isinstance(query.body, WriteBody):
            self._write_each(1, query.body.statements, self._write_statement)
        else:
            self._write_read_body(query.body)
        self._close_block(0, self._tokens.find_token(query.body.span.end, "}"))

    # Lines ----------------------------------------------------------------------------------

    def _fits_one_line(self, depth: int, line: str, bracket_span: Span) -> bool:
        """Return whether a line is short enough and has no comment between its brackets."""
        is_short = len(INDENT) * depth + len(line) <= MAX_LINE_WIDTH and "\n" not in line
        return is_short and not self._tokens.has_comment(bracket_span)

    def _close_block(self, depth: int, closing_span: Span, closing_line: str = "}") -> None:
        self._layout.add_item(depth, closing_line, closing_span, blank_line="never", closes_block=True)

    def _write_each(self, depth: int, nodes: Sequence[Any], write_node: _NodeWriter) -> None:
        for node_index, node in enumerate(nodes):
            write_node(depth, node, "keep" if node_index else "never")

    def _write_list(
        self,
        depth: int,
        heading: str,
        list_span: Span,
        items: _SpelledItems,
        blank_line: BlankLinePolicy,
        suffix: str = "",
    ) -> None:
        """Write `heading { a, b } suffix` on one line if it fits, and otherwise with one item per line."""
        opening_brace = self._tokens.find_token(list_span.start, "{")
        closing_brace = self._tokens.find_token(items[-1][1].end, "}")
        line = f"{heading} {{ {', '.join(item_text for item_text, _ in items)} }}{suffix}"
        if self._fits_one_line(depth, line, opening_brace.to(closing_brace)):
            self._layout.add_item(depth, line, list_span, blank_line=blank_line)
            return
        self._layout.add_item(depth, f"{heading} {{", list_span.to(opening_brace), blank_line=blank_line)
        last_index = len(items) - 1
        for item_index, (item_text, item_span) in enumerate(items):
            line = item_text + "," * (item_index < last_index)
            self._layout.add_item(depth + 1, line, item_span, blank_line="keep" if item_index else "never")
        self._close_block(depth, closing_brace.to(list_span), "}" + suffix)

    def _wrap_condition(self, depth: int, prefix: str, condition: Condition) -> str:
        """Return `prefix` and a condition, with a line break before each `and` or `or` if the line is too long."""
        line = prefix + self._speller.condition(condition)
        if self._fits_one_line(depth, line, NO_SPAN) or not isinstance(condition, And | Or):
            return line
        line_break = f"\n{INDENT * (depth + 1)}{combining_word(condition)} "
        return prefix + line_break.join(self._speller.operands(condition))

    # Headers --------------------------------------------------------------------------------

    def _write_header(self, query: Query) -> None:
        opening_brace = self._tokens.find_token(query.span.start, "{")
        parameters_end = query.parameters[-1].span.end if query.parameters else query.name.span.end
        closing_paren = self._tokens.find_token(parameters_end, ")")
        annotations = self._annotations_between(closing_paren.end, opening_brace.start)
        self._write_signature(
            query, closing_paren.to(closing_paren if annotations else opening_brace), ")" if annotations else ") {"
        )
        for annotation_text, annotation_span in annotations:
            self._layout.add_item(1, annotation_text, annotation_span, blank_line="never")
        if annotations:
            self._close_block(0, opening_brace, "{")

    def _write_signature(self, query: Query, closing_span: Span, suffix: str) -> None:
        """Write the name and the parameters, with one parameter per line if they do not fit on one line."""
        opening_paren = self._tokens.find_token(query.name.span.end, "(")
        prefix = f"query {query.name.text}("
        spelled_parameters = [self._speller.parameter(parameter) for parameter in query.parameters]
        line = prefix + ", ".join(spelled_parameters) + suffix
        if not spelled_parameters or self._fits_one_line(
            0, line, opening_paren.to(Span(closing_span.start, closing_span.start))
        ):
            self._layout.add_item(0, line, query.span.to(closing_span), blank_line="always")
            return
        self._layout.add_item(0, prefix, query.span.to(opening_paren), blank_line="always")
        last_index = len(spelled_parameters) - 1
        for parameter_index, (parameter_text, parameter) in enumerate(
            zip(spelled_parameters, query.parameters, strict=True)
        ):
            self._layout.add_item(
                1, parameter_text + "," * (parameter_index < last_index), parameter.span, blank_line="never"
            )
        self._close_block(0, closing_span, suffix)

    def _annotations_between(self, start: int, end: int) -> list[tuple[str, Span]]:
        """Return the annotations between two offsets, as written."""
        annotations = []
        code_lexemes = [lexeme for lexeme in coarse_scan.lexemes(self._text, start, end) if lexeme.kind != "comment"]
        for first_index in range(0, len(code_lexemes) - 4, 5):  # @ word ( string )
            at_sign, name_lexeme, _, text_lexeme, closing_paren = code_lexemes[first_index : first_index + 5]
            quoted_text = self._text[text_lexeme.start : text_lexeme.end]
            annotation_text = f"@{self._text[name_lexeme.start : name_lexeme.end]}({quoted_text})"
            annotations.append((annotation_text, Span(at_sign.start, closing_paren.end)))
        return annotations

    # Reading --------------------------------------------------------------------------------

    def _write_read_body(self, read_body: ReadBody | UnionBody) -> None:
        part_end = self._write_union(read_body) if isinstance(read_body, UnionBody) else self._write_select(read_body)
        if read_body.orderings:
            spelled_keys = [(self._speller.ordering(key), key.span) for key in read_body.orderings]
            part_end = self._write_part("order", part_end, spelled_keys)
        for keyword, row_count in (("limit", read_body.limit), ("offset", read_body.offset)):
            if row_count is not None:
                part_span = self._tokens.find_token(part_end, keyword).to(row_count.span)
                self._layout.add_item(1, f"{keyword} {self._speller.expression(row_count)}", part_span)
                part_end = part_span.end

    def _write_union(self, union_body: UnionBody) -> int:
        part_end = self._write_select(union_body.parts[0])
        for part in union_body.parts[1:]:
            keyword_span = self._tokens.find_token(part_end, "union")
            if union_body.keeps_duplicates:
                keyword_span = keyword_span.to(self._tokens.find_token(keyword_span.end, "all"))
            self._layout.add_item(1, union_words(union_body), keyword_span)
            part_end = self._write_select(part)
        return part_end

    def _write_select(self, read_body: ReadBody) -> int:
        """Write the match, return and having blocks, and return the offset where they end."""
        match_end = self._write_match(1, read_body.span, read_body.clauses, "never")
        spelled_columns = [
            (self._speller.projection(projection), projection.span) for projection in read_body.projections
        ]
        heading = "return distinct" if read_body.distinct else "return"
        part_end = self._write_part(heading, match_end, spelled_columns)
        if read_body.having is None:
            return part_end
        having_text = self._wrap_condition(2, "", read_body.having)
        return self._write_part("having", part_end, [(having_text, read_body.having.span)])

    def _write_match(self, depth: int, match_span: Span, clauses: Sequence[Clause], blank_line: BlankLinePolicy) -> int:
        """Write the `match { .. }` block at the start of a span, and return the offset where it ends."""
        opening_brace = self._tokens.find_token(match_span.start, "{")
        heading_span = Span(match_span.start, opening_brace.end)
        self._layout.add_item(depth, "match {", heading_span, blank_line=blank_line)
        self._write_each(depth + 1, clauses, self._write_clause)
        closing_brace = self._tokens.find_token(clauses[-1].span.end, "}")
        self._close_block(depth, closing_brace)
        return closing_brace.end

    def _write_part(self, heading: str, search_start: int, items: _SpelledItems) -> int:
        keyword_span = self._tokens.find_token(search_start, heading.split(maxsplit=1)[0])
        part_span = keyword_span.to(self._tokens.find_token(items[-1][1].end, "}"))
        self._write_list(1, heading, part_span, items, "keep")
        return part_span.end

    def _write_clause(self, depth: int, clause: Clause, blank_line: BlankLinePolicy) -> None:
        if isinstance(clause, Negation | OptionalMatch):
            self._write_block(depth, clause, blank_line)
        elif isinstance(clause, Binding) and clause.predicates:
            spelled_predicates = [
                (self._speller.predicate(predicate), predicate.name.span.to(predicate.value.span))
                for predicate in clause.predicates
            ]
            heading = f"${clause.variable.name}: {clause.type_name.text}"
            self._write_list(depth, heading, clause.span, spelled_predicates, blank_line)
        elif isinstance(clause, Filter) and isinstance(clause.condition, And | Or):
            wrapped_text = self._wrap_condition(depth, "", clause.condition)
            wrapped_text = f"({wrapped_text})" if wrapped_text.startswith("-") else wrapped_text
            self._layout.add_item(depth, wrapped_text, clause.span, blank_line=blank_line)
        else:
            line = self._speller.clause(clause)
            if isinstance(clause, Traversal) and not self._fits_one_line(depth, line, NO_SPAN):
                line = f"\n{INDENT * (depth + 1)}".join(self._speller.traversal_parts(clause))
            self._layout.add_item(depth, line, clause.span, blank_line=blank_line)

    def _write_block(self, depth: int, block: Negation | OptionalMatch, blank_line: BlankLinePolicy) -> None:
        line = self._speller.clause(block)
        is_simple = len(block.clauses) == 1 and not isinstance(block.clauses[0], Negation | OptionalMatch)
        opening_brace = self._tokens.find_token(block.span.start, "{")
        if is_simple and self._fits_one_line(depth, line, opening_brace.to(block.span)):
            self._layout.add_item(depth, line, block.span, blank_line=blank_line)
            return
        self._layout.add_item(depth, f"{block_opening(block)} {{", block.span.to(opening_brace), blank_line=blank_line)
        self._write_each(depth + 1, block.clauses, self._write_clause)
        self._close_block(depth, self._tokens.find_token(block.clauses[-1].span.end, "}"))

    # Changing -------------------------------------------------------------------------------

    def _write_statement(self, depth: int, statement: Statement, blank_line: BlankLinePolicy) -> None:
        if isinstance(statement, Delete):
            line = self._wrap_condition(depth, f"delete {statement.type_name.text} where ", statement.where)
            self._layout.add_item(depth, line, statement.span, blank_line=blank_line)
            return
        statement_span = statement.span
        if isinstance(statement, MatchedUpdate | MatchedDelete):
            match_end = self._write_match(depth, statement.span, statement.clauses, blank_line)
            keyword = "delete" if isinstance(statement, MatchedDelete) else "update"
            statement_span = self._tokens.find_token(match_end, keyword).to(statement.span)
            blank_line = "never"
        if isinstance(statement, MatchedDelete):
            self._layout.add_item(depth, f"delete ${statement.variable.name}", statement_span, blank_line=blank_line)
            return
        spelled_assignments = [
            (self._speller.predicate(assignment), assignment.span) for assignment in statement.assignments
        ]
        suffix = ""
        if isinstance(statement, Update):
            suffix = self._wrap_condition(depth, "} where ", statement.where)[1:]
        self._write_list(depth, block_opening(statement), statement_span, spelled_assignments, blank_line, suffix)
