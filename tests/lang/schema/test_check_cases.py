"""Every case under tests/cases/schema/check: accepted and rejected schemas with positions."""

import pytest

from omnigraph.errors import CatalogError, LanguageError, ParseError
from omnigraph.errors.diagnostics import Diagnostic, SourceText
from omnigraph.lang.schema import compile_schema, diagnose_schema
from omnigraph.lang.schema.catalog import (
    Catalog,
    Check,
    Constraint,
    EdgeType,
    InterfaceType,
    NodeType,
    PropertyDefinition,
    Range,
    StoredAnnotation,
)
from tests.lang.schema.blocks import Block, blocks

CASES = blocks("check")
CLASSES: dict[str, type[LanguageError]] = {"parse": ParseError, "catalog": CatalogError}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_check_case(case: Block) -> None:
    expected = case.all("expect")
    if expected in (["same"], ["different"]):
        first, second = map(compile_schema, case.parts)
        assert (first == second) is (expected == ["same"])
    elif expected == ["ok"]:
        catalog, found = diagnose_schema(case.parts[0], "case.pg")
        assert found == ()
        assert catalog is not None
        check_facts(case, catalog)
    else:
        check_errors(case, expected)


def check_errors(case: Block, expected: list[str]) -> None:
    text = case.parts[0]
    catalog, found = diagnose_schema(text, "case.pg")
    shown = [f"{d.kind} {d.line}:{d.column} | {d.message}" for d in found]
    assert catalog is None
    assert len(shown) == len(expected), shown
    for one, line in zip(found, expected, strict=True):
        check_finding(one, line, one.kind)
    check_hints(case, found)
    check_span(found, text)
    with pytest.raises(CLASSES[found[0].kind]) as caught:
        compile_schema(text, "case.pg")
    assert caught.value.diagnostics == found


def check_finding(one: Diagnostic, line: str, name: str | None) -> None:
    head, *phrases = line.split(" | ")
    wanted, _, place = head.partition(" ")
    assert wanted == name
    assert not place or place == f"{one.line}:{one.column}", one.message
    assert [p for p in phrases if p not in one.message] == [], one.message


def check_hints(case: Block, found: tuple[Diagnostic, ...]) -> None:
    at = -1
    for name, value in case.headers:
        at += name == "expect"
        if name == "hint":
            assert value in (found[at].hint or "")


def check_span(found: tuple[Diagnostic, ...], text: str) -> None:
    source = SourceText("case.pg", text)
    for one in found:
        assert source.locate(one.start) == (one.line, one.column)
        assert one.start < one.end <= len(text) + 1


def check_facts(case: Block, catalog: Catalog) -> None:
    for name, value in case.headers:
        if name in FACTS:
            subject, _, wanted = value.partition(" ")
            assert FACTS[name](find(catalog, subject)) == wanted, name


def find(catalog: Catalog, subject: str) -> NodeType | EdgeType | InterfaceType | PropertyDefinition:
    owner, _, member = subject.partition(".")
    found = catalog.node(owner) or catalog.edge(owner) or catalog.interface(owner)
    assert found is not None, owner
    if not member:
        return found
    named = found.property(member)
    assert named is not None, member
    return named


def columns(one: object) -> str:
    assert isinstance(one, NodeType | EdgeType)
    system = ["id", "src", "dst"] if isinstance(one, EdgeType) else ["id"]
    return " ".join([*system, *(p.name for p in one.properties)])


def key(one: object) -> str:
    assert isinstance(one, NodeType | EdgeType)
    return " ".join(one.key or ())


def card(one: object) -> str:
    assert isinstance(one, EdgeType)
    return f"{one.min_cardinality}..{'' if one.max_cardinality is None else one.max_cardinality}"


def rules(one: object) -> str:
    assert isinstance(one, NodeType | EdgeType)
    return " ".join(map(rule, one.constraints))


def rule(one: Constraint) -> str:
    name = type(one).__name__.lower()
    if isinstance(one, Range):
        low, high = ("" if b is None else repr(b) for b in (one.low, one.high))
        return f"{name}({one.column}, {low}..{high})"
    if isinstance(one, Check):
        return f"{name}({one.column}, {one.pattern})"
    options = getattr(one, "options", ())
    return f"{name}({', '.join([*one.columns, *(f'{k}={v}' for k, v in options)])})"


def notes(one: object) -> str:
    assert isinstance(one, NodeType | EdgeType | PropertyDefinition)
    return " ".join(map(note, one.annotations))


def note(one: StoredAnnotation) -> str:
    value = "" if one.value is None else f"={one.value}"
    return one.name + value + "".join(f",{k}={v}" for k, v in one.options)


def default(one: object) -> str:
    assert isinstance(one, PropertyDefinition)
    return "" if one.default is None else one.default.text


def embed(one: object) -> str:
    assert isinstance(one, PropertyDefinition)
    assert one.embed is not None
    return " ".join([one.embed.source, *([one.embed.model] if one.embed.model else [])])


def renamed(one: object) -> str:
    assert isinstance(one, NodeType | EdgeType | PropertyDefinition)
    return one.rename_from or ""


FACTS = {
    "columns": columns,
    "key": key,
    "card": card,
    "rules": rules,
    "notes": notes,
    "default": default,
    "embed": embed,
    "renamed": renamed,
}
