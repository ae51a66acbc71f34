"""The canonical layout of a schema file.

Owns how a tree is printed: one member per line, four spaces, no wrapping. Comments, the order of
declarations and the spelling of strings and numbers are preserved; the meaning never changes.
"""

from bisect import bisect_left

from omnigraph.diagnostics import Span
from omnigraph.lang import scan
from omnigraph.lang.layout import INDENT, Blank, Layout

from .model import (
    Annotation,
    Bounds,
    Constraint,
    Declaration,
    EdgeDeclaration,
    InterfaceDeclaration,
    Literal,
    Member,
    NodeDeclaration,
    Option,
    Property,
    SchemaFile,
)


def format_text(text: str, tree: SchemaFile) -> str:
    """Return `tree` in canonical layout; `schema_text` is the text it was parsed from."""
    printer = _Printer(text)
    before: Declaration | None = None
    for declaration in tree.declarations:
        printer.declaration(declaration, _blank(before, declaration, printer))
        before = declaration
    return printer.layout.finish()


def _blank(before: Declaration | None, after: Declaration, printer: "_Printer") -> Blank:
    """Separate declarations that have a body; one-line edges may be adjacent."""
    one_liners = not printer.has_body(after) and not (before and printer.has_body(before))
    return "keep" if one_liners else "always"


class _BodyLayout(Layout):
    """A layout with bodies: comments before a closing brace belong inside the body."""

    def close(self, depth: int, brace: Span, *, empty: bool) -> None:
        """Print the closing brace of a body."""
        blank: Blank = "never" if empty else "keep"
        while self._comments and self._comments[-1].start < brace.start:
            comment = self._comments.pop()
            self._space(comment.start, blank)
            self._lines.append(INDENT * (depth + 1) + self._comment(comment))
            blank = "keep"
        self.item(depth, "}", brace, blank="never")


class _Printer:
    def __init__(self, text: str) -> None:
        self.layout = _BodyLayout(text)
        self._text = text
        self._comments = [comment.start for comment in scan.comments(text)]

    def has_body(self, declaration: Declaration) -> bool:
        """Return whether the braces contain anything, even if only a comment."""
        body = declaration.body
        if body is None:
            return False
        first, last = (bisect_left(self._comments, at) for at in (body.start, body.end))
        return bool(_members(declaration)) or first < last

    def declaration(self, declaration: Declaration, blank: Blank) -> None:
        """Print a declaration over one or more lines."""
        head, body = self._head(declaration), declaration.body
        if body is None or not self.has_body(declaration):
            bare = isinstance(declaration, EdgeDeclaration)
            line = head if bare else f"{head} {{}}"
            self.layout.item(0, line, declaration.span, blank=blank)
            return
        opened = Span(declaration.span.start, body.start + 1)
        self.layout.item(0, f"{head} {{", opened, blank=blank)
        members = _members(declaration)
        for index, member in enumerate(members):
            self.layout.item(
                1, self._member(member), member.span, blank="keep" if index else "never"
            )
        self.layout.close(0, Span(body.end - 1, body.end), empty=not members)

    def _head(self, declaration: Declaration) -> str:
        name = declaration.name.text
        notes = [self._annotation(note) for note in declaration.annotations]
        match declaration:
            case InterfaceDeclaration():
                words = ["interface", name, *notes]
            case NodeDeclaration(implements=interfaces):
                words = ["node", name, *notes]
                if interfaces:
                    words += ["implements", ", ".join(i.text for i in interfaces)]
            case EdgeDeclaration(source=source, target=target, cardinality=bounds):
                words = ["edge", f"{name}:", source.text, "->", target.text]
                if bounds is not None:
                    high = "" if bounds.high is None else bounds.high
                    words.append(f"@card({bounds.low}..{high})")
                words += notes
        return " ".join(words)

    def _member(self, member: Member) -> str:
        if isinstance(member, Constraint):
            return f"@{member.kind}({self._arguments(member)})"
        notes = [self._annotation(note) for note in member.annotations]
        return " ".join([f"{member.name.text}:", self._type(member), *notes])

    def _type(self, member: Property) -> str:
        """Return the type; the values of an enum keep the order in which they are written."""
        if not member.type.is_enum:
            return member.type.display()
        at = member.type_span
        pieces = (x for x in scan.lexemes(self._text, at.start, at.end) if x.kind != "comment")
        return "".join(self._text[x.start : x.end] for x in pieces).replace(",", ", ")

    def _annotation(self, note: Annotation) -> str:
        arguments = self._arguments(note)
        return f"@{note.name.text}({arguments})" if arguments else f"@{note.name.text}"

    def _arguments(self, of: Annotation | Constraint) -> str:
        return ", ".join(self._argument(one) for one in (*of.arguments, *of.options))

    def _argument(self, one: Literal | Bounds | Option) -> str:
        match one:
            case Option(name, value):
                return f"{name.text}={self._argument(value)}"
            case Bounds(low, high):
                ends = ("" if end is None else self._argument(end) for end in (low, high))
                return "..".join(ends)
            case Literal(kind="string", span=span):
                return self._text[span.start : span.end]
            case Literal(text=text):
                return text


def _members(declaration: Declaration) -> tuple[Member, ...]:
    if isinstance(declaration, InterfaceDeclaration):
        return declaration.properties
    return declaration.members
