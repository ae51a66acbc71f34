"""Random schema trees survive parsing, printing and noise."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.lang.schema import format_schema, parse_schema
from omnigraph.lang.schema import model as m
from tests.lang.schema_properties import random_trees

# Trees take their time: a thousand of them would come near the limit for one test.
SOME = settings(max_examples=min(300, settings.default.max_examples))  # type: ignore[union-attr]
A = m.Name("A")
CLOSED = m.SchemaFile((m.EdgeDeclaration(A, A, A, m.Cardinality(0, 0)),))


@SOME
@given(random_trees.files)
@example(CLOSED)
def test_tree_round_trips_through_text(tree: m.SchemaFile) -> None:
    text = random_trees.spell(tree)
    assert parse_schema(text) == tree
    printed = format_schema(text)
    assert parse_schema(printed) == tree
    assert format_schema(printed) == printed


@SOME
@given(random_trees.files, st.data())
def test_noise_between_tokens_changes_nothing(tree: m.SchemaFile, data: Any) -> None:
    text = data.draw(random_trees.noisy(random_trees.spell(tree)))
    assert parse_schema(text) == tree
    printed = format_schema(text)
    assert parse_schema(printed) == tree
    assert random_trees.comments(printed) == random_trees.comments(text)
    assert format_schema(printed) == printed


@SOME
@given(random_trees.files)
def test_every_span_of_a_tree_is_in_its_text(tree: m.SchemaFile) -> None:
    text = random_trees.spell(tree)
    for declaration in parse_schema(text).declarations:
        span = declaration.span
        word = {"I": "interface", "N": "node", "E": "edge"}[type(declaration).__name__[0]]
        assert text.startswith(f"{word} {declaration.name.text}", span.start)
        assert text[span.end - 1] == "}"
        at = declaration.name.span
        assert text[at.start : at.end] == declaration.name.text
