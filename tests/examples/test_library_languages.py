"""Schemas and queries of the example library: clean, complete, and invalid where intended."""

import json
import re
from pathlib import Path

import pytest

from omnigraph.errors import LanguageError
from omnigraph.errors.diagnostics import Diagnostic
from omnigraph.lang.query import compile_queries, diagnose_queries, format_queries, lint_queries
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.schema import compile_schema, format_schema, lint_schema
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType, Unique
from omnigraph.lang.schema.migrate import plan_migration
from omnigraph.values import coerce_loaded, entity_id
from tests.examples import library_rules as rules

READS = 29


@pytest.fixture(scope="module")
def library(checkout: Path) -> Path:
    return checkout / "examples" / "library"


@pytest.fixture(scope="module")
def catalog(library: Path) -> Catalog:
    return compile_schema((library / "schema.pg").read_text(), "schema.pg")


@pytest.fixture(scope="module")
def queries(library: Path, catalog: Catalog) -> dict[str, CompiledQuery]:
    compiled = compile_queries((library / "queries.gq").read_text(), catalog, "queries.gq")
    return {query.name: query for query in compiled}


def places(found: tuple[Diagnostic, ...]) -> list[tuple[str | None, int]]:
    """Codes and lines, from the top of the file to its end."""
    return [(one.code, one.line) for one in sorted(found, key=lambda one: one.start)]


def line_of(text: str, part: str) -> int:
    """The number of the only line that contains a text."""
    (line,) = (n for n, line in enumerate(text.splitlines(), 1) if part in line)
    return line


# Schemas ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["schema.pg", "schema-next.pg"])
def test_schema_has_no_findings(library: Path, name: str) -> None:
    assert lint_schema((library / name).read_text(), name) == ()


@pytest.mark.parametrize("name", ["schema.pg", "schema-next.pg"])
def test_a_schema_is_formatted_and_fits_a_page(library: Path, name: str) -> None:
    text = (library / name).read_text()
    assert format_schema(text, name) == text
    assert max(map(len, text.splitlines())) <= 100


def properties(of: NodeType | EdgeType) -> set[str]:
    return {one.name + "?" * one.type.nullable for one in of.properties}


def test_the_schema_is_the_one_the_data_was_checked_against(catalog: Catalog) -> None:
    nodes = {node.name: node for node in catalog.nodes}
    edges = {edge.name: edge for edge in catalog.edges}
    assert {name: properties(node) for name, node in nodes.items()} == {
        name: set(expected) for name, expected in rules.NODES.items()
    }
    assert {name: node.key for name, node in nodes.items()} == rules.KEYS
    assert {
        name: (e.source, e.target, e.min_cardinality, e.max_cardinality, properties(e)) for name, e in edges.items()
    } == {name: (*facts[:4], set(facts[4])) for name, facts in rules.EDGES.items()}
    unique = [(node.name, one.columns) for node in catalog.nodes for one in node.constraints if isinstance(one, Unique)]
    assert {(kind, tuple(sorted(columns))) for kind, columns in rules.UNIQUE} == set(unique)


def test_enums_are_what_the_data_was_checked_against(catalog: Catalog) -> None:
    known: list[tuple[NodeType | EdgeType, dict[str, rules.Rule]]] = []
    known += [(node, rules.NODES[node.name]) for node in catalog.nodes]
    known += [(edge, rules.EDGES[edge.name][4]) for edge in catalog.edges]
    enums = [(o, p) for o, _ in known for p in o.properties if p.type.is_enum]
    assert len(enums) == 5
    for owner, found in known:
        for one in owner.properties:
            if one.type.is_enum:
                assert all(found[one.name](value) for value in one.type.enum_values or ())
                assert not found[one.name]("something else")


def test_every_value_is_one_that_a_load_accepts(library: Path, catalog: Catalog) -> None:
    lines = [x for file in (library / "data").iterdir() for x in file.read_text().splitlines()]
    for row in map(json.loads, lines):
        owner = catalog.node(row["type"]) if "type" in row else catalog.edge(row["edge"])
        assert owner is not None
        for one in owner.properties:
            value = row["data"].get(one.name)
            coerce_loaded(one.type, value, type_name=owner.name, property_name=one.name)
        if isinstance(owner, NodeType):
            assert owner.key is not None
            types = [owner.properties_by_name[name].type for name in owner.key]
            parts = [row["data"][name] for name in owner.key]
            assert entity_id(types, parts) == rules.identity_of(owner.name, row["data"])


EXPECTED_STEPS = [
    ("add_property", "Author", "verified"),
    ("drop_property", "Author", "homepage"),
    ("add_type", "Dataset", None),
    ("relax_property", "Edition", "volume"),
    ("rename_type", "Institution", "Organisation"),
    ("widen_property", "Paper", "downloads"),
    ("add_property", "Paper", "language"),
    ("rename_property", "Paper", "page_count"),
    ("extend_enum", "Paper", "status"),
    ("add_constraint", "Paper", None),
    ("update_type_metadata", "Venue", None),
    ("drop_constraint", "Cites", None),
    ("add_type", "Uses", None),
]


def changed_type(step: dict[str, object]) -> object:
    """The type that a step is about, under its name before the step."""
    return step.get("type_name") or step.get("name") or step.get("from")


def test_next_schema_has_a_supported_plan(library: Path, catalog: Catalog) -> None:
    desired = compile_schema((library / "schema-next.pg").read_text())
    plan = plan_migration(catalog, desired)
    assert plan.supported
    assert plan.warnings == ()
    steps = [step.to_json() for step in plan.steps]
    named = [(s["kind"], changed_type(s), s.get("property_name", s.get("to"))) for s in steps]
    assert named == EXPECTED_STEPS
    assert all(step["tier"] in ("safe", "destructive") for step in steps)
    assert [step["kind"] for step in steps if step["tier"] == "destructive"] == ["drop_property"]


def test_the_next_schema_marks_every_difference(library: Path) -> None:
    text = (library / "schema-next.pg").read_text()
    announced = {int(n) for n in re.findall(r"^// +(\d+)  \w", text, re.MULTILINE)}
    marked = {int(n) for n in re.findall(r"// (\d+)\.", text)}
    assert announced == marked == set(range(1, 12))


def test_reverse_migration_is_rejected_with_reasons(library: Path, catalog: Catalog) -> None:
    later = compile_schema((library / "schema-next.pg").read_text())
    plan = plan_migration(later, catalog)
    assert not plan.supported
    refusal = plan.refusal()
    assert refusal is not None
    assert "OG-" in str(refusal)


def test_the_broken_schema_is_wrong_in_all_the_intended_ways(library: Path) -> None:
    text = (library / "broken.pg").read_text()
    with pytest.raises(LanguageError) as caught:
        compile_schema(text, "broken.pg")
    found = sorted(caught.value.diagnostics, key=lambda one: one.start)
    intended = [
        ("implements Titled", "Titled"),
        ("doi: String? @key", "doi"),
        ("status: enum", "draft"),
        ("@range(title", "title"),
        ("@check(doi", "@check"),
        ("    name: String // again", "name"),
        ("pictures: [Blob]", "lists of Blobs"),
        ("-> Book", "Book"),
        ("@card(3..1)", "@card"),
        ("from: Date", "from"),
    ]
    assert [one.line for one in found] == [line_of(text, part) for part, _ in intended]
    assert all(word in one.message for one, (_, word) in zip(found, intended, strict=True))
    assert {one.severity for one in found} == {"error"}
    assert len({one.start for one in found}) == len(found)


# Queries ------------------------------------------------------------------------------------


def test_every_query_compiles_without_findings(library: Path, catalog: Catalog) -> None:
    report = lint_queries((library / "queries.gq").read_text(), catalog, "queries.gq")
    assert report.diagnostics == ()
    counts = report.to_json()
    assert (counts["status"], counts["warnings"], counts["infos"]) == ("ok", 0, 0)


def test_the_queries_are_formatted_and_fit_a_page(library: Path) -> None:
    text = (library / "queries.gq").read_text()
    assert format_queries(text, "queries.gq") == text
    assert max(map(len, text.splitlines())) <= 100


def test_file_contains_queries_and_mutations(queries: dict[str, CompiledQuery]) -> None:
    kinds = [query.kind for query in queries.values()]
    assert kinds == ["read"] * READS + ["mutation"] * (len(kinds) - READS)
    assert len(kinds) - READS == 5
    assert all(query.description for query in queries.values())


def test_the_columns_of_a_query_are_named_and_typed(queries: dict[str, CompiledQuery]) -> None:
    result = queries["topics_in_numbers"].operation.to_json()["result"]
    assert isinstance(result, list)
    assert [(column["name"], column["kind"]) for column in result[:5]] == [
        ("topic", "string"),
        ("papers", "bigint"),
        ("first", "int"),
        ("latest", "date"),
        ("mean_pages", "float"),
    ]


FEATURES = {
    "parameter": r"\(\$doi: String\)",
    "default of a parameter": r"\$n: I32 = 10",
    "list parameter": r"\$topics: \[String\] =",
    "vector parameter": r"Vector\(8\)",
    "edge binding": r"\$a \$w:wrote \$p",
    "variable length": r"cites\{1,3\}",
    "undirected": r"<cites>",
    "alternation": r"wrote\|reviewed",
    "negation of a pattern": r"not \{",
    "negation of a condition": r"not \(",
    "optional": r"optional \{",
    "and, or": r" and \(.* or ",
    "membership in a literal": r' in \["',
    "membership in a parameter": r" in \$",
    "missing": r" is null",
    "present": r" is not null",
    "contains": r" contains ",
    "prefix": r" starts_with ",
    "signed number": r" -23\.5",
    "exponent": r"2\.35e1",
    "identity": r"\$a\.id",
    "ends of an edge": r"\$c\.from, \$c\.to",
    "interface": r"\$x: Named",
    "distinct rows": r"return distinct \{",
    "distinct values": r"count\(distinct ",
    "list of values": r"collect\(",
    "aggregates": r"(?s)min\(.*max\(.*avg\(.*sum\(",
    "pages of a result": r"limit \$n\n    offset \$skip",
    "date": r'date\("',
    "moment": r'datetime\("',
    "now": r"now\(\)",
    "words": r"search\(",
    "phrase": r"match_text\(",
    "typing error": r"fuzzy\(",
    "best match": r"order \{ bm25\(",
    "nearest": r"order \{ nearest\(",
    "fusion": r"order \{ rrf\(",
    "insert": r"insert Paper",
    "insert an edge": r"insert Wrote",
    "update": r"update Paper",
    "delete": r"delete Paper",
    "delete an edge": r"delete Reviewed",
}


@pytest.mark.parametrize("pattern", FEATURES.values(), ids=list(FEATURES))
def test_the_queries_show_what_the_language_can_do(library: Path, pattern: str) -> None:
    assert re.search(pattern, (library / "queries.gq").read_text())


def test_the_broken_queries_are_wrong_in_all_the_intended_ways(library: Path, catalog: Catalog) -> None:
    text = (library / "broken.gq").read_text()
    compiled, found = diagnose_queries(text, catalog, "broken.gq")
    assert compiled == ()
    assert places(found) == [
        ("T6", line_of(text, "$p.titel")),
        ("T7", line_of(text, '$p.year > "2020"')),
        ("T7", line_of(text, "$p.keywords =")),
        ("T1", line_of(text, "$a: Person")),
        ("T4", line_of(text, "$p quotes $q")),
        ("T17", line_of(text, "nearest(")),
        ("T15", line_of(text, "nearest(")),
        ("T12", line_of(text, "insert Paper")),
        ("T3", line_of(text, "insert Paper")),
    ]


def test_a_misspelt_property_comes_with_a_suggestion(library: Path, catalog: Catalog) -> None:
    _, found = diagnose_queries((library / "broken.gq").read_text(), catalog)
    assert "title" in (found[0].hint or "")
