"""The tree of a schema text, its positions, and recovery after syntax errors."""

import pytest
from hypothesis import given

from omnigraph.errors import LanguageError, ParseError
from omnigraph.errors.diagnostics import SourceText, Span
from omnigraph.lang import saved_parsers
from omnigraph.lang.schema import compile_schema, diagnose_schema, lint_schema, parse_schema
from omnigraph.lang.schema.model import (
    Annotation,
    Bounds,
    Cardinality,
    Constraint,
    EdgeDeclaration,
    InterfaceDeclaration,
    Literal,
    Name,
    NodeDeclaration,
    Option,
    Property,
    SchemaFile,
)
from omnigraph.values import PropertyType, ScalarType
from tests.lang.schema.texts import broken_texts

TEXT = """
interface Titled { title: String }
node Paper @color("red", shade=7) implements Titled {
    v: Vector(8)? @embed(title)
    @range(year, -1600..)
    @index(title, kind=btree)
}
edge Cites: Paper -> Paper @card(0..9) { page: [I32] }
"""


def test_tree_matches_the_text() -> None:
    title = Property(Name("title"), PropertyType(ScalarType.STRING))
    vector = Property(
        Name("v"),
        PropertyType(ScalarType.VECTOR, nullable=True, vector_dim=8),
        (Annotation(Name("embed"), (Literal("word", "title"),)),),
    )
    shade = Option(Name("shade"), Literal("int", "7"))
    color = Annotation(Name("color"), (Literal("string", "red"),), (shade,))
    year = Constraint("range", (Literal("word", "year"), Bounds(Literal("int", "-1600"), None)))
    index = Constraint("index", (Literal("word", "title"),), (Option(Name("kind"), Literal("word", "btree")),))
    page = Property(Name("page"), PropertyType(ScalarType.I32, is_list=True))
    assert parse_schema(TEXT) == SchemaFile(
        (
            InterfaceDeclaration(Name("Titled"), (title,)),
            NodeDeclaration(Name("Paper"), (color,), (Name("Titled"),), (vector, year, index)),
            EdgeDeclaration(Name("Cites"), Name("Paper"), Name("Paper"), Cardinality(0, 9), members=(page,)),
        )
    )


def test_every_node_has_its_span() -> None:
    def written(span: Span | None) -> str:
        assert span is not None
        return TEXT[span.start : span.end]

    interface, node, edge = parse_schema(TEXT).declarations
    assert isinstance(node, NodeDeclaration)
    assert isinstance(edge, EdgeDeclaration)
    assert written(interface.span) == "interface Titled { title: String }"
    assert written(interface.body) == "{ title: String }"
    assert written(node.name.span) == "Paper"
    assert written(node.implements[0].span) == "Titled"
    assert written(node.annotations[0].span) == '@color("red", shade=7)'
    assert written(node.annotations[0].name.span) == "color"
    assert written(node.annotations[0].arguments[0].span) == '"red"'
    vector, year, index = node.members
    assert isinstance(vector, Property)
    assert isinstance(year, Constraint)
    assert isinstance(index, Constraint)
    assert written(vector.span) == "v: Vector(8)? @embed(title)"
    assert written(vector.type_span) == "Vector(8)?"
    assert written(year.span) == "@range(year, -1600..)"
    assert written(year.arguments[1].span) == "-1600.."
    assert written(index.options[0].value.span) == "btree"
    assert edge.cardinality is not None
    assert written(edge.cardinality.span) == "@card(0..9)"
    assert written(edge.target.span) == "Paper"


def test_spans_are_correct_beside_comments_and_line_endings() -> None:
    text = "// é\r\n/* x */ node A {\r\n\ta: Strin }"
    _, (found,) = diagnose_schema(text)
    assert (found.line, found.column) == (3, 5)
    assert text[found.start : found.end] == "Strin"


def test_a_string_may_span_lines() -> None:
    catalog = compile_schema('node A @description("one\n two") {}')
    assert catalog.nodes[0].annotations[0].value == "one\n two"


def test_each_broken_declaration_is_reported_and_the_good_ones_are_checked() -> None:
    declarations = [
        "node A { x: I32?? }",
        "node B { y: String? @key }",
        "edge C: A ->",
        "node D implements Ghost {}",
        "interface F { x I32 }",
    ]
    text = "\n".join(declarations)
    _, found = diagnose_schema(text)
    assert sorted(one.line for one in found) == [1, 2, 3, 4, 5]


def test_parse_reports_syntax_only() -> None:
    parse_schema("edge E: Nowhere -> Nowhere { id: I32 @key }")
    with pytest.raises(ParseError) as caught:
        parse_schema("node a {} edge E: Nowhere -> Nowhere", "x.pg")
    assert [one.message for one in caught.value.diagnostics] == ["type name `a` must start with an uppercase letter"]
    assert str(caught.value).startswith("x.pg:1:6: error: ")


def test_the_saved_tables_belong_to_the_grammar() -> None:
    grammar = saved_parsers._read_grammar("schema")
    assert f'"stamp":"{saved_parsers._grammar_stamp(grammar)}"' in (
        saved_parsers._LANG_DIRECTORY / "schema" / "grammar.json"
    ).read_text("utf-8")


@pytest.mark.parametrize("repeat", [300])
def test_large_schemas_are_read(repeat: int) -> None:
    text = "\n".join(f"node N{i} {{ a: I32 @index b: String }}" for i in range(repeat))
    assert len(compile_schema(text).nodes) == repeat


@pytest.mark.parametrize(
    "text", ["\0", "node A { a: I32 \0 }", "node A {" * 2000, "[" * 5000, "@key(" * 3000, '"' * 3001]
)
def test_hostile_text_is_reported_as_findings(text: str) -> None:
    catalog, found = diagnose_schema(text)
    assert catalog is None
    assert found


def test_a_lone_surrogate_in_a_pattern_is_refused() -> None:
    with pytest.raises(LanguageError):
        compile_schema('node A { a: String @check(a, "\ud800") }')


@given(broken_texts())
def test_random_text_yields_a_tree_or_findings(text: str) -> None:
    source = SourceText("x.pg", text)
    catalog, found = diagnose_schema(text, "x.pg")
    assert (catalog is None) is bool(found)
    for one in lint_schema(text, "x.pg"):
        assert 0 <= one.start < one.end <= len(text) + 1
        assert source.locate(one.start) == (one.line, one.column)
    if found:
        with pytest.raises(LanguageError) as caught:
            compile_schema(text, "x.pg")
        assert str(caught.value)
