"""Parses the text of a schema file into its syntax tree.

Owns the conversion of the parser's generic tree to `model`, and every rejection that needs only
one declaration: spelling of names, unknown types, stray commas, bad escapes. A rejected
declaration is still read to its end, so that all its mistakes are reported together.
"""

from collections.abc import Iterable
from typing import Any, get_args

from omnigraph.diagnostics import Diagnostic, Source, Span
from omnigraph.lang import scan
from omnigraph.lang.parsing import Language, parse_declarations
from omnigraph.naming import shorten_name
from omnigraph.record import record

from . import literals
from .model import (
    Annotation,
    Bounds,
    Cardinality,
    Constraint,
    ConstraintKind,
    Declaration,
    EdgeDeclaration,
    InterfaceDeclaration,
    Literal,
    LiteralKind,
    Member,
    Name,
    NodeDeclaration,
    Option,
    Property,
)
from .types import TypeReader
from .wording import GROUPS, NAMES, WANTED, advise

_OPENING = scan.Opening(frozenset({"node", "edge", "interface"}), ("word",))
_MAX_CARDINALITY = 2**32 - 1


@record
class ParsedSchema:
    """The declarations that could be read, the diagnostics, and the names that could not be read.

    `unreadable_names` holds (kind, name) pairs, so that later checks do not report such a type as
    missing.
    """

    source: Source
    declarations: tuple[Declaration, ...]
    diagnostics: tuple[Diagnostic, ...]
    broken: frozenset[tuple[str, str]]


def parse(source: Source) -> ParsedSchema:
    """Return the tree of a schema text with every syntax error. Never raises for bad text."""
    builder = _Builder(source)
    build = builder.declaration
    language = Language("schema", _OPENING, build, NAMES, WANTED, GROUPS, advise)
    parsed = parse_declarations(language, source)
    found = sorted([*parsed.diagnostics, *builder.problems], key=lambda d: (d.start, d.end))
    broken = (_title(source.text, span) for span in parsed.broken)
    names = frozenset(title for title in broken if title is not None)
    return ParsedSchema(source, parsed.declarations, tuple(found), names)


def _title(text: str, span: Span) -> tuple[str, str] | None:
    """Return the kind and name at the start of a declaration, or None if they are unreadable."""
    solid = (x for x in scan.lexemes(text, span.start, span.end) if x.kind != "comment")
    words = [text[x.start : x.end] for x, _ in zip(solid, range(2), strict=False)]
    return (words[0], words[1]) if len(words) == 2 and words[0] in _OPENING.words else None


class _Builder:
    """Converts the parser's trees to `model` nodes, one declaration after the other."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self._offset = 0

    def declaration(self, tree: Any, offset: int) -> Declaration:
        """Convert the tree of a declaration that starts at `offset` in the source."""
        self._offset = offset
        make: Any = getattr(self, f"_{tree.data}")
        made: Declaration = make(tree)
        return made

    def report(self, span: Span, message: str, hint: str | None = None) -> None:
        """Record a problem and continue."""
        self.problems.append(Diagnostic.at(self.source, span, message, hint=hint))

    def span(self, piece: Any) -> Span:
        """Return the position of a token or a tree in the source."""
        at = piece if hasattr(piece, "start_pos") else piece.meta
        return Span(at.start_pos + self._offset, at.end_pos + self._offset)

    # Declarations

    def _interface_def(self, tree: Any) -> InterfaceDeclaration:
        name, *notes, body = tree.children
        members = self._members(body)
        for member in members:
            if isinstance(member, Constraint):
                message = f"an interface has properties only, no `@{member.kind}(…)` constraint"
                hint = f"write `@{member.kind}` after the property, or constrain the nodes"
                self.report(member.span, message, hint)
        properties = tuple(m for m in members if isinstance(m, Property))
        allowed = self._interface_notes(self._annotations(notes))
        place = {"span": self.span(tree), "body": self.span(body)}
        return InterfaceDeclaration(self._type_name(name), properties, allowed, **place)

    def _interface_notes(self, notes: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
        for note in notes:
            if note.name.text != "allow":
                message = f"an interface cannot have the annotation `@{note.name.text}`"
                self.report(note.span, message, "annotate its properties or its nodes")
        return tuple(note for note in notes if note.name.text == "allow")

    def _node_def(self, tree: Any) -> NodeDeclaration:
        name, *notes, implements, body = tree.children
        return NodeDeclaration(
            self._type_name(name),
            self._annotations(notes),
            tuple(self._type_name(i) for i in implements.children) if implements else (),
            self._members(body),
            span=self.span(tree),
            body=self.span(body),
        )

    def _edge_def(self, tree: Any) -> EdgeDeclaration:
        name, source, target, cardinality, *notes, body = tree.children
        return EdgeDeclaration(
            self._type_name(name),
            self._type_name(source),
            self._type_name(target),
            self._cardinality(cardinality) if cardinality else None,
            self._annotations(notes),
            self._members(body) if body else (),
            span=self.span(tree),
            body=self.span(body) if body else None,
        )

    def _cardinality(self, tree: Any) -> Cardinality:
        low, high = (None if t is None else self._bound(t) for t in tree.children)
        span = self.span(tree)
        if low is not None and high is not None and low > high:
            message = f"`@card`: min {low} is greater than max {high}"
            self.report(span, message, f"`@card({high}..{low})`?")
        return Cardinality(low or 0, high, span)

    def _bound(self, token: Any) -> int | None:
        value = literals.integer(_number(token, self.span(token)))
        if value is not None and 0 <= value <= _MAX_CARDINALITY:
            return value
        message = f"`@card` takes whole numbers from 0 to {_MAX_CARDINALITY}, not `{token}`"
        self.report(self.span(token), message)
        return None

    # Members

    def _members(self, body: Any) -> tuple[Member, ...]:
        made = [getattr(self, f"_{member.data}")(member) for member in body.children]
        self._refuse_alone(one for one in made if isinstance(one, Annotation))
        return tuple(one for one in made if isinstance(one, Property | Constraint))

    def _refuse_alone(self, notes: Iterable[Annotation]) -> None:
        for note in notes:
            name = note.name.text
            hint = f"write `@{name}(…)`" if name in get_args(ConstraintKind) else None
            self.report(note.span, f"`@{name}` does not follow a property", hint)

    def _stray_comma(self, tree: Any) -> None:
        start = self.span(tree).start
        hint = "remove the comma; a new line or a space is enough"
        self.report(Span(start, start + 1), "no comma is allowed between properties", hint)
        self._refuse_alone(self._annotations(tree.children))

    def _property(self, tree: Any) -> Property:
        name, written, *notes = tree.children
        reader = TypeReader(self.report, self.span)
        made = reader.read(written)
        return Property(
            self._property_name(name),
            made,
            self._annotations(notes),
            self.span(written),
            self.span(tree),
            reader.refused,
        )

    def _constraint(self, tree: Any) -> Constraint:
        word, *pieces = tree.children
        kind: ConstraintKind = _word(word)  # type: ignore[assignment]  # the lexer checks the name
        self._refuse_alone(self._annotations(p for p in pieces if p.data == "annotation"))
        made = [self._argument(piece) for piece in pieces if piece.data != "annotation"]
        leading, late, options = self._split(kind, made)
        return Constraint(kind, (*leading, *late), options, self.span(tree))

    def _annotations(self, trees: Any) -> tuple[Annotation, ...]:
        return tuple(self._annotation(tree) for tree in trees)

    def _annotation(self, tree: Any) -> Annotation:
        word, *pieces = tree.children
        text = _word(word)
        span = self.span(word)
        name = Name(text, Span(span.end - len(text), span.end))
        if text[:1].isupper():
            hint = f"`@{_lower_first(text)}`?"
            self.report(span, f"annotation names start with a lower-case letter: `@{text}`", hint)
        made = [self._argument(piece) for piece in pieces if piece is not None]
        leading, _, options = self._split(text, made)
        plain = tuple(self._plain(name, argument) for argument in leading)
        return Annotation(name, plain, options, self.span(tree))

    def _plain(self, name: Name, argument: Literal | Bounds) -> Literal:
        if isinstance(argument, Literal):
            return argument
        message = f"`@{name.text}` does not take a range"
        if name.text == "card":
            message = "`@card(…)` belongs to an edge, directly after its target type"
        self.report(argument.span, message)
        return Literal("string", self.source.text[argument.span.start : argument.span.end])

    # Arguments

    def _split(
        self, name: str, made: list[Literal | Bounds | Option]
    ) -> tuple[list[Literal | Bounds], list[Literal | Bounds], tuple[Option, ...]]:
        """Split into positional arguments, those misplaced after an option, and options."""
        first = next((i for i, one in enumerate(made) if isinstance(one, Option)), len(made))
        leading = [one for one in made[:first] if not isinstance(one, Option)]
        late = [one for one in made[first:] if not isinstance(one, Option)]
        for one in late:
            message = f"`@{name}`: a positional argument follows a named argument"
            self.report(one.span, message, "put named arguments last")
        options = [one for one in made if isinstance(one, Option)]
        return leading, late, tuple(self._once(name, options))

    def _once(self, name: str, options: list[Option]) -> list[Option]:
        first: dict[str, Option] = {}
        for option in options:
            if first.setdefault(option.name.text, option) is not option:
                message = f"`@{name}`: `{option.name.text}` is given twice"
                self.report(option.name.span, message)
        return list(first.values())

    def _argument(self, tree: Any) -> Literal | Bounds | Option:
        make: Any = getattr(self, f"_{tree.data}")
        made: Literal | Bounds | Option = make(tree)
        return made

    def _option(self, tree: Any) -> Option:
        name, value = tree.children
        at = self.span(name)
        if not (name[0].islower() or name[0] == "_") or "-" in name:
            message = f"`{name}` is not a valid argument name"
            self.report(at, message, "start with a lower-case letter")
        return Option(Name(str(name), at), self._literal(value))

    def _bounds(self, tree: Any) -> Bounds:
        low, high = (t and _number(t, self.span(t)) for t in tree.children)
        return Bounds(low, high, self.span(tree))

    def _upper_bound(self, tree: Any) -> Bounds:
        token = tree.children[0]
        return Bounds(None, _number(token, self.span(token)), self.span(tree))

    def _literal(self, tree: Any) -> Literal:
        token = tree.children[0]
        span = self.span(token)
        if token.type == "NUMBER":
            return _number(token, span)
        if token.type == "WORD":
            return Literal(_word_kind(token), str(token), span)
        for at, escape in literals.unknown_escapes(token):
            message = f"unknown escape `{escape}` in a string"
            here = Span(span.start + at, span.start + at + 2)
            known = r"known escapes are `\"`, `\\`, `\n`, `\r` and `\t`"
            self.report(here, message, rf"{known}; for a literal backslash write `\{escape}`")
        return Literal("string", literals.decode(token), span)

    # Names

    def _type_name(self, token: Any) -> Name:
        span = self.span(token)
        if not token[0].isupper():
            shown = shorten_name(token)
            hint = f"`{_upper_first(shown)}`?"
            self.report(span, f"type names start with an upper-case letter: `{shown}`", hint)
        return Name(str(token), span)

    def _property_name(self, token: Any) -> Name:
        span = self.span(token)
        if token[0].isupper():
            shown = shorten_name(token)
            hint = f"`{_lower_first(shown)}`?"
            self.report(span, f"property names start with a lower-case letter: `{shown}`", hint)
        return Name(str(token), span)


def _number(token: Any, span: Span) -> Literal:
    kind: LiteralKind = "int" if token.lstrip("-").isdigit() else "float"
    return Literal(kind, str(token), span)


def _word_kind(word: str) -> LiteralKind:
    if word in ("true", "false"):
        return "bool"
    return "code" if word.startswith("OG-") else "word"


def _word(token: str) -> str:
    """Return the word after the `@`."""
    return token[1:].lstrip()


def _lower_first(word: str) -> str:
    return word[0].lower() + word[1:]


def _upper_first(word: str) -> str:
    bare = word.lstrip("_") or "T"
    return bare[0].upper() + bare[1:]
