"""Which rows a query depends on, and when it depends on whole types."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine.writes.row_dependencies import RowDependencies
from omnigraph.lang.query import compile_query
from omnigraph.lang.schema.catalog import Catalog

SCHEMA = """
interface Named { name: String }
node Person implements Named { name: String @key  age: I32?  bio: String?  at: DateTime?  v: Vector(2)? }
node City implements Named { name: String @key }
edge Knows: Person -> Person
"""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return omnigraph.init(Path(tmp_path_factory.mktemp("g")) / "g", SCHEMA, durability="os").schema.ir.catalog


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
    ],
)
def test_query_depends_on_rows_or_on_whole_types(
    catalog: Catalog, body: str, expected: dict[str, list[str] | str]
) -> None:
    assert dependencies(catalog, body) == expected
