"""A small graph with a branch, copied for every test."""

import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from tests.publish.recovery.bad_records import SCHEMA


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph that every test gets a copy of."""
    place = tmp_path_factory.mktemp("recovery") / "g"
    graph = omnigraph.init(place, SCHEMA, durability="os", actor="ann")
    graph.load({"Person": [{"name": "ada", "age": 1}, {"name": "bob", "age": 2}]}, mode="append")
    graph.branches.create("side").insert("Person", {"name": "cid", "age": 3})
    return place


@pytest.fixture
def graph(made: Path, tmp_path: Path) -> Graph:
    """A copy of it, on a disk."""
    shutil.copytree(made, tmp_path / "g")
    return omnigraph.open(tmp_path / "g", durability="os")
