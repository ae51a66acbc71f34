"""Whatever can be said in a schema file survives reading, printing and noise."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.lang.schema import format_schema, parse_schema
from omnigraph.lang.schema import model as m
from tests.lang.schema_properties import trees

# Trees take their time: a thousand of them would come near the limit for one test.
SOME = settings(max_examples=min(300, settings.default.max_examples))  # type: ignore[union-attr]
A = m.Name("A")
CLOSED = m.SchemaFile((m.EdgeDeclaration(A, A, A, m.Cardinality(0, 0)),))


@SOME
@given(trees.files)
@example(CLOSED)
def test_a_tree_survives_reading_and_printing(tree: m.SchemaFile) -> None:
    text = trees.spell(tree)
    assert parse_schema(text) == tree
    printed = format_schema(text)
    assert parse_schema(printed) == tree
    assert format_schema(printed) == printed


@SOME
@given(trees.files, st.data())
def test_noise_between_tokens_changes_nothing(tree: m.SchemaFile, data: Any) -> None:
    text = data.draw(trees.noisy(trees.spell(tree)))
    assert parse_schema(text) == tree
    printed = format_schema(text)
    assert parse_schema(printed) == tree
    assert trees.comments(printed) == trees.comments(text)
    assert format_schema(printed) == printed


@SOME
@given(trees.files)
def test_every_place_of_a_tree_is_in_its_text(tree: m.SchemaFile) -> None:
    text = trees.spell(tree)
    for declaration in parse_schema(text).declarations:
        span = declaration.span
        word = {"I": "interface", "N": "node", "E": "edge"}[type(declaration).__name__[0]]
        assert text.startswith(f"{word} {declaration.name.text}", span.start)
        assert text[span.end - 1] == "}"
        at = declaration.name.span
        assert text[at.start : at.end] == declaration.name.text
