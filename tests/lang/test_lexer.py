"""The parser and the saved tables produce what lark produces from the grammars."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.lang import coarse_scan, saved_parsers
from omnigraph.lang.lalr_parser import Parser
from omnigraph.lang.query.parse import QUERY_OPENING as QUERY
from omnigraph.lang.schema.parse import DECLARATION_OPENING as SCHEMA
from tests.lang.schema_properties.lark_reference import outcome, stock, stream

ROOT = Path(__file__).parents[2]
OPENINGS = {"schema": SCHEMA, "query": QUERY}
SUFFIXES = {"schema": "pg", "query": "gq"}
_HEADER = re.compile(r"# \w+:.*\n")


def texts(language: str) -> dict[str, list[str]]:
    """Every example and every text of the fixtures, cut into declarations, by file."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "examples").rglob(f"*.{SUFFIXES[language]}")):
        found[path.name] = declarations(language, path.read_text("utf-8"))
    for path in sorted((ROOT / "tests" / "cases" / language).rglob("*.txt")):
        parts = re.split(r"^(?:---|===)\n", path.read_text("utf-8"), flags=re.MULTILINE)
        pieces = [piece for part in parts for piece in declarations(language, bare(language, part))]
        found[f"{path.parent.name}/{path.name}"] = pieces
    return found


def bare(language: str, part: str) -> str:
    """The text of a fixture without its headers; the body of a query is made a query."""
    while match := _HEADER.match(part):
        part = part[match.end() :]
    if language == "query" and not part.lstrip().startswith(("query", "/")):
        return f"query q() {{\n{part}\n}}"
    return part


def declarations(language: str, text: str) -> list[str]:
    return [text[a:b] for a, b in coarse_scan.split_declarations(text, OPENINGS[language], 0, len(text))]


CASES = [
    pytest.param(language, pieces, id=f"{language}:{name}")
    for language in saved_parsers.LANGUAGES
    for name, pieces in texts(language).items()
]


@pytest.mark.parametrize(("language", "pieces"), CASES)
def test_trees_and_errors_equal_those_of_lark(language: str, pieces: list[str]) -> None:
    ours, theirs = saved_parsers.load_parser(language), stock(language)
    assert pieces
    for piece in pieces:
        assert outcome(ours, piece) == outcome(theirs, piece), piece


@pytest.mark.parametrize(("language", "pieces"), CASES)
def test_tokens_equal_those_of_lark(language: str, pieces: list[str]) -> None:
    ours, theirs = saved_parsers.load_parser(language), stock(language)
    for piece in pieces:
        assert stream(ours, piece) == stream(theirs, piece), piece


@pytest.mark.parametrize("language", saved_parsers.LANGUAGES)
def test_fixtures_contain_valid_and_invalid_texts(language: str) -> None:
    parser = saved_parsers.load_parser(language)
    ended = [type(outcome(parser, p)[1]) for pieces in texts(language).values() for p in pieces]
    assert ended.count(list) > 100  # trees
    assert ended.count(tuple) > 10  # errors


# Saved tables -----------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The grammars and tables in a directory of their own."""
    for language in saved_parsers.LANGUAGES:
        (tmp_path / language).mkdir()
        for name in ("grammar.lark", "grammar.json"):
            shutil.copy(saved_parsers._LANG_DIRECTORY / language / name, tmp_path / language / name)
    monkeypatch.setattr(saved_parsers, "_LANG_DIRECTORY", tmp_path)
    return tmp_path


def load(language: str) -> Parser:
    """A parser that is not cached."""
    parser: Parser = saved_parsers.load_parser.__wrapped__(language)
    return parser


TEXT = {
    "schema": "node A @x(1, k=b) implements B { a: [I32]? @key  @range(a, 1..2) }",
    "query": "query q($a: I32 = 1) {match { $p: P { a: $a } not { $p k{1,2} $q } } return { $p } }",
}


@pytest.mark.parametrize("language", saved_parsers.LANGUAGES)
def test_the_saved_tables_are_fresh(language: str) -> None:
    assert saved_parsers.tables_are_fresh(language)


@pytest.mark.parametrize("language", saved_parsers.LANGUAGES)
def test_table_generation_is_deterministic(copied: Path, language: str) -> None:
    saved = copied / language / "grammar.json"
    before = saved.read_bytes()
    saved.unlink()
    assert saved_parsers.write_tables(language) == saved
    assert saved.read_bytes() == before


@pytest.mark.parametrize("language", saved_parsers.LANGUAGES)
def test_fresh_tables_are_used(copied: Path, language: str) -> None:
    saved = copied / language / "grammar.json"
    content = json.loads(saved.read_bytes())
    saved.write_text(json.dumps(content | {"states": []}))
    with pytest.raises(IndexError):
        load(language).parse(TEXT[language])


@pytest.mark.parametrize("language", saved_parsers.LANGUAGES)
def test_stale_tables_are_not_used(copied: Path, language: str) -> None:
    saved = copied / language / "grammar.json"
    content = json.loads(saved.read_bytes())
    wanted = outcome(load(language), TEXT[language])
    saved.write_text(json.dumps(content | {"stamp": "of another grammar", "states": []}))
    assert not saved_parsers.tables_are_fresh(language)
    assert outcome(load(language), TEXT[language]) == wanted
    saved.unlink()
    assert not saved_parsers.tables_are_fresh(language)
    assert outcome(load(language), TEXT[language]) == wanted


def test_changed_grammar_is_reloaded(copied: Path) -> None:
    grammar = copied / "schema" / "grammar.lark"
    grammar.write_text(grammar.read_text("utf-8").replace("/node(?!", "/vertex(?!"), "utf-8")
    assert not saved_parsers.tables_are_fresh("schema")
    assert load("schema").parse("vertex A {}").data == "node_def"


def test_tables_in_another_form_are_not_used(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_parsers, "_FORM", 0)
    assert not saved_parsers.tables_are_fresh("schema")
    content = json.loads((copied / "schema" / "grammar.json").read_bytes())
    (copied / "schema" / "grammar.json").write_text(json.dumps(content | {"states": []}))
    assert outcome(load("schema"), TEXT["schema"]) == outcome(stock("schema"), TEXT["schema"])


def test_saved_tables_need_no_lark() -> None:
    script = (
        "import sys; from omnigraph.lang.query import parse_queries; from omnigraph.lang.schema import parse_schema;"
        f"parse_queries({TEXT['query']!r}); parse_schema({TEXT['schema']!r}); print('lark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout == b"False\n"
