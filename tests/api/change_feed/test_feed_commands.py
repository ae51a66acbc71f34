"""The change feed on the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.cli.main import run
from tests.api.change_feed.conftest import FIVE

Shell = Callable[..., Any]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    """The program: its exit code, standard output and standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([str(one) for one in arguments])
        return code, *capsys.readouterr()

    return call


def test_poll_from_the_beginning_prints_one_document(shell: Shell, shared: Graph) -> None:
    code, out, _ = shell("changes", "poll", "--uri", shared.uri, "--start", "beginning", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["blocks"] == [one.to_json() for one in shared.changes.feed("beginning")]
    assert found["caught_up"] is True
    code, out, _ = shell("changes", "poll", "--uri", shared.uri, "--cursor", found["cursor"], "--json")
    assert json.loads(out) == {"blocks": [], "cursor": found["cursor"], "caught_up": True}


def test_limited_polls_continue_by_cursor(shell: Shell, shared: Graph) -> None:
    where, ids = ("--start", "beginning"), []
    for _ in range(9):
        code, out, _ = shell("changes", "poll", "--uri", shared.uri, *where, "--json", "--limit", 2)
        found = json.loads(out)
        assert code == 0
        ids += [[one["id"] for one in block["changes"]] for block in found["blocks"]]
        if found["caught_up"]:
            break
        where = ("--cursor", found["cursor"])
    assert ids == [[one[2] for one in block] for block in FIVE]


def test_text_output_has_one_line_per_change(shell: Shell, shared: Graph) -> None:
    _, out, _ = shell("changes", "poll", "--uri", shared.uri, "--start", "beginning")
    lines = out.splitlines()
    assert "  + node Person 'ann'" in lines
    assert "  ~ node Person 'ann': age" in lines
    assert "  - edge Knows 'k' from 'ann' to 'bob'" in lines
    assert (lines[-2].split(":")[0], lines[-1]) == ("cursor", "caught_up: true")
    assert shell("changes", "poll", "--uri", shared.uri)[1].startswith("(no new commits)\ncursor: ")


def test_commit_changes_are_printed_as_one_document(shell: Shell, shared: Graph) -> None:
    command = ("commit", "changes", "HEAD~1", "--uri", shared.uri, "--json")
    whole = json.loads(shell(*command)[1])
    assert [one["id"] for one in whole["changes"]] == ["bob", "k"]
    assert json.loads(shell(*command, "--limit", 1)[1]) == whole
    token = shared.changes.commit_page("HEAD~1", limit=1).next_page_token
    page = json.loads(shell(*command, "--limit", 1, "--page-token", token)[1])
    assert page == {"cause": whole["cause"], "changes": whole["changes"][1:]}
    assert shell("commit", "changes", "HEAD", "--uri", shared.uri)[1] == "+ node Firm 'acme'\n"


def test_polls_continue_from_a_baseline(shell: Shell, graph: Graph, tmp_path: Path) -> None:
    place = tmp_path / "base.ndjson"
    code, out, _ = shell("changes", "baseline", "--out", place, "--uri", graph.uri, "--json")
    assert code == 0
    last = json.loads(place.read_text().splitlines()[-1])
    assert last == {"baseline": json.loads(out)}
    graph.insert("Firm", {"name": "late"})
    cursor = last["baseline"]["resume_cursor"]
    _, out, _ = shell("changes", "poll", "--uri", graph.uri, "--cursor", cursor, "--json")
    assert [one["id"] for one in json.loads(out)["blocks"][0]["changes"]] == ["late"]


def test_poll_and_commit_changes_show_schema_changes(shell: Shell, graph: Graph) -> None:
    from tests.api.change_feed.conftest import SCHEMA

    cursor = graph.changes.feed().cursor
    graph.insert("Firm", {"name": "one"})
    graph.schema.apply(SCHEMA.replace("age: I32?", "age: I64?  more: I32?"))
    graph.mutate('update Person set { more: 1 } where name = "ann"')
    code, out, _ = shell("changes", "poll", "--uri", graph.uri, "--json", "--cursor", cursor)
    polled = json.loads(out)
    assert (code, len(polled["blocks"]), polled["caught_up"]) == (0, 3, True)
    assert ["schema_change" in block for block in polled["blocks"]] == [False, True, False]
    _, out, _ = shell("changes", "poll", "--uri", graph.uri, "--cursor", cursor)
    assert "  * schema: widen node:Person.age from I32? to I64?\n" in out
    code, out, _ = shell("commit", "changes", "HEAD~1", "--uri", graph.uri)
    assert out.splitlines() == [
        "* schema: widen node:Person.age from I32? to I64?",
        "* schema: add property node:Person.more: I32?",
    ]
    code, out, _ = shell("commit", "changes", "HEAD~1", "--uri", graph.uri, "--json")
    assert list(json.loads(out)) == ["cause", "schema_change", "changes"]
    code, out, _ = shell("diff", "HEAD~2", "--uri", graph.uri, "--check")
    assert (code, len(out.splitlines())) == (5, 4)
    assert out.splitlines()[2:] == ["~ node Person 'ann': more null -> 1", "0 added, 1 changed, 0 removed"]
    _, out, _ = shell("diff", "HEAD~2", "HEAD~1", "--uri", graph.uri, "--json")
    assert len(json.loads(out)["schema_change"]["steps"]) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--cursor", "x", "--start", "now"), 2, "--cursor and --start both set the start position"),
        (("--cursor", "x"), 1, "error: change cursor rejected: the token is truncated or has been modified"),
        (("--start", "after:x"), 1, "error: unknown revision 'x'"),
        (("--start", "then"), 1, "error: unknown start 'then'; expected now, beginning or after:"),
        (("--type", "Persn"), 1, "hint: did you mean `Person`?"),
        (("--kind", "nodes"), 1, "error: unknown kind 'nodes'; expected node or edge"),
        (("--op", "upsert"), 1, "error: unknown op 'upsert'; expected insert, update or delete"),
        (("--limit", "0"), 1, "error: a limit must be at least 1, not 0"),
        (("--limit", "9000"), 1, "commit_changes_page_changes: 9000 is more than 8192"),
        (("--interval", "soon"), 2, "expected a duration such as 2s, 500ms or 1m"),
        (("--branch", "none"), 1, "no branch 'none'"),
    ],
)
def test_invalid_options_are_rejected(shell: Shell, shared: Graph, arguments: Any, code: int, said: str) -> None:
    ended, out, err = shell("changes", "poll", "--uri", shared.uri, *arguments)
    assert (ended, out) == (code, "")
    assert said in err
