"""Schema language reference: examples compile, rejected examples are rejected."""

import json
import re
from pathlib import Path

import pytest

from omnigraph.lang.schema import diagnose_schema, lint_schema
from omnigraph.lang.schema.check.annotations import KNOWN_ANNOTATIONS
from omnigraph.lang.schema.check.indexes import INDEX_KINDS, VECTOR_METRICS
from omnigraph.lang.schema.codes import CODES
from omnigraph.lang.schema.names import RESERVED_EDGE_NAMES, RESERVED_ROW_COLUMNS
from omnigraph.lang.schema.type_reader import PLAIN_TYPES
from omnigraph.values import PropertyType, canonical_spelling, coerce_assigned

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "schema-language.md").read_text("utf-8")


def table(*head: str) -> list[list[str]]:
    """The cells of every row of every table with this head."""
    lines = PAGE.splitlines()
    opening = f"| {' | '.join(head)} |"
    rows = []
    for at in (number for number, line in enumerate(lines) if line == opening):
        for line in lines[at + 2 :]:
            if not line.startswith("|"):
                break
            rows.append(line.strip("| ").split(" | "))
    return rows


def whole(text: str) -> str:
    """The example of a cell, with the node type `L` if it has none."""
    text = text.strip("`")
    return text if "node L" in text else f"{text} node L {{}}"


@pytest.mark.parametrize("text", re.findall(r"^```pg\n(.*?)^```", PAGE, re.M | re.S))
def test_example_compiles_without_findings(text: str) -> None:
    assert lint_schema(text) == ()


@pytest.mark.parametrize(("text", "message"), table("rejected", "message"))
def test_rejected_examples_fail_with_the_documented_message(text: str, message: str) -> None:
    _, found = diagnose_schema(whole(text))
    said = [one.message.replace("`", "") for one in found]
    assert len(said) == 1
    assert message.replace("`", "") in said[0]


@pytest.mark.parametrize(("code", "text"), [row[:2] for row in table("code", "example", "instead")])
def test_lint_examples_match_their_documented_findings(code: str, text: str) -> None:
    assert [one.code for one in lint_schema(whole(text))] == [code.strip("`")]


def test_every_code_of_lint_has_an_example() -> None:
    codes = {code for code in CODES if code[3:5] == "NM" or code[6:] >= "200"}
    assert {row[0].strip("`") for row in table("code", "example", "instead")} == codes


def test_every_type_annotation_and_reserved_name_is_documented() -> None:
    types = " ".join(row[0] for row in table("type", "values"))
    assert set(PLAIN_TYPES) <= set(re.findall(r"\w+", types))
    notes = " ".join(row[0] for row in table("annotation", "where", "meaning"))
    assert set(re.findall(r"@(\w+)", notes)) == KNOWN_ANNOTATIONS
    reserved = [re.findall(r"`(\w+)`", row[1]) for row in table("where", "names")]
    assert [set(names) for names in reserved] == [RESERVED_ROW_COLUMNS | {"id"}, RESERVED_EDGE_NAMES]


FITS = {
    "btree": {"String", "enum(a, b)", "I32", "Bool", "Date"},
    "bitmap": {"String", "enum(a, b)", "I32", "Bool", "Date"},
    "fulltext": {"String"},
    "ngram": {"String"},
    "vector": {"Vector(2)"},
}


def test_every_index_kind_and_metric_is_documented() -> None:
    assert {row[0].strip("`") for row in table("kind", "useful for", "supported properties")} == set(INDEX_KINDS)
    options = {row[0]: set(re.findall(r"`(\w+)`", row[1])) for row in table("option", "values", "for")}
    assert options["`kind`"] == set(INDEX_KINDS)
    assert options["`metric`"] == set(VECTOR_METRICS)


@pytest.mark.parametrize("kind", INDEX_KINDS)
def test_documented_index_types_are_accepted(kind: str) -> None:
    types = ("String", "enum(a, b)", "I32", "Bool", "Date", "Vector(2)", "[String]", "Blob")
    texts = {one: f"node L {{ a: {one}  @index(a, kind={kind}) }}" for one in types}
    assert {one for one, text in texts.items() if not diagnose_schema(text)[1]} == FITS[kind]


@pytest.mark.parametrize(("type_name", "stored", "spelled"), table("type", "stored", "canonical form"))
def test_keys_are_formatted_as_documented(type_name: str, stored: str, spelled: str) -> None:
    kind = PropertyType(PLAIN_TYPES[type_name.partition(",")[0].strip("`")])
    text = stored.strip("`")
    value = json.loads(text) if re.fullmatch(r"true|-?[\d.e]+", text) else text
    kept = coerce_assigned(kind, value, type_name="L", property_name="a")
    assert canonical_spelling(kind, kept) == spelled.strip("`")
