"""Which rows a query depends on, and when it depends on whole types."""

from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.writes.mutate import bind_mutation
from omnigraph.engine.writes.row_dependencies import RowDependencies
from omnigraph.lang.query import compile_query
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.values.table_key import TableKey

SCHEMA = """
interface Named { name: String }
node Person implements Named { name: String @key  age: I32?  bio: String?  at: DateTime?  v: Vector(2)? }
node City implements Named { name: String @key }
edge Knows: Person -> Person
"""


@pytest.fixture(scope="module")
def ir(tmp_path_factory: pytest.TempPathFactory) -> SchemaIR:
    return omnigraph.init(Path(tmp_path_factory.mktemp("g")) / "g", SCHEMA, durability="os").schema.ir


@pytest.fixture(scope="module")
def catalog(ir: SchemaIR) -> Catalog:
    return ir.catalog


def dependencies(catalog: Catalog, body: str) -> dict[str, list[str] | str]:
    """The columns of each type that a query depends on, or `all` for whole types."""
    found = RowDependencies()
    found.add_query(compile_query(f"query q() {{ {body} }}", catalog), {})
    columns = {key: "all" if rows is None else rows.columns for key, rows in found.row_filters().items()}
    return {key: names if isinstance(names, str) else sorted(names or ["*"]) for key, names in columns.items()}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('match { $p: Person { name: "x" } } return { $p.age }', {"node:Person": ["age", "id", "name"]}),
        ("match { $p: Person  $p.age > 3 } return { count($p) as n }", {"node:Person": ["age", "id"]}),
        ("match { $p: Person } return { $p }", {"node:Person": ["*"]}),
        (
            "match { $p: Person } return { $p.name } order { $p.age desc } limit 3",
            {"node:Person": ["age", "id", "name"]},
        ),
        ("match { $p: Person } return { max($p.age) as oldest }", {"node:Person": ["age", "id"]}),
        (
            "match { $p: Person  $c: City  $p.name = $c.name } return { $p.age }",
            {"node:Person": ["age", "id", "name"], "node:City": ["id", "name"]},
        ),
        ("match { $p: Person  $p knows $q } return { $q.age }", {"edge:Knows": "all", "node:Person": "all"}),
        ("match { $p: Person  not { $p knows $_ } } return { $p.age }", {"edge:Knows": "all", "node:Person": "all"}),
        ("match { $n: Named } return { $n.name }", {"node:City": "all", "node:Person": "all"}),
        ("match { $p: Person  $p.at < now() } return { $p.age }", {"node:Person": "all"}),
        ('match { $p: Person  search($p.bio, "x") } return { $p.age }', {"node:Person": "all"}),
        (
            "match { $p: Person } return { $p.age } order { nearest($p.v, [1.0, 2.0]) } limit 2",
            {"node:Person": "all"},
        ),
        ("match { $p: Person  $p.age + 1 > 3 } return { $p.name }", {"node:Person": ["age", "id", "name"]}),
        (
            'match { $p: Person  lower($p.bio) = "x" } return { case when $p.age > 3 then $p.name else "" end as c }',
            {"node:Person": ["age", "bio", "id", "name"]},
        ),
        ("match { $p: Person } return { year($p.at) - year(now()) as years }", {"node:Person": "all"}),
        ("match { $p: Person } return { count(*) as n }", {"node:Person": ["id"]}),
        ("match { $p: Person } return { $p.age } having { count(*) > 1 }", {"node:Person": "all"}),
        (
            "match { $p: Person } return { $p.name as n } union match { $c: City } return { $c.name as n }",
            {"node:City": "all", "node:Person": "all"},
        ),
    ],
)
def test_query_depends_on_rows_or_on_whole_types(
    catalog: Catalog, body: str, expected: dict[str, list[str] | str]
) -> None:
    assert dependencies(catalog, body) == expected


def test_a_failing_expression_matches_every_row(catalog: Catalog) -> None:
    found = RowDependencies()
    body = "match { $p: Person  $p.age * 9223372036854775807 > 0 } return { $p.name }"
    found.add_query(compile_query(f"query q() {{ {body} }}", catalog), {})
    (predicate,) = found.tables[TableKey.node("Person")].predicates
    assert predicate.matches(pa.table({"age": pa.array([1, 2], pa.int32())})).tolist() == [True, True]
    assert predicate.matches(pa.table({"age": pa.array([1, 0], pa.int32())})).tolist() == [True, False]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("match { $p: Person  not { $p knows $_ } } delete $p", {"node:Person", "edge:Knows"}),
        ("match { $p: Person  $p $k:knows $q } delete $k", {"node:Person", "edge:Knows"}),
        ("match { $p: Person  $p.at < now() } update $p set { age: 1 }", {"node:Person"}),
    ],
)
def test_statement_fed_by_a_traversal_depends_on_whole_types(ir: SchemaIR, body: str, expected: set[str]) -> None:
    mutation = bind_mutation(compile_query(f"query q() {{ {body} }}", ir.catalog), {})
    filters = mutation.row_filters(ir)
    assert {key for key, rows in filters.items() if rows is None} == set(map(TableKey.parse, expected))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("match { $p: Person } update $p set { age: $p.age + 1 }", {"node:Person": ["age", "id"]}),
        (
            "match { $p: Person  $c: City  $p.name = $c.name } update $p set { bio: $c.name }",
            {"node:Person": ["bio", "id", "name"], "node:City": ["id", "name"]},
        ),
        ("match { $p: Person } delete $p", {"node:Person": ["*"], "edge:Knows": ["*"]}),
        (
            'update Person set { age: 1 } where name = "x"  match { $p: Person  $p.age > 3 } update $p set { bio: "" }',
            {"node:Person": ["age", "bio", "id", "name"]},
        ),
    ],
)
def test_statement_fed_by_a_match_of_nodes_depends_on_their_columns(
    ir: SchemaIR, body: str, expected: dict[str, list[str]]
) -> None:
    mutation = bind_mutation(compile_query(f"query q() {{ {body} }}", ir.catalog), {})
    filters = {key: rows for key, rows in mutation.row_filters(ir).items() if rows is not None}
    assert {key: sorted(rows.columns or ["*"]) for key, rows in filters.items()} == expected
