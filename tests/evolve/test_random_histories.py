"""Random schemas, writes, branches and maintenance in any order match dictionaries."""

import copy
import random

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import SchemaViolation
from omnigraph.testing import graph as new_graph
from tests.evolve.cases import rows_of
from tests.evolve.migration_model import Rows
from tests.evolve.random_schema_histories import World
from tests.rig.depth import repeats

LIVES = [
    *((seed, 25) for seed in range(2)),
    *(pytest.param(seed, 60, marks=pytest.mark.full) for seed in range(2, 2 + repeats(6))),
]


def _plain(rows: Rows) -> Rows:
    return {key: some for key, some in rows.items() if some}


def _write(graph: Graph, world: World, chance: random.Random) -> None:
    name, rows = world.records()
    mode = chance.choice(["append", "merge"])
    graph.load({name: rows}, mode=mode)  # type: ignore[arg-type]
    edge = world.edge()
    if edge is not None:
        graph.load({edge[0]: [edge[1]]}, mode="append")


def _delete(graph: Graph, world: World, chance: random.Random) -> None:
    filled = [key for key, rows in world.rows.items() if rows and key.startswith("edge:")]
    if filled:
        key = chance.choice(sorted(filled))
        one = world.rows[key].pop(chance.choice(sorted(world.rows[key])))
        graph.refresh().delete(key.partition(":")[2], where="from = $f", f=one["from"])
        kept = world.rows[key].items()
        world.rows[key] = {name: row for name, row in kept if row["from"] != one["from"]}


def _reshape(graph: Graph, world: World, chance: random.Random) -> None:
    before = graph.refresh().head.id
    if world.reshape():
        hard = chance.random() < 0.15
        graph.schema.apply(world.wished, allow_data_loss=hard)
        return
    with pytest.raises(SchemaViolation):
        graph.schema.apply(world.wished)
    assert graph.refresh().head.id == before


def _tend(graph: Graph, world: World, chance: random.Random) -> None:
    graph.maintenance.ensure_indices()


@pytest.mark.parametrize(("seed", "length"), LIVES)
def test_random_schema_histories_match_the_model(seed: int, length: int) -> None:
    chance = random.Random(seed)
    world = World(seed)
    with new_graph(world.text()) as main:
        lines: list[tuple[Graph, World]] = [(main, world)]
        for step in range(length):
            graph, world = chance.choice(lines)
            if step % 10 == 9 and len(lines) < 3:
                made = graph.branches.create(f"b{step}")
                lines.append((made, world.fork(seed * 1000 + step)))
            act = chance.choice([_write, _write, _write, _reshape, _reshape, _delete, _tend])
            past, then = graph.refresh().head.id, copy.deepcopy(world.rows)
            act(graph, world, chance)
            for one, known in lines:
                assert rows_of(one.refresh()) == _plain(known.rows)
            if not graph.refresh().schema.contract.erased_directories:
                assert rows_of(graph.at(past)) == _plain(then)
