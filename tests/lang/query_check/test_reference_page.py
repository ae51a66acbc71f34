"""Query language reference: examples compile, rejected examples are rejected."""

import re
from functools import cache
from pathlib import Path

import pytest

from omnigraph.errors import LanguageError
from omnigraph.lang.query import compile_queries
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.catalog import Catalog

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "query-language.md"


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)


@cache
def catalog() -> Catalog:
    return compile_schema(examples("pg")[0])


@pytest.mark.parametrize("text", examples("gq"))
def test_an_example_compiles_without_a_warning(text: str) -> None:
    assert [one.warnings for one in compile_queries(text, catalog())] == [()] * text.count("query ")


def read(match: str, rest: str = "return { $a.name }") -> str:
    return f"query q() {{ match {{ $a: Author  {match} }} {rest} }}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (read("$b: Author { name: $z }"), "T14"),
        (read("$b: Book  search($b.title, $a.name)"), "T19"),
        (read("$b: Book  search($b.title, " + '"x") = false'), "T19"),
        (read("$b: Book  match_text($b.title, " + '"x") = false'), "T20"),
        (read("") + read(""), None),
        (read("").replace("q()", "q($a: I32)"), None),
        (read("", "return { $a.name, $a.name }"), None),
        (read("", "return { $a.name } order { n }"), None),
        (read("$a not $b"), None),
        ('query q() { update Book set { pages: 2.5 } where isbn = "x" }', "T3"),
        ('query q() { update Author set { langs: [1] } where name = "x" }', "T3"),
        ('query q() { update Wrote set { to: "x" } where from = "x" }', "T16"),
        ('query q() { update Book set { isbn: "x" } where isbn = "x" }', None),
    ],
)
def test_rejected_examples_are_rejected(text: str, code: str | None) -> None:
    with pytest.raises(LanguageError) as caught:
        compile_queries(text, catalog())
    assert caught.value.diagnostics[0].code == code


NAMED_COLUMNS = re.findall(r"^\| `([^`]*)` \| `([^`]*)` \|$", PAGE.read_text("utf-8"), re.M)


@pytest.mark.parametrize(("column", "name"), NAMED_COLUMNS)
def test_columns_are_named_as_documented(column: str, name: str) -> None:
    schema = compile_schema("node D { p: I32  body: String  v: Vector(2)? }")
    columns = column.split("`, `")
    variables = {"d", "x"} & set(re.findall(r"\$([dx])\b", column)) or {"d"}
    bindings = "  ".join(f"${one}: D" for one in sorted(variables))
    text = f"query q($q: String) {{ match {{ {bindings} }} return {{ {', '.join(columns)} }} }}"
    compiled = compile_queries(text, schema)[0]
    assert [one.name for one in compiled.operation.result] == name.split("`, `")


@pytest.mark.parametrize(
    ("written", "instead"), re.findall(r"^\| (?:Cypher|SQL) \| `(.*)` \| `(.*)` \|$", PAGE.read_text("utf-8"), re.M)
)
def test_hint_for_another_language_is_as_documented(written: str, instead: str) -> None:
    with pytest.raises(LanguageError) as caught:
        compile_queries(written, catalog())
    own_form = " ".join(instead.split())
    assert f"query name() {{ {own_form} }}" in (caught.value.diagnostics[0].hint or "")
    assert compile_queries(f"query name() {{ {own_form} }}", catalog())
