"""The entry point of the oracles: text in, expected result of the product out."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any

from omnigraph.errors import ParameterError
from omnigraph.lang.query import bind_parameters, compile_query, parse_queries
from omnigraph.lang.query import model as m
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.values import PropertyType, ScalarType

from . import write_oracle
from .dictionary_graph import Value, World, native, world_of
from .read_answers import Answer, answer

NOW = 1_704_067_200_000  # the moment of every request, in milliseconds
_MOMENT = PropertyType(ScalarType.DATETIME)


def numbers(start: int = 1) -> Iterator[str]:
    """Ids for entities that get one by chance: they begin with `#`."""
    return (f"#new{number:04}" for number in count(start))


@cache
def _catalog(schema: str) -> Catalog:
    return compile_schema(schema, "case.pg")


@dataclass
class Oracle:
    """A graph of dictionaries that answers and changes as the product must."""

    world: World
    fresh: Iterator[str] = field(default_factory=numbers)

    @classmethod
    def of(cls, schema: str, data: str = "") -> "Oracle":
        """An oracle over a schema and the entities of an NDJSON text."""
        return cls(world_of(_catalog(schema), data.splitlines()))

    @property
    def catalog(self) -> Catalog:
        """The schema."""
        return self.world.catalog

    def query(self, text: str, given: Mapping[str, Any]) -> Answer:
        """The rows of a read."""
        tree, values = read(self.catalog, text, given)
        assert isinstance(tree.body, m.ReadBody | m.UnionBody)
        for one in (tree.body.limit, tree.body.offset):
            if isinstance(one, m.Variable) and values[one.name] < 0:
                raise ParameterError(parameter=one.name, expected="a number that is not negative")
        return answer(self.world, tree.body, values)

    def mutate(self, text: str, given: Mapping[str, Any], fresh: Iterator[str] | None = None) -> dict[str, int]:
        """Change the graph; the number of entities by type."""
        tree, values = read(self.catalog, text, given)
        assert isinstance(tree.body, m.WriteBody)
        return self._take(write_oracle.mutate(self.world, tree.body, values, fresh or self.fresh))

    def load(self, text: str, mode: str, fresh: Iterator[str] | None = None) -> dict[str, int]:
        """Load well-formed NDJSON."""
        records = [json.loads(line) for line in text.splitlines() if line.strip()]
        return self._take(write_oracle.load(self.world, records, mode, fresh or self.fresh))

    def _take(self, delta: write_oracle.Delta) -> dict[str, int]:
        self.world = delta.world
        return {key.partition(":")[2]: n for key, n in sorted(delta.counts.items()) if n}


def read(catalog: Catalog, text: str, given: Mapping[str, Any]) -> tuple[m.Query, dict[str, Value]]:
    """The tree of a query that the checker accepts, and its parameters as plain values."""
    compiled = compile_query(text, catalog)
    bound = bind_parameters(compiled.parameters, given, now=NOW)
    values = {one.name: native(one.type, bound[one.name]) for one in compiled.parameters}
    moment = native(_MOMENT, NOW)
    return parse_queries(text).queries[0], values | {"__now": moment}
