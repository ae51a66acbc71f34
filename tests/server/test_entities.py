"""Entities, blobs, searches, reverts, maintenance and language services over HTTP: cases 7 and 22."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.rig.deployments import Deployment
from tests.rig.http_server import HttpServer, Reply, wait_until
from tests.server.conftest import make_graph

GRAPH = "/graphs/default"
ADD = "query add($n: String, $a: I32?) { insert Person { name: $n, age: $a } }"
SET = "query set($n: String, $a: I32?) { update Person set { age: $a } where name = $n }"


def change(server: HttpServer, text: str, branch: str, **params: Any) -> str:
    reply = server.post(f"{GRAPH}/mutate", {"query": text, "params": params, "branch": branch})
    assert reply.status == 200, reply.body
    commit_id: str = reply.json()["commit"]["graph_commit_id"]
    return commit_id


def at(branch: str) -> str:
    return f"branch={quote(branch, safe='')}"


def test_an_entity_is_returned_by_its_key(server: HttpServer) -> None:
    node = server.get(f"{GRAPH}/entities/node/Person/ada").json()
    assert (node["kind"], node["type"], node["id"], node["properties"]["age"]) == ("node", "Person", "ada", 36)
    edges = server.post(f"{GRAPH}/query", {"query": "match { $a: Person  $a $e:knows $b } return { $e }"}).json()[
        "rows"
    ]
    edge = server.get(f"{GRAPH}/entities/edge/Knows/{edges[0]['e']['id']}").json()
    assert (edge["endpoints"], edge["properties"]) == ({"from": "ada", "to": "bob"}, {"since": 2020})
    assert server.get(f"{GRAPH}/entities/node/Person/nobody").status == 404
    assert server.get(f"{GRAPH}/entities/node/Nothing/x").status == 400
    assert server.get(f"{GRAPH}/entities/person/Person/ada").status == 400


def test_history_and_blame_name_the_commits(server: HttpServer, branch: str) -> None:
    commit = change(server, SET, branch, n="ada", a=37)
    path = f"{GRAPH}/entities/node/Person/ada"
    history = server.get(f"{path}/history?{at(branch)}").json()
    assert [version["op"] for version in history["versions"]] == ["update", "insert"]
    assert history["versions"][0]["commit"]["graph_commit_id"] == commit
    assert (history["versions"][0]["before"]["age"], history["versions"][0]["properties"]["age"]) == (36, 37)
    assert len(server.get(f"{path}/history?{at(branch)}&limit=1").json()["versions"]) == 1
    blame = {entry["name"]: entry for entry in server.get(f"{path}/blame?{at(branch)}").json()["properties"]}
    assert blame["age"]["commit"]["graph_commit_id"] == commit
    assert server.get(f"{GRAPH}/entities/node/Person/nobody/history").status == 404


def test_neighbors_are_edges_and_nodes(server: HttpServer) -> None:
    path = f"{GRAPH}/entities/node/Person/ada/neighbours"
    both = server.get(path).json()
    assert [(edge["type"], edge["to"]) for edge in both["edges"]] == [("Knows", {"type": "Person", "id": "bob"})]
    assert {node["id"]: node["properties"]["age"] for node in both["nodes"]} == {"ada": 36, "bob": 40}
    assert server.get(f"{path}?direction=in").json()["edges"] == []
    assert server.get(f"{path}?edge=Wrote").json()["edges"] == []
    incoming = server.get(f"{GRAPH}/entities/node/Person/bob/neighbours?direction=in&edge=Knows").json()
    assert incoming["edges"][0]["from"]["id"] == "ada"
    assert server.get(f"{GRAPH}/entities/node/Person/nobody/neighbours").status == 404


def test_a_subgraph_is_the_entities_of_a_result(server: HttpServer) -> None:
    text = "match { $p: Person  $p $e:knows $q } return { $p, $e, $q }"
    found = server.post(f"{GRAPH}/subgraph", {"query": text}).json()
    assert {node["id"] for node in found["nodes"]} == {"ada", "bob"}
    assert found["nodes"][0]["properties"]["age"] == 36
    assert found["edges"][0]["properties"] == {"since": 2020}


def test_a_search_ranks_nodes(server: HttpServer, branch: str) -> None:
    add = "query add($n: String, $b: String) { insert Person { name: $n, bio: $b } }"
    change(server, add, branch, n="s1", b="sailing the sea")
    change(server, add, branch, n="s2", b="the sea, the sea, the sea")
    body = {"type": "Person", "property": "bio", "text": "sea", "branch": branch}
    matches = server.post(f"{GRAPH}/search", body).json()["matches"]
    assert {match["id"] for match in matches} == {"s1", "s2"}
    assert matches[0]["score"] >= matches[1]["score"]
    assert server.post(f"{GRAPH}/search", {**body, "property": "nothing"}).status == 400
    assert server.post(f"{GRAPH}/search", {**body, "vector": [1.0]}).status == 400


def test_a_commit_is_reverted_and_picked(server: HttpServer, branch: str) -> None:
    commit = change(server, ADD, branch, n="undone", a=1)
    reverted = server.post(f"{GRAPH}/revert", {"commit": commit, "branch": branch}).json()
    assert (reverted["outcome"], reverted["stats"]["deletes"]) == ("merged", 1)
    other = f"{branch}-picked"
    server.post(f"{GRAPH}/branches", {"name": other})
    picked = server.post(f"{GRAPH}/cherry-pick", {"commit": commit, "branch": other}).json()
    assert picked["stats"]["inserts"] == 1
    stale = {"Omnigraph-If-Graph-Commit": server.head()}
    body = {"commit": commit, "branch": branch}
    assert server.post(f"{GRAPH}/revert/if-graph-commit", body, headers=stale).status == 412


def test_a_branch_is_reset_and_renamed(server: HttpServer, branch: str) -> None:
    change(server, ADD, branch, n="reset", a=1)
    path = f"{GRAPH}/branches/{quote(branch, safe='')}"
    assert server.post(f"{path}/reset", {"to": "main"}).json()["stats"]["deletes"] == 1
    renamed = server.post(f"{path}/rename", {"name": f"{branch}-new"}).json()
    assert (renamed["from"], renamed["name"]) == (branch, f"{branch}-new")


# Blobs ----------------------------------------------------------------------------------------------------------------

BODY = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def documents(server: HttpServer) -> str:
    """A branch with a document of ten bytes, an empty one, and one without a body."""
    server.post(f"{GRAPH}/branches", {"name": "documents"})
    for slug in ("a", "empty", "null"):
        change(server, "query add($s: String) { insert Doc { slug: $s } }", "documents", s=slug)
    for slug, content in (("a", b"0123456789"), ("empty", b"")):
        put = server.request("PUT", blob_path(slug), content, headers=BODY)
        assert put.status == 200, put.body
    return "documents"


def blob_path(slug: str, **parameters: str) -> str:
    pairs = {"type": "Doc", "id": slug, "property": "body", "branch": "documents", **parameters}
    return f"{GRAPH}/blob?" + "&".join(f"{name}={value}" for name, value in pairs.items())


def get(server: HttpServer, slug: str, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return server.get(blob_path(slug, entity="node"), headers=named)


def test_case_22_a_blob_is_sent_whole_and_in_ranges(server: HttpServer, documents: str) -> None:
    whole = get(server, "a")
    assert (whole.status, whole.body, whole.headers["content-length"]) == (200, b"0123456789", "10")
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["omnigraph-snapshot-id"] == server.head(documents)
    ranges = {"bytes=0-0": b"0", "bytes=2-4": b"234", "bytes=7-": b"789", "bytes=-3": b"789", "BYTES=8-100": b"89"}
    for header, expected in ranges.items():
        part = get(server, "a", Range=header)
        assert (part.status, part.body) == (206, expected)
    assert get(server, "a", Range="bytes=2-4").headers["content-range"] == "bytes 2-4/10"


@pytest.mark.parametrize("header", ["bytes=5-2", "bytes=0-1,3-4", "lines=0-1", "bytes=x-1", "bytes=-"])
def test_case_22_a_range_that_makes_no_sense_is_ignored(server: HttpServer, documents: str, header: str) -> None:
    assert (get(server, "a", Range=header).status, len(get(server, "a", Range=header).body)) == (200, 10)


@pytest.mark.parametrize(("slug", "header"), [("empty", "bytes=0-0"), ("a", "bytes=10-"), ("a", "bytes=-0")])
def test_case_22_a_range_outside_of_the_blob_is_416(server: HttpServer, documents: str, slug: str, header: str) -> None:
    reply = get(server, slug, Range=header)
    assert reply.status == 416
    length = reply.json()["blob_range"]["length"]
    assert reply.headers["content-range"] == f"bytes */{length}"


def test_case_22_conditions_and_head(server: HttpServer, documents: str) -> None:
    etag = get(server, "a").headers["etag"]
    assert get(server, "a", If_None_Match=f"W/{etag}").status == 304
    assert get(server, "a", If_Match=etag).status == 200
    refused = get(server, "a", If_Match='"other"')
    assert (refused.status, refused.json()["code"], refused.headers["etag"]) == (412, "conflict", etag)
    assert get(server, "a", If_Match=f"W/{etag}").status == 412
    assert get(server, "a", If_Range=etag, Range="bytes=0-0").status == 206
    assert get(server, "a", If_Range='"other"', Range="bytes=0-0").status == 200
    head = server.request("HEAD", blob_path("a", entity="node"), headers={"Range": "bytes=0-0"})
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "10")
    assert get(server, "empty").body == b""


def test_case_22_an_external_blob_is_copied_and_never_read_again(deployment: Deployment, tmp_path: Path) -> None:
    source = tmp_path / "source" / "a.bin"
    source.parent.mkdir()
    source.write_bytes(b"external bytes")
    uri = make_graph(deployment.new_root(tmp_path))
    variables = {"OMNIGRAPH_EXTERNAL_BLOBS": source.parent.as_uri()}
    with deployment.serving(tmp_path, uri, "--unauthenticated", variables=variables) as server:
        add = 'query add($u: Blob) { insert Doc { slug: "x", body: $u } }'
        change(server, add, "main", u=source.as_uri())
        source.unlink()
        reply = server.get(f"{GRAPH}/blob?entity=node&type=Doc&id=x&property=body")
        assert (reply.status, reply.body) == (200, b"external bytes")
        assert "location" not in reply.headers
        missing = server.post(f"{GRAPH}/mutate", {"query": add.replace('"x"', '"y"'), "params": {"u": source.as_uri()}})
        assert missing.status == 424


def test_case_22_what_is_no_blob_is_refused(server: HttpServer, documents: str) -> None:
    assert get(server, "null").status == 404
    assert get(server, "nobody").status == 404
    assert server.get(blob_path("a", entity="node", property="slug")).status == 400
    assert server.get(blob_path("a", entity="lamp")).status == 400
    assert server.get(blob_path("a", entity="node") + "&snapshot=HEAD").status == 400, "case 7"


def test_a_blob_is_replaced_on_a_condition(server: HttpServer, documents: str) -> None:
    path = blob_path("empty", media_type="text/plain")
    etag = get(server, "empty").headers["etag"]
    written = server.request("PUT", path, b"new", headers={**BODY, "If-Match": etag})
    assert written.status == 200
    assert server.request("PUT", path, b"lost", headers={**BODY, "If-Match": etag}).status == 412
    reply = get(server, "empty")
    assert (reply.body, reply.headers["omnigraph-blob-media-type"]) == (b"new", "text/plain")
    server.request("PUT", blob_path("empty"), b"", headers=BODY)


# Maintenance and language ---------------------------------------------------------------------------------------------


def finished(server: HttpServer, started: Reply) -> dict[str, Any]:
    """The final state of a job."""
    assert started.status == 202, started.body
    path = started.headers["location"]
    wait_until(lambda: server.get(path).json()["state"] != "running")
    job: dict[str, Any] = server.get(path).json()
    return job


def test_maintenance_runs_as_jobs(server: HttpServer) -> None:
    checked = finished(server, server.post(f"{GRAPH}/maintenance/check", {"quick": True}))
    assert (checked["state"], checked["result"]["ok"]) == ("succeeded", True)
    optimized = finished(server, server.post(f"{GRAPH}/maintenance/optimize", b""))
    assert optimized["state"] == "succeeded"
    preview = finished(server, server.post(f"{GRAPH}/maintenance/cleanup", {"keep": 10}))
    assert preview["result"]["preview"] is True
    failed = finished(server, server.post(f"{GRAPH}/maintenance/cleanup", {"keep": 10, "older_than": "yesterday"}))
    assert (failed["state"], failed["error"]["code"]) == ("failed", "bad_request")
    jobs = server.get(f"{GRAPH}/jobs").json()["jobs"]
    assert [job["kind"] for job in jobs] == ["cleanup", "cleanup", "optimize", "check"]
    assert server.get(f"{GRAPH}/jobs/01AAAAAAAAAAAAAAAAAAAAAAAA").status == 404
    assert server.get(f"{GRAPH}/jobs/..%2F..%2Fetc").status == 404


def test_the_status_shows_sizes(server: HttpServer) -> None:
    status = server.get(f"{GRAPH}/status").json()["status"]
    assert {dataset["type_key"] for dataset in status["datasets"]} >= {"node:Person", "edge:Knows"}
    assert "cache_directory" not in status


def test_texts_are_diagnosed_and_formatted(server: HttpServer) -> None:
    wrong = "query q() { match { $p: Person } return { $p.nmae } }"
    (finding,) = server.post(f"{GRAPH}/language/diagnose", {"text": wrong}).json()["diagnostics"]
    assert (finding["code"], wrong[finding["start"] : finding["end"]]) == ("T6", "$p.nmae")
    schema = server.post(f"{GRAPH}/language/diagnose", {"text": "node {", "language": "schema"}).json()
    assert schema["diagnostics"][0]["severity"] == "error"
    laid_out = server.post(f"{GRAPH}/language/format", {"text": "node   Lamp{}", "language": "schema"}).json()
    assert laid_out["text"] == "node Lamp {}\n"
    assert server.post(f"{GRAPH}/language/format", {"text": "query {"}).status == 400
