"""`schema plan` and `schema apply`: text output, JSON output and exit codes."""

import json
from pathlib import Path

import pytest

import omnigraph as library
from tests.cli.conftest import Program

BEFORE = "node Person { name: String @key  age: I32?  mail: String? }\n"
AFTER = "node Person { name: String @key  age: I64? }\n"
STRICT = BEFORE.replace("age: I32?", "age: I32")
REFUSED = BEFORE.replace("age: I32?", "age: String?")


@pytest.fixture
def graph(omnigraph: Program) -> str:
    """A graph of two people, `g`, beside some schemas."""
    texts = {"after.pg": AFTER, "strict.pg": STRICT, "refused.pg": REFUSED, "same.pg": BEFORE}
    for name, text in texts.items():
        Path(name).write_text(text)
    with library.init("g", BEFORE, durability="os") as made:
        made.insert("Person", {"name": "ann", "age": 30}, {"name": "bob"}, {"name": "cy"})
        return str(made.uri)


def head(graph: str) -> str:
    return library.open(graph).head.id


def test_schema_plan_prints_text_and_json(omnigraph: Program, graph: str) -> None:
    ended = omnigraph("schema", "plan", "g", "--schema", "after.pg")
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == "supported: 2 steps"
    told = json.loads(omnigraph("schema", "plan", "g", "--schema", "after.pg", "--json").out)
    assert (told["uri"], told["supported"], told["step_count"]) == (graph, True, 2)
    assert [one["kind"] for one in told["steps"]] == ["widen_property", "drop_property"]
    for flags, code in (
        (("after.pg", "--check"), 5),
        (("after.pg", "--safe-only"), 1),
        (("refused.pg",), 1),
        (("same.pg", "--check"), 0),
    ):
        assert omnigraph("schema", "plan", "g", "--schema", *flags).code == code


def test_schema_apply_prints_the_commit(omnigraph: Program, graph: str) -> None:
    dry = omnigraph("schema", "apply", "g", "--schema", "after.pg", "--dry-run")
    assert dry.out.splitlines()[-1] == "2 steps would succeed on main; nothing was changed"
    command = ("schema", "apply", "g", "--schema", "after.pg", "--as", "me", "-m", "why", "--json")
    told = json.loads(omnigraph(*command).out)
    assert (told["applied"], told["supported"], told["step_count"]) == (True, True, 2)
    commit = library.open(graph).head
    assert (told["commit_id"], told["graph_manifest_version"]) == (commit.id, 3)
    assert (commit.actor, commit.message, commit.operation) == ("me", "why", "schema_apply")
    again = omnigraph(*command[:5])
    assert again.out == "main already has this schema; nothing was changed\n"
    assert "schema apply" in again.err
    assert omnigraph("schema", "show", "g").out == AFTER


def test_rows_that_block_a_schema_are_named(omnigraph: Program, graph: str) -> None:
    before = head(graph)
    ended = omnigraph("schema", "apply", "g", "--schema", "strict.pg")
    assert ended.code == 1
    assert "node:Person.age 'bob': required: the property must have a value" in ended.err
    assert "node:Person.age 'cy': required" in ended.err
    assert "nothing was written" in ended.err
    refused = omnigraph("schema", "apply", "g", "--schema", "refused.pg")
    assert (refused.code, "[OG-MF-106]" in refused.err) == (1, True)
    stale = omnigraph("schema", "apply", "g", "--schema", "after.pg", "--if-commit", "0" * 26)
    assert stale.code == 4
    assert head(graph) == before


def test_schema_apply_on_a_branch_with_a_hard_drop(omnigraph: Program, graph: str) -> None:
    assert omnigraph("branch", "create", "dev", "--uri", "g").code == 0
    command = ("schema", "apply", "g", "--schema", "after.pg", "--allow-data-loss")
    ended = omnigraph(*command, "--branch", "dev", "--json")
    assert json.loads(ended.out)["steps"][1]["mode"] == "hard"
    assert omnigraph("schema", "show", "g", "--branch", "dev").out == AFTER
    assert omnigraph("schema", "show", "g").out == BEFORE
    for wrong in (("g",), ("g", "--schema", "nowhere.pg"), ("none", "--schema", "after.pg")):
        assert omnigraph("schema", "apply", *wrong).code in (1, 2)


def test_schema_show_prints_a_diagram(omnigraph: Program, graph: str) -> None:
    current = library.open(graph).schema.current
    for form in ("mermaid", "svg"):
        assert omnigraph("schema", "show", "g", "--diagram", form).out.rstrip("\n") == current.diagram(form)
    told = json.loads(omnigraph("schema", "show", "g", "--diagram", "mermaid", "--json").out)
    assert told == {"schema_source": BEFORE, "diagram": current.diagram()}
