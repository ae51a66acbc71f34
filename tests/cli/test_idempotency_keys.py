"""`--idempotency-key` of merges, reverts, cherry-picks, resets and schema changes."""

import json
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.conftest import Program

SCHEMA = "node Person { name: String @key  age: I32? }"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A graph with a branch."""
    graph = og.init(tmp_path / "g", SCHEMA, durability="os")
    graph.insert("Person", {"name": "ada"})
    graph.branches.create("dev").insert("Person", {"name": "bob"})
    graph.insert("Person", {"name": "cyd"})
    (tmp_path / "wider.pg").write_text(SCHEMA.replace("I32", "I64"))
    return tmp_path / "g"


@pytest.mark.parametrize(
    "words",
    [
        ("branch", "merge", "dev", "--delete-branch"),
        ("revert", "HEAD"),
        ("undo",),
        ("cherry-pick", "dev"),
        ("branch", "reset", "main", "HEAD~1"),
        ("schema", "apply", "--schema", "wider.pg"),
    ],
    ids=" ".join,
)
def test_a_repeated_command_has_no_effect(omnigraph: Program, root: Path, words: tuple[str, ...]) -> None:
    arguments = [*words, "--store", "g", "--json", "--idempotency-key", "k"]
    first, again = omnigraph(*arguments), omnigraph(*arguments)
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert json.loads(again.out) == json.loads(first.out)
    assert [commit.key for commit in og.open(root).log()].count("k") == 1
