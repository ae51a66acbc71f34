"""Parse a schema file into a syntax tree.

This module converts the parser's generic tree to `model` nodes, and reports every error that can be detected within one
declaration, such as invalid names, unknown types, stray commas and invalid escapes. An invalid declaration is still
read to its end, so that all of its errors are reported together.
"""

from collections.abc import Iterable
from typing import Any, get_args

from omnigraph.errors.diagnostics import Diagnostic, SourceText, Span
from omnigraph.lang import coarse_scan
from omnigraph.lang.parsing import Language, parse_declarations
from omnigraph.records.frozen import record
from omnigraph.values.name_rules import shorten_name

from . import literals
from .literals import number_literal, word_literal_kind
from .model import (
    Annotation,
    Bounds,
    Cardinality,
    Constraint,
    ConstraintKind,
    Declaration,
    DeclarationMember,
    EdgeDeclaration,
    InterfaceDeclaration,
    Literal,
    Name,
    NodeDeclaration,
    Option,
    Property,
)
from .syntax_error_wording import EXPECTED_DECLARATION, TERMINAL_GROUPS, TERMINAL_NAMES, suggest_fix
from .type_reader import TypeReader

DECLARATION_OPENING = coarse_scan.DeclarationOpening(frozenset({"node", "edge", "interface"}), ("word",))
_MAX_CARDINALITY = 2**32 - 1


@record
class ParsedSchema:
    """The parsed declarations, the diagnostics, and the names of declarations that could not be parsed.

    `unreadable_names` contains (kind, name) pairs. Later checks use it to avoid reporting these types as missing.
    """

    source: SourceText
    declarations: tuple[Declaration, ...]
    diagnostics: tuple[Diagnostic, ...]
    unreadable_names: frozenset[tuple[str, str]]


def parse(source: SourceText) -> ParsedSchema:
    """Return a schema's syntax tree and every syntax error. No exception is raised for invalid text."""
    builder = _TreeBuilder(source)
    build_declaration = builder.build_declaration
    language = Language(
        "schema",
        DECLARATION_OPENING,
        build_declaration,
        TERMINAL_NAMES,
        EXPECTED_DECLARATION,
        TERMINAL_GROUPS,
        suggest_fix,
    )
    parsed_declarations = parse_declarations(language, source)
    diagnostics = sorted(
        [*parsed_declarations.diagnostics, *builder.problems], key=lambda diagnostic: (diagnostic.start, diagnostic.end)
    )
    unreadable_titles = (_read_title(source.text, span) for span in parsed_declarations.broken_spans)
    unreadable_names = frozenset(title for title in unreadable_titles if title is not None)
    return ParsedSchema(source, parsed_declarations.declarations, tuple(diagnostics), unreadable_names)


def _read_title(source_text: str, span: Span) -> tuple[str, str] | None:
    """Return the kind and name at the start of a declaration, or None if they are unreadable."""
    significant_lexemes = (
        lexeme for lexeme in coarse_scan.lexemes(source_text, span.start, span.end) if lexeme.kind != "comment"
    )
    title_words = [
        source_text[lexeme.start : lexeme.end] for lexeme, _ in zip(significant_lexemes, range(2), strict=False)
    ]
    return (
        (title_words[0], title_words[1])
        if len(title_words) == 2 and title_words[0] in DECLARATION_OPENING.keywords
        else None
    )


class _TreeBuilder:
    """Converts the parser's trees to `model` nodes, one declaration after another."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self._offset = 0

    def build_declaration(self, tree: Any, offset: int) -> Declaration:
        """Convert a parser tree for a declaration that starts at `offset` in the source."""
        self._offset = offset
        build_method: Any = getattr(self, f"_{tree.data}")
        declaration: Declaration = build_method(tree)
        return declaration

    def report_problem(self, span: Span, message: str, hint: str | None = None) -> None:
        """Record a problem without raising an error."""
        self.problems.append(Diagnostic.at_span(self.source, span, message, hint=hint))

    def source_span(self, token_or_tree: Any) -> Span:
        """Return the position of a token or a tree in the source."""
        return Span(token_or_tree.start_pos + self._offset, token_or_tree.end_pos + self._offset)

    # Declarations

    def _interface_def(self, tree: Any) -> InterfaceDeclaration:
        name, *annotation_trees, body = tree.children
        members = self._read_members(body)
        for member in members:
            if isinstance(member, Constraint):
                message = f"an interface can only have properties, not a `@{member.kind}(…)` constraint"
                hint = f"write `@{member.kind}` after the property, or constrain the nodes"
                self.report_problem(member.span, message, hint)
        properties = tuple(member for member in members if isinstance(member, Property))
        allow_annotations = self._keep_allow_annotations(self._read_annotations(annotation_trees))
        spans = {"span": self.source_span(tree), "body": self.source_span(body)}
        return InterfaceDeclaration(self._read_type_name(name), properties, allow_annotations, **spans)

    def _keep_allow_annotations(self, annotations: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
        for annotation in annotations:
            if annotation.name.text != "allow":
                message = f"an interface cannot have the annotation `@{annotation.name.text}`"
                self.report_problem(
                    annotation.span,
                    message,
                    "annotate the interface's properties, or the nodes that implement the interface",
                )
        return tuple(annotation for annotation in annotations if annotation.name.text == "allow")

    def _node_def(self, tree: Any) -> NodeDeclaration:
        name, *annotation_trees, implements, body = tree.children
        interface_tokens = implements.children if implements else ()
        return NodeDeclaration(
            self._read_type_name(name),
            self._read_annotations(annotation_trees),
            tuple(self._read_type_name(interface_token) for interface_token in interface_tokens),
            self._read_members(body),
            span=self.source_span(tree),
            body=self.source_span(body),
        )

    def _edge_def(self, tree: Any) -> EdgeDeclaration:
        name, source, target, cardinality, *annotation_trees, body = tree.children
        return EdgeDeclaration(
            self._read_type_name(name),
            self._read_type_name(source),
            self._read_type_name(target),
            self._read_cardinality(cardinality) if cardinality else None,
            self._read_annotations(annotation_trees),
            self._read_members(body) if body else (),
            span=self.source_span(tree),
            body=self.source_span(body) if body else None,
        )

    def _read_cardinality(self, tree: Any) -> Cardinality:
        low, high = (
            None if bound_token is None else self._read_cardinality_bound(bound_token) for bound_token in tree.children
        )
        span = self.source_span(tree)
        if low is not None and high is not None and low > high:
            message = f"`@card`: min {low} is greater than max {high}"
            self.report_problem(span, message, f"did you mean `@card({high}..{low})`?")
        return Cardinality(low or 0, high, span)

    def _read_cardinality_bound(self, token: Any) -> int | None:
        bound = literals.parse_integer(number_literal(token, self.source_span(token)))
        if bound is not None and 0 <= bound <= _MAX_CARDINALITY:
            return bound
        message = f"`@card` bounds must be whole numbers from 0 to {_MAX_CARDINALITY}, not `{token}`"
        self.report_problem(self.source_span(token), message)
        return None

    # Members

    def _read_members(self, body: Any) -> tuple[DeclarationMember, ...]:
        member_nodes = [getattr(self, f"_{member_tree.data}")(member_tree) for member_tree in body.children]
        self._reject_standalone_annotations(
            member_node for member_node in member_nodes if isinstance(member_node, Annotation)
        )
        return tuple(member_node for member_node in member_nodes if isinstance(member_node, Property | Constraint))

    def _reject_standalone_annotations(self, annotations: Iterable[Annotation]) -> None:
        for annotation in annotations:
            annotation_name = annotation.name.text
            hint = f"write `@{annotation_name}(…)`" if annotation_name in get_args(ConstraintKind) else None
            self.report_problem(annotation.span, f"`@{annotation_name}` must follow a property", hint)

    def _stray_comma(self, tree: Any) -> None:
        start = self.source_span(tree).start
        hint = "remove the comma; a new line or a space is enough"
        self.report_problem(Span(start, start + 1), "commas are not allowed between properties", hint)
        self._reject_standalone_annotations(self._read_annotations(tree.children))

    def _property(self, tree: Any) -> Property:
        name, type_tree, *annotation_trees = tree.children
        type_reader = TypeReader(self.report_problem, self.source_span)
        property_type = type_reader.read_type(type_tree)
        return Property(
            self._read_property_name(name),
            property_type,
            self._read_annotations(annotation_trees),
            self.source_span(type_tree),
            self.source_span(tree),
            type_reader.rejected,
        )

    def _constraint(self, tree: Any) -> Constraint:
        keyword, *argument_trees = tree.children
        kind: ConstraintKind = _annotation_word(keyword)  # type: ignore[assignment]  # the lexer checks the name
        self._reject_standalone_annotations(
            self._read_annotations(
                argument_tree for argument_tree in argument_trees if argument_tree.data == "annotation"
            )
        )
        arguments = [
            self._read_argument(argument_tree) for argument_tree in argument_trees if argument_tree.data != "annotation"
        ]
        positional, misplaced, options = self._split_arguments(kind, arguments)
        return Constraint(kind, (*positional, *misplaced), options, self.source_span(tree))

    def _read_annotations(self, annotation_trees: Any) -> tuple[Annotation, ...]:
        return tuple(self._annotation(tree) for tree in annotation_trees)

    def _annotation(self, tree: Any) -> Annotation:
        keyword, *argument_trees = tree.children
        name_text = _annotation_word(keyword)
        span = self.source_span(keyword)
        name = Name(name_text, Span(span.end - len(name_text), span.end))
        if name_text[:1].isupper():
            hint = f"did you mean `@{_lower_first(name_text)}`?"
            self.report_problem(span, f"annotation name `@{name_text}` must start with a lowercase letter", hint)
        arguments = [
            self._read_argument(argument_tree) for argument_tree in argument_trees if argument_tree is not None
        ]
        positional, _, options = self._split_arguments(name_text, arguments)
        literal_arguments = tuple(self._require_literal(name, argument) for argument in positional)
        return Annotation(name, literal_arguments, options, self.source_span(tree))

    def _require_literal(self, annotation_name: Name, argument: Literal | Bounds) -> Literal:
        if isinstance(argument, Literal):
            return argument
        message = f"`@{annotation_name.text}` does not take a range"
        if annotation_name.text == "card":
            message = "`@card(…)` is only allowed on an edge, directly after its target type"
        self.report_problem(argument.span, message)
        return Literal("string", self.source.text[argument.span.start : argument.span.end])

    # Arguments

    def _split_arguments(
        self, annotation_name: str, arguments: list[Literal | Bounds | Option]
    ) -> tuple[list[Literal | Bounds], list[Literal | Bounds], tuple[Option, ...]]:
        """Split arguments into positional arguments, positional arguments after an option (an error), and options."""
        first_option_index = next(
            (index for index, argument in enumerate(arguments) if isinstance(argument, Option)), len(arguments)
        )
        positional = [argument for argument in arguments[:first_option_index] if not isinstance(argument, Option)]
        misplaced = [argument for argument in arguments[first_option_index:] if not isinstance(argument, Option)]
        for argument in misplaced:
            message = f"`@{annotation_name}`: a positional argument follows a named argument"
            self.report_problem(argument.span, message, "put named arguments last")
        options = [argument for argument in arguments if isinstance(argument, Option)]
        return positional, misplaced, tuple(self._drop_repeated_options(annotation_name, options))

    def _drop_repeated_options(self, annotation_name: str, options: list[Option]) -> list[Option]:
        first_by_name: dict[str, Option] = {}
        for option in options:
            if first_by_name.setdefault(option.name.text, option) is not option:
                message = f"`@{annotation_name}`: `{option.name.text}` is specified twice"
                self.report_problem(option.name.span, message)
        return list(first_by_name.values())

    def _read_argument(self, tree: Any) -> Literal | Bounds | Option:
        read_method: Any = getattr(self, f"_{tree.data}")
        argument: Literal | Bounds | Option = read_method(tree)
        return argument

    def _option(self, tree: Any) -> Option:
        name, value = tree.children
        name_span = self.source_span(name)
        if not (name[0].islower() or name[0] == "_") or "-" in name:
            message = f"`{name}` is not a valid argument name"
            self.report_problem(name_span, message, "use a name that starts with a lowercase letter")
        return Option(Name(str(name), name_span), self._literal(value))

    def _bounds(self, tree: Any) -> Bounds:
        low, high = (
            bound_token and number_literal(bound_token, self.source_span(bound_token)) for bound_token in tree.children
        )
        return Bounds(low, high, self.source_span(tree))

    def _upper_bound(self, tree: Any) -> Bounds:
        token = tree.children[0]
        return Bounds(None, number_literal(token, self.source_span(token)), self.source_span(tree))

    def _literal(self, tree: Any) -> Literal:
        token = tree.children[0]
        span = self.source_span(token)
        if token.type == "NUMBER":
            return number_literal(token, span)
        if token.type == "WORD":
            return Literal(word_literal_kind(token), str(token), span)
        for escape_offset, escape in literals.find_unknown_escapes(token):
            message = f"unknown escape `{escape}` in a string"
            escape_span = Span(span.start + escape_offset, span.start + escape_offset + 2)
            known_escapes = r"the supported escapes are `\"`, `\\`, `\n`, `\r` and `\t`"
            self.report_problem(escape_span, message, rf"{known_escapes}; for a literal backslash, write `\{escape}`")
        return Literal("string", literals.decode_string(token), span)

    # Names

    def _read_type_name(self, token: Any) -> Name:
        span = self.source_span(token)
        if not token[0].isupper():
            clipped_name = shorten_name(token)
            hint = f"did you mean `{_upper_first(clipped_name)}`?"
            self.report_problem(span, f"type name `{clipped_name}` must start with an uppercase letter", hint)
        return Name(str(token), span)

    def _read_property_name(self, token: Any) -> Name:
        span = self.source_span(token)
        if token[0].isupper():
            clipped_name = shorten_name(token)
            hint = f"did you mean `{_lower_first(clipped_name)}`?"
            self.report_problem(span, f"property name `{clipped_name}` must start with a lowercase letter", hint)
        return Name(str(token), span)


def _annotation_word(token: str) -> str:
    """Return the word after the `@`."""
    return token[1:].lstrip()


def _lower_first(identifier: str) -> str:
    return identifier[0].lower() + identifier[1:]


def _upper_first(identifier: str) -> str:
    letters = identifier.lstrip("_") or "T"
    return letters[0].upper() + letters[1:]
