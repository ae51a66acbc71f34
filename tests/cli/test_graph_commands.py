"""Commands on stored graphs: output, rejections and exit codes."""

import json
import re
import sys
from pathlib import Path

import click
import pytest

import omnigraph as library
from omnigraph.publish.write_plan import CommitMetadata
from tests.cli.conftest import Outcome, Program
from tests.rig.plugin import S3
from tests.rig.writes import SCHEMA, append, write

ULID = "[0-9A-Z]{26}"


@pytest.fixture
def graph(omnigraph: Program) -> str:
    """A graph of two more commits, `g`, beside its schema."""
    Path("small.pg").write_text(SCHEMA)
    assert omnigraph("init", "--schema", "small.pg", "g").code == 0
    line = library.open("g", durability="os")._handle.branch_state
    write(line, append({"a": 1}), signature=CommitMetadata("ada", "the first"))
    write(line, append({"b": 2}), signature=CommitMetadata("bob"))
    return "g"


def document(ended: Outcome) -> dict[str, object]:
    """The JSON that a command printed; standard output must hold nothing else."""
    assert ended.code == 0, ended.err
    told: dict[str, object] = json.loads(ended.out)
    return told


def test_init_prints_the_root_and_never_replaces_a_graph(omnigraph: Program) -> None:
    Path("small.pg").write_text(SCHEMA)
    ended = omnigraph("init", "--schema", "small.pg", "deep/down/g")
    where = Path("deep/down/g").absolute()
    assert (ended.out, ended.err) == (f"initialized {where}\n", f"init {where} (direct, local)\n")
    before = sorted(where.rglob("*"))
    for flags in ((), ("--force",)):
        again = omnigraph("init", "--schema", "small.pg", where, *flags)
        assert again.code == 1
        assert "already" in again.err
    assert sorted(where.rglob("*")) == before
    told = document(omnigraph("init", "--schema", "small.pg", "h", "--json", "--quiet"))
    assert told["internal_schema_version"] == 100
    assert told["types"] == ["edge:LivesIn", "node:City", "node:Person"]


def test_invalid_schema_creates_nothing(omnigraph: Program) -> None:
    Path("wrong.pg").write_text("node Person { name: Strin }")
    ended = omnigraph("init", "--schema", "wrong.pg", "g")
    assert ended.code == 1
    assert "wrong.pg:1:" in ended.err
    assert not Path("g").exists()


def test_branches_are_created_listed_and_deleted(omnigraph: Program, graph: str) -> None:
    made = omnigraph("branch", "create", "review/a", "--uri", graph, "--as", "ada")
    assert re.fullmatch(f"created branch review/a from main at {ULID}\n", made.out)
    assert made.err == f"branch create {Path(graph).absolute()} (direct, local)\n"
    listed = omnigraph("branch", "list", "--store", graph)
    assert (listed.out, listed.err) == ("main\nreview/a\n", "")
    told = document(omnigraph("branch", "create", "b", "--uri", graph, "--json"))
    assert (told["name"], told["from"], told["actor_id"]) == ("b", "main", None)
    gone = omnigraph("branch", "delete", "review/a", "--uri", graph)
    assert (gone.code, gone.out) == (0, "deleted branch review/a\n")
    assert document(omnigraph("branch", "list", "--uri", graph, "--json")) == {"branches": ["b", "main"]}
    assert omnigraph("branch", "delete", "review/a", "--uri", graph).code == 1
    assert omnigraph("branch", "create", "b", "--uri", graph).code == 1
    assert omnigraph("branch", "create", "c", "--uri", graph, "--as", "omnigraph:x").code == 1
    assert document(omnigraph("branch", "list", "--uri", graph, "--json")) == {"branches": ["b", "main"]}


def test_a_branch_from_a_past_commit(omnigraph: Program, graph: str) -> None:
    first = library.open(graph).log()[1].id
    omnigraph("branch", "create", "then", "--commit", first, "--uri", graph)
    told = document(omnigraph("snapshot", graph, "--branch", "then", "--json"))
    assert told["graph_commit_id"] == first
    shown = omnigraph("snapshot", graph, "--branch", "then").out
    assert "  node:Person: version 2, 1 row\n" in shown


def test_commits_newest_first_and_filtered(omnigraph: Program, graph: str) -> None:
    lines = omnigraph("commit", "list", graph).out.splitlines()
    assert [line.split("  ")[2] for line in lines] == ["bob", "ada", "-"]
    told = document(omnigraph("commit", "list", graph, "--json"))
    commits = told["commits"]
    assert isinstance(commits, list)
    assert [one["operation"] for one in commits] == ["insert", "insert", "init"]
    assert [one["graph_manifest_version"] for one in commits] == [3, 2, 1]
    assert commits[0]["parent_commit_id"] == commits[1]["graph_commit_id"]
    for flags, kept in (
        (["--filter", "actor=ada"], 1),
        (["--filter", "operation=insert"], 2),
        (["--filter", "operation=insert", "--limit", "1"], 1),
        (["--filter", "type=City"], 1),
        (["--limit", "2"], 2),
    ):
        found = document(omnigraph("commit", "list", "--store", graph, "--json", *flags))
        assert len(found["commits"]) == kept  # type: ignore[arg-type]
    shown = omnigraph("commit", "show", commits[1]["graph_commit_id"], "--uri", graph).out
    assert "actor     ada\n" in shown
    assert "message   the first\n" in shown
    one = document(omnigraph("commit", "show", commits[1]["graph_commit_id"], "--uri", graph, "--json"))
    assert one == commits[1]
    unknown = omnigraph("commit", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--uri", graph)
    assert unknown.code == 1


def test_a_snapshot_has_the_stamp_and_the_tables(omnigraph: Program, graph: str) -> None:
    told = document(omnigraph("snapshot", graph, "--json"))
    assert (told["graph_branch"], told["graph_manifest_version"]) == ("main", 3)
    assert told["internal_schema_version"] == 100
    sizes = {one["type_name"]: one["entity_count"] for one in told["datasets"]}  # type: ignore
    assert sizes == {"Person": 2, "City": 0, "LivesIn": 0}


def test_recovery_reports_no_operations(omnigraph: Program, graph: str) -> None:
    ended = omnigraph("recovery", "list", graph)
    assert (ended.code, ended.out, ended.err) == (0, "", "there are no recovered, pending or set-aside operations\n")
    listed = document(omnigraph("recovery", "list", "--store", graph, "--json"))
    assert listed == {"recoveries": [], "pending": [], "set_aside": []}


def test_copy(omnigraph: Program, graph: str) -> None:
    omnigraph("branch", "create", "b", "--uri", graph)
    ended = omnigraph("copy", graph, "h")
    assert re.fullmatch(f"copied 2 branches, \\d+ objects to {Path('h').absolute()}\n", ended.out)
    assert omnigraph("commit", "list", "h").out == omnigraph("commit", "list", graph).out
    assert "is not empty" in omnigraph("copy", graph, "h").err
    told = document(omnigraph("copy", graph, "i", "--json"))
    assert told["branches"] == ["b", "main"]


@pytest.mark.parametrize(
    "words",
    [
        "init --schema small.pg https://example.org/g",
        "copy g http://example.org/g",
        "upgrade --uri HTTP://example.org/g",
        "upgrade --store http://example.org/g",
    ],
)
def test_server_address_is_rejected_as_storage(omnigraph: Program, graph: str, words: str) -> None:
    ended = omnigraph(*words.split())
    assert (ended.code, ended.out) == (1, "")
    assert "is a server address; this command requires direct storage access" in ended.err


@pytest.mark.parametrize(
    "words",
    [
        "snapshot http://127.0.0.1:1/graphs/g",
        "branch list --uri HTTP://127.0.0.1:1",
        "commit list --store http://127.0.0.1:1/graphs/g",
    ],
)
def test_unreachable_server_is_reported(omnigraph: Program, graph: str, words: str) -> None:
    ended = omnigraph(*words.split())
    assert (ended.code, ended.out) == (1, "")
    assert "cannot reach the server at http://127.0.0.1:1: connection refused" in ended.err


@pytest.mark.parametrize("words", ["snapshot gone", "commit list gone", "branch list --uri gone"])
def test_missing_graph_is_reported(omnigraph: Program, words: str) -> None:
    ended = omnigraph(*words.split())
    assert (ended.code, ended.out) == (1, "")
    assert "no graph at" in ended.err
    assert not Path("gone").exists()


def test_branch_on_a_remote_store_is_deleted_only_with_confirmation(omnigraph: Program, s3: S3) -> None:
    library.init(s3.url, SCHEMA).branches.create("b")
    delete = ("branch", "delete", "b", "--uri", s3.url)
    for flags in ((), ("--json",)):
        refused = omnigraph(*delete, *flags)
        assert (refused.code, refused.out) == (1, "")
        assert "requires confirmation" in refused.err
    assert list(library.open(s3.url).branches) == ["b", "main"]
    done = omnigraph(*delete, "--yes")
    assert done.code == 0
    assert done.err == f"branch delete {s3.url} (direct, remote)\n"
    assert list(library.open(s3.url).branches) == ["main"]


def test_terminal_user_is_asked_for_confirmation(
    omnigraph: Program, s3: S3, capsys: pytest.CaptureFixture[str]
) -> None:
    from omnigraph.cli.address import parse_storage_uri, require_consent

    class Terminal:
        def __init__(self, answer: str) -> None:
            self.answer = answer

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return self.answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", Terminal("yes\n"))
        require_consent("branch delete b", parse_storage_uri(s3.url), yes=False)
        assert capsys.readouterr().err.endswith("? [yes/no] ")
        patch.setattr(sys, "stdin", Terminal("\n"))
        with pytest.raises(click.Abort):
            require_consent("branch delete b", parse_storage_uri(s3.url), yes=False)


def test_the_commands_on_files_load_no_storage(omnigraph: Program) -> None:
    import subprocess

    code = (
        "import sys; from omnigraph.cli.main import run; run(['--help']); run(['version']);"
        "assert not {'lance', 'pyarrow', 'obstore', 'omnigraph.api.graph'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_graph_argument_may_follow_branch_list(omnigraph: Program) -> None:
    Path("s.pg").write_text("node A { k: String @key }")
    assert omnigraph("init", "--schema", "s.pg", "g").code == 0
    assert omnigraph("branch", "list", "g").out == omnigraph("branch", "list", "--uri", "g").out
    assert omnigraph("branch", "list", "g", "--uri", "g").code == 2
    shown = omnigraph("commit", "show", "HEAD", "--uri", "g")
    assert "created" in shown.out
    Path("rows.csv").write_text("k\nx\n")
    refused = omnigraph("load", "g", "--data", "rows.csv", "--mode", "append")
    assert "Type=file" in refused.err
    Path("a.ndjson").write_text("k\nx\n")
    refused = omnigraph("load", "g", "--data", "a.ndjson", "--mode", "append")
    assert "Type=file.csv" in refused.err
    forms = omnigraph("query", "-e", "match { $a: A } return { $a.k }", "--store", "g", "--snapshot", "x")
    assert "HEAD~3" in forms.err


def test_init_prints_schema_warnings(omnigraph: Program) -> None:
    Path("odd.pg").write_text("node A { k: String @ky }")
    made = omnigraph("init", "--schema", "odd.pg", "odd")
    assert made.code == 0
    assert "did you mean `@key`?" in made.err


def test_init_prints_warnings_but_no_remarks(omnigraph: Program) -> None:
    Path("ties.pg").write_text("node Person { name: String @key  bigName: String? }\nedge Knows: Person -> Person\n")
    ended = omnigraph("init", "--schema", "ties.pg", "ties")
    assert (ended.code, "OG-NM-102" in ended.err, "OG-ED-201" in ended.err) == (0, True, False)
