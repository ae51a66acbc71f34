"""Hints for parameters and start positions that are not in an accepted form."""

import omnigraph as package
from tests.cli.conftest import Program
from tests.rig.writes import SCHEMA


def test_parameters_as_name_and_value_are_explained(omnigraph: Program) -> None:
    ended = omnigraph("query", "g", "-e", "match { $p: Person } return { $p.id }", "--params", "q=merge")
    assert ended.code == 1
    assert """hint: use --params '{"q": "merge"}'""" in ended.err
    ended = omnigraph("query", "g", "-e", "match { $p: Person } return { $p.id }", "--params", "[1]")
    assert "or --params-file FILE" in ended.err


def test_changes_start_after_a_tag(omnigraph: Program) -> None:
    graph = package.init("g", SCHEMA)
    graph.tag("v1")
    graph.load([{"type": "Person", "data": {"id": "p", "n": 1}}], mode="append")
    ended = omnigraph("changes", "poll", "g", "--start", "after:v1")
    assert ended.code == 0, ended.err
    assert "+ node Person 'p'" in ended.out
