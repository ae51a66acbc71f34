"""The eighteen operations of the 0.3 SDK, with its request shapes and the members that its types promise (case 32)."""

import json

import pytest

from tests.rig.http_server import HttpServer, Reply

SCHEMA_HEADERS = {"Omnigraph-Api": "0.3"}
COMMIT_MEMBERS = {
    *("graph_commit_id", "manifest_branch", "manifest_version", "parent_commit_id", "merged_parent_commit_id"),
    *("actor_id", "created_at"),
}


class Sdk:
    """Sends what the SDK sends: JSON bodies with its names, no Content-Type without a body."""

    def __init__(self, server: HttpServer, prefix: str) -> None:
        self._server, self._prefix = server, prefix

    def call(self, method: str, path: str, body: object = None, status: int = 200) -> Reply:
        reply = self._server.request(method, self._prefix + path, body, headers=SCHEMA_HEADERS if self._prefix else {})
        assert reply.status == status, reply.body
        return reply


@pytest.fixture(params=["", "/graphs/default"], ids=["flat", "nested"])
def sdk(server: HttpServer, request: pytest.FixtureRequest) -> Sdk:
    return Sdk(server, request.param)


def has(reply: Reply, *members: str) -> dict[str, object]:
    document: dict[str, object] = reply.json()
    assert {*members} <= document.keys(), document
    return document


def test_case_32_health_schema_and_snapshot(sdk: Sdk) -> None:
    has(sdk.call("GET", "/healthz"), "status", "version", "source_version")
    source = has(sdk.call("GET", "/schema"), "schema_source")["schema_source"]
    applied = sdk.call("POST", "/schema/apply", {"schema_source": source})
    has(applied, "uri", "supported", "applied", "step_count", "manifest_version", "steps")
    snapshot = has(sdk.call("GET", "/snapshot?branch=main"), "branch", "manifest_version", "tables")
    tables = snapshot["tables"]
    assert isinstance(tables, list)
    assert {"table_key", "table_path", "table_version", "table_branch", "row_count"} <= tables[0].keys()


def test_case_32_read_change_and_ingest(sdk: Sdk, server: HttpServer, branch: str) -> None:
    text = "query adults($min: I32) { match { $p: Person  $p.age >= $min } return { $p.name } }"
    body = {"query_source": text, "query_name": "adults", "params": {"min": 1}, "branch": branch}
    read = has(sdk.call("POST", "/read", body), "query_name", "target", "row_count", "rows", "columns")
    assert "graph_commit_id" not in read
    add = "query add($n: String) { insert Person { name: $n } }"
    change = {"query_source": add, "query_name": "add", "params": {"n": "sdk"}, "branch": branch}
    changed = sdk.call("POST", "/change", change)
    has(changed, "branch", "query_name", "affected_nodes", "affected_edges", "actor_id")
    assert changed.headers["deprecation"] == "true"
    assert changed.headers["link"] == '<mutate>; rel="successor-version"'
    line = json.dumps({"type": "Person", "data": {"name": "sdk2"}})
    ingested = sdk.call("POST", "/ingest", {"data": line, "branch": branch, "mode": "merge"})
    document = has(ingested, "uri", "branch", "base_branch", "branch_created", "mode", "tables")
    assert document["base_branch"] == "main"
    assert document["tables"] == [{"table_key": "node:Person", "rows_loaded": 1}]


def test_case_32_a_flat_ingest_creates_a_missing_branch_from_main(server: HttpServer) -> None:
    line = json.dumps({"type": "Person", "data": {"name": "forked"}})
    body = {"data": line, "branch": "forked-by-ingest"}
    assert server.post("/graphs/default/ingest", body).status == 404
    assert server.post("/ingest", body).json()["branch_created"] is True


def test_case_32_branches_merges_and_commits(sdk: Sdk, branch: str) -> None:
    name = f"{branch}/sdk x"
    sdk.call("POST", "/branches", {"name": name}, status=400)
    name = f"{branch}-sdk"
    has(sdk.call("POST", "/branches", {"name": name, "from": branch}), "uri", "from", "name", "actor_id")
    sdk.call("POST", "/branches", {"name": name, "from": branch}, status=409)
    assert name in sdk.call("GET", "/branches").json()["branches"]
    has(
        sdk.call("POST", "/branches/merge", {"source": name, "target": branch}),
        "source",
        "target",
        "outcome",
        "actor_id",
    )
    encoded = name.replace("/", "%2F")
    has(sdk.call("DELETE", f"/branches/{encoded}"), "uri", "name", "actor_id")
    commits = sdk.call("GET", "/commits?branch=main").json()["commits"]
    assert commits[0].keys() >= COMMIT_MEMBERS
    assert sdk.call("GET", f"/commits/{commits[0]['graph_commit_id']}").json().keys() >= COMMIT_MEMBERS
    sdk.call("GET", "/commits/01AAAAAAAAAAAAAAAAAAAAAAAA", status=404)


def test_case_32_a_conflict_names_tables_and_rows(sdk: Sdk, server: HttpServer, branch: str) -> None:
    other = f"{branch}-theirs"
    sdk.call("POST", "/branches", {"name": other, "from": branch})
    text = 'query set($a: I32) { update Person set { age: $a } where name = "ada" }'
    for target, age in ((branch, 1), (other, 2)):
        sdk.call("POST", "/change", {"query_source": text, "params": {"a": age}, "branch": target})
    reply = sdk.call("POST", "/branches/merge", {"source": other, "target": branch}, status=409)
    (conflict,) = reply.json()["merge_conflicts"]
    assert (conflict["table_key"], conflict["row_id"], conflict["kind"]) == ("node:Person", "ada", "divergent_update")


def test_case_32_export_and_runs(sdk: Sdk) -> None:
    exported = sdk.call("POST", "/export", {"branch": "main", "table_keys": ["node:Person"]})
    assert exported.media_type == "application/x-ndjson"
    assert all(json.loads(line)["type"] == "Person" for line in exported.body.splitlines())
    assert sdk.call("GET", "/runs").json() == {"runs": []}
    for method, path in (("GET", "/runs/r1"), ("POST", "/runs/r1/abort"), ("POST", "/runs/r1/publish")):
        assert sdk.call(method, path, status=404).json()["code"] == "not_found"
