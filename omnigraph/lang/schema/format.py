"""Format a schema file in its canonical layout.

Each member is on its own line, indented by four spaces, and lines are never wrapped. Formatting preserves comments, the
order of declarations, and the spelling of strings and numbers. Formatting never changes the meaning of a schema.
"""

from bisect import bisect_left

from omnigraph.errors.diagnostics import Span
from omnigraph.lang import coarse_scan
from omnigraph.lang.comment_layout import INDENT, BlankLinePolicy, Layout

from .model import (
    Annotation,
    Bounds,
    Constraint,
    Declaration,
    DeclarationMember,
    EdgeDeclaration,
    InterfaceDeclaration,
    Literal,
    NodeDeclaration,
    Option,
    Property,
    SchemaFile,
)


def format_tree(schema_text: str, tree: SchemaFile) -> str:
    """Return `tree` in canonical layout. `schema_text` must be the text that the tree was parsed from."""
    printer = _TreePrinter(schema_text)
    previous: Declaration | None = None
    for declaration in tree.declarations:
        printer.print_declaration(declaration, _blank_before(previous, declaration, printer))
        previous = declaration
    return printer.layout.finish()


def _blank_before(previous: Declaration | None, declaration: Declaration, printer: "_TreePrinter") -> BlankLinePolicy:
    """Decide whether a blank line precedes a declaration. Only one-line declarations may follow each other directly."""
    both_one_line = not printer.has_body(declaration) and not (previous and printer.has_body(previous))
    return "keep" if both_one_line else "always"


class _BodyLayout(Layout):
    """A layout in which comments before a closing brace belong to the body."""

    def close_body(self, depth: int, brace: Span, *, empty: bool) -> None:
        """Print a body's closing brace."""
        blank: BlankLinePolicy = "never" if empty else "keep"
        while self._comments and self._comments[-1].start < brace.start:
            comment = self._comments.pop()
            self._add_blank_line(comment.start, blank)
            self._lines.append(INDENT * (depth + 1) + self._comment_text(comment))
            blank = "keep"
        self.add_item(depth, "}", brace, blank_line="never")


class _TreePrinter:
    def __init__(self, schema_text: str) -> None:
        self.layout = _BodyLayout(schema_text)
        self._source_text = schema_text
        self._comment_starts = [comment.start for comment in coarse_scan.find_comments(schema_text)]

    def has_body(self, declaration: Declaration) -> bool:
        """Return whether the braces contain anything, including comments."""
        body = declaration.body
        if body is None:
            return False
        first_comment, last_comment = (
            bisect_left(self._comment_starts, brace_offset) for brace_offset in (body.start, body.end)
        )
        return bool(_declared_members(declaration)) or first_comment < last_comment

    def print_declaration(self, declaration: Declaration, blank: BlankLinePolicy) -> None:
        """Print a declaration on one or more lines."""
        header, body = self._format_header(declaration), declaration.body
        if body is None or not self.has_body(declaration):
            is_edge = isinstance(declaration, EdgeDeclaration)
            header_line = header if is_edge else f"{header} {{}}"
            self.layout.add_item(0, header_line, declaration.span, blank_line=blank)
            return
        opening_span = Span(declaration.span.start, body.start + 1)
        self.layout.add_item(0, f"{header} {{", opening_span, blank_line=blank)
        members = _declared_members(declaration)
        for index, member in enumerate(members):
            self.layout.add_item(1, self._format_member(member), member.span, blank_line="keep" if index else "never")
        self.layout.close_body(0, Span(body.end - 1, body.end), empty=not members)

    def _format_header(self, declaration: Declaration) -> str:
        type_name = declaration.name.text
        annotation_texts = [self._format_annotation(annotation) for annotation in declaration.annotations]
        match declaration:
            case InterfaceDeclaration():
                header_words = ["interface", type_name, *annotation_texts]
            case NodeDeclaration(implements=interfaces):
                header_words = ["node", type_name, *annotation_texts]
                if interfaces:
                    header_words += ["implements", ", ".join(interface_name.text for interface_name in interfaces)]
            case EdgeDeclaration(source=source, target=target, cardinality=cardinality):
                header_words = ["edge", f"{type_name}:", source.text, "->", target.text]
                if cardinality is not None:
                    upper_bound = "" if cardinality.high is None else cardinality.high
                    header_words.append(f"@card({cardinality.low}..{upper_bound})")
                header_words += annotation_texts
        return " ".join(header_words)

    def _format_member(self, member: DeclarationMember) -> str:
        if isinstance(member, Constraint):
            return f"@{member.kind}({self._format_arguments(member)})"
        annotation_texts = [self._format_annotation(annotation) for annotation in member.annotations]
        return " ".join([f"{member.name.text}:", self._format_type(member), *annotation_texts])

    def _format_type(self, declared_property: Property) -> str:
        """Return the type as text. Enum values keep their original order."""
        if not declared_property.type.is_enum:
            return declared_property.type.display()
        type_span = declared_property.type_span
        significant_lexemes = (
            lexeme
            for lexeme in coarse_scan.lexemes(self._source_text, type_span.start, type_span.end)
            if lexeme.kind != "comment"
        )
        return "".join(self._source_text[lexeme.start : lexeme.end] for lexeme in significant_lexemes).replace(
            ",", ", "
        )

    def _format_annotation(self, annotation: Annotation) -> str:
        arguments = self._format_arguments(annotation)
        return f"@{annotation.name.text}({arguments})" if arguments else f"@{annotation.name.text}"

    def _format_arguments(self, owner: Annotation | Constraint) -> str:
        return ", ".join(self._format_argument(argument) for argument in (*owner.arguments, *owner.options))

    def _format_argument(self, argument: Literal | Bounds | Option) -> str:
        match argument:
            case Option(name, value):
                return f"{name.text}={self._format_argument(value)}"
            case Bounds(low, high):
                bound_texts = ("" if bound is None else self._format_argument(bound) for bound in (low, high))
                return "..".join(bound_texts)
            case Literal(kind="string", span=span):
                return self._source_text[span.start : span.end]
            case Literal(text=text):
                return text


def _declared_members(declaration: Declaration) -> tuple[DeclarationMember, ...]:
    if isinstance(declaration, InterfaceDeclaration):
        return declaration.properties
    return declaration.members
