"""A command imports only what it needs: heavy libraries and large parts of the package stay unloaded."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from tests.rig.http_server import serving
from tests.server.conftest import SCHEMA, make_graph

LIBRARIES = frozenset({"lark", "lance", "pyarrow", "numpy", "obstore", "pyspark", "pandas", "polars"})
# Standard modules that take longer to import than a small command needs.
SLOW_MODULES = frozenset({"asyncio", "concurrent.futures", "email", "http.client", "importlib.metadata", "ssl"})
PARTS = frozenset({"engine", "evolve", "ingest", "maintenance", "merging", "publish", "rules", "spark", "testing"})
LANGUAGES = frozenset({"omnigraph.lang.query.model", "omnigraph.lang.schema.parse", "omnigraph.lang.saved_parsers"})
NO_STORAGE = (
    LIBRARIES | SLOW_MODULES | {f"omnigraph.{part}" for part in (*PARTS, "api.graph", "history", "storage.store")}
)
NO_TABLE = LIBRARIES | SLOW_MODULES | {f"omnigraph.{part}" for part in PARTS} | LANGUAGES | {"omnigraph.storage.table"}
NO_WRITE = frozenset(f"omnigraph.{part}" for part in PARTS - {"engine"}) | {"obstore", "pyspark", "pandas", "asyncio"}
NO_REMOTE = LIBRARIES | {"asyncio", "httpx", "requests", "urllib3", "aiohttp", "starlette", "uvicorn", "msgspec"}
# Parts of writing that a single-row insert does not run: loads, comparisons of versions, recovery and schema changes.
NO_INSERT = frozenset(
    f"omnigraph.{part}"
    for part in (
        "api.loads",
        "engine.writes.record_writes",
        "history.diff",
        "ingest.load",
        "ingest.record_intake",
        "ingest.streaming",
        "lang.schema.migrate",
        "publish.settle_operation",
    )
)
TOKEN = "og_secret"
QUERY = "match { $p: Person } return { $p.name }"

# All commands run in one process, and each is followed by the list of modules loaded so far. If a module is absent at
# the end, none of the commands imported it.
PROGRAM = """
import io, json, sys
from contextlib import redirect_stdout
from omnigraph.cli.main import run
for command in json.loads(sys.argv[1]):
    with redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        code = run(command)
    print(json.dumps([command, code, sorted(sys.modules)]))
"""


def loaded_modules(*commands: list[str]) -> Iterator[tuple[str, set[str]]]:
    """Run commands in a new process; yield each with the modules in memory after it."""
    program = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    output = subprocess.run(program, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    for line in output.splitlines():
        command, code, modules = json.loads(line)
        assert code == 0, command
        yield " ".join(command), set(modules)


@pytest.fixture
def root(tmp_path: Path) -> str:
    graph = omnigraph.init(tmp_path / "g", "node Person { name: String @key }", durability="os")
    graph.insert("Person", {"name": "ada"}, message="first")
    graph.branches.create("review")
    graph.tag("v1")
    return graph.uri


def test_commands_on_files_load_neither_storage_nor_libraries(checkout: Path) -> None:
    library = checkout / "examples" / "library"
    lint = ["lint", "--schema", f"{library}/schema.pg", "--query", f"{library}/queries.gq"]
    for command, modules in loaded_modules(["--help"], ["version"], ["completion", "bash"], lint):
        assert modules & NO_STORAGE == set(), command


def test_commands_without_tables_load_neither_lance_nor_arrow(root: str) -> None:
    commands = [
        ["branch", "list", root],
        ["tag", "list", root],
        ["commit", "show", "HEAD", "--uri", root],
        ["commit", "list", root],
        ["log", root],
        ["snapshot", root],
        ["schema", "show", root],
    ]
    for command, modules in loaded_modules(*commands):
        assert modules & NO_TABLE == set(), command


def test_commands_on_a_server_load_no_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_TOKEN", TOKEN)
    (tmp_path / "more.ndjson").write_text('{"type": "Person", "data": {"name": "zed"}}\n')
    (tmp_path / "people.csv").write_text("name,age\nyan,3\n")
    (tmp_path / "new.pg").write_text(SCHEMA + "node Note { text: String }")
    (tmp_path / "q.gq").write_text(f"query all() {{ {QUERY} }}")
    (tmp_path / "stored").mkdir()
    (tmp_path / "stored" / "people.gq").write_text(f"query adults() {{ {QUERY} }}")
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ann": {"token": TOKEN, "permission": "admin"}})}
    arguments = (make_graph(tmp_path / "graph"), "--queries", str(tmp_path / "stored"))
    with serving(tmp_path, *arguments, variables=tokens, token=TOKEN) as server:
        url = f"http://{server.address}/graphs/default"
        (tmp_path / "config.yaml").write_text(f"aliases: {{all: {{server: '{url}', query: adults}}}}")
        monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
        commands = [
            ["branch", "list", url],
            ["tag", "list", url],
            ["log", url],
            ["commit", "show", "HEAD", "--store", url],
            ["schema", "show", url],
            ["query", "--store", url, "-e", QUERY],
            ["explain", "--store", url, "-e", QUERY],
            ["export", url],
            ["diff", "HEAD~1", "HEAD", "--store", url],
            ["history", "Person", "ada", "--store", url],
            ["changes", "poll", "--store", url, "--start", "beginning"],
            ["mutate", "--store", url, "-e", 'insert Person { name: "cyd" }'],
            ["load", url, "--data", str(tmp_path / "more.ndjson"), "--mode", "append"],
            ["load", url, "--data", f"Person={tmp_path / 'people.csv'}", "--mode", "merge"],
            ["undo", url],
            ["snapshot", url],
            ["blame", "Person", "ada", "--store", url],
            ["changes", "baseline", "--out", str(tmp_path / "baseline.ndjson"), "--store", url],
            ["branch", "create", url, "side"],
            ["branch", "merge", "side", "--store", url],
            ["branch", "delete", url, "side", "--yes"],
            ["tag", "create", "v1", "--store", url],
            ["schema", "plan", url, "--schema", str(tmp_path / "new.pg")],
            ["schema", "apply", url, "--schema", str(tmp_path / "new.pg")],
            ["status", url],
            ["check", url],
            ["check", url, "--absent", "Person", "nobody"],
            ["optimize", url],
            ["ensure-indices", url],
            ["cleanup", url, "--keep", "1", "--confirm", "--yes"],
            ["repair", url],
            ["recovery", "list", url],
            ["job", "list", url],
            ["graphs", "list", "--server", f"http://{server.address}"],
            ["queries", "list", url],
            ["alias", "all"],
            ["queries", "show", "adults", "--store", url],
            ["doctor", url],
        ]
        for command, modules in loaded_modules(*commands):
            assert modules & NO_REMOTE == set(), command
        for command, modules in loaded_modules(["lint", url, "--query", str(tmp_path / "q.gq")], ["shell", url]):
            assert modules & (NO_REMOTE - {"lark"}) == set(), command


def test_a_query_loads_only_the_query_engine(root: str) -> None:
    for command, modules in loaded_modules(["query", "--store", root, "-e", QUERY]):
        assert "lance" in modules
        assert modules & NO_WRITE == set(), command
        assert not {"omnigraph.engine.search.scoring", "omnigraph.engine.operators.find_paths"} & modules, command


def test_an_insert_loads_no_other_kind_of_write(root: str) -> None:
    for command, modules in loaded_modules(["mutate", "--store", root, "-e", 'insert Person { name: "cyd" }']):
        assert "lance" in modules
        assert modules & NO_INSERT == set(), command
