"""Branches, merges, commits, tags and changes over HTTP: cases 15, 17, 26 and 27 of the server's conformance list."""

import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import omnigraph
from tests.rig.deployments import Deployment
from tests.rig.http_server import HttpServer
from tests.server.conftest import make_graph

GRAPH = "/graphs/default"
ADD = "query add($n: String, $a: I32?) { insert Person { name: $n, age: $a } }"
SET = "query set($n: String, $a: I32?) { update Person set { age: $a } where name = $n }"
AGES = "match { $p: Person } return { $p.name, $p.age } order { $p.name }"


def change(server: HttpServer, text: str, branch: str, name: str, age: int | None = None) -> str:
    """Run a mutation and return its commit."""
    body = {"query": text, "params": {"n": name, "a": age}, "branch": branch}
    reply = server.post(f"{GRAPH}/mutate", body)
    assert reply.status == 200, reply.body
    commit_id: str = reply.json()["commit"]["graph_commit_id"]
    return commit_id


def path_of(branch: str) -> str:
    return quote(branch, safe="")


@pytest.mark.parametrize("name", ["review/x", "merge", "über-Straße", "a.b-c_d"])
def test_case_17_a_branch_is_created_shown_and_deleted_by_its_encoded_name(server: HttpServer, name: str) -> None:
    created = server.post(f"{GRAPH}/branches", {"name": name})
    if created.status == 400:  # a name that the graph itself refuses
        assert not name.isascii()
        return
    assert created.json()["graph_commit_id"] == server.head()
    shown = server.get(f"{GRAPH}/branches/{path_of(name)}").json()
    assert (shown["name"], shown["parent"], shown["ahead"], shown["behind"]) == (name, "main", 0, 0)
    assert server.post(f"{GRAPH}/branches", {"name": name}).status == 409
    assert server.delete(f"{GRAPH}/branches/{path_of(name)}").json()["name"] == name
    assert server.delete(f"{GRAPH}/branches/{path_of(name)}").status == 404


def test_a_branch_with_unmerged_commits_is_deleted_only_by_force(server: HttpServer, branch: str) -> None:
    change(server, ADD, branch, "new")
    assert server.delete(f"{GRAPH}/branches/{path_of(branch)}").status == 409
    assert server.delete(f"{GRAPH}/branches/{path_of(branch)}?force=true").status == 200
    assert server.delete(f"{GRAPH}/branches/main").status == 400


def two_branches(server: HttpServer, name: str) -> tuple[str, str]:
    """Two branches that changed the same person."""
    ours, theirs = f"ours-{name}", f"theirs-{name}"
    for branch in (ours, theirs):
        server.post(f"{GRAPH}/branches", {"name": branch})
    change(server, SET, ours, "ada", 1)
    change(server, SET, theirs, "ada", 2)
    change(server, ADD, theirs, "extra")
    return ours, theirs


def test_case_15_a_conflict_is_409_with_every_entity_and_no_effect(server: HttpServer) -> None:
    ours, theirs = two_branches(server, "15")
    head = server.head(ours)
    reply = server.post(f"{GRAPH}/branches/merge", {"source": theirs, "target": ours})
    assert reply.status == 409
    (conflict,) = reply.json()["merge_conflicts"]
    assert (conflict["entity_kind"], conflict["type_name"], conflict["entity_id"]) == ("node", "Person", "ada")
    assert conflict["kind"] == "divergent_update"
    assert conflict["ours"]["age"] == 1
    assert server.head(ours) == head


def test_a_preview_lists_conflicts_and_writes_nothing(server: HttpServer) -> None:
    ours, theirs = two_branches(server, "preview")
    head = server.head(ours)
    preview = server.post(f"{GRAPH}/branches/merge/preview", {"source": theirs, "target": ours}).json()
    assert (preview["outcome"], preview["commit"]) == ("conflict", None)
    assert len(preview["merge_conflicts"]) == 1
    assert server.head(ours) == head


def test_conflicts_are_resolved_by_side_and_by_value(server: HttpServer) -> None:
    ours, theirs = two_branches(server, "sides")
    body = {"source": theirs, "target": ours, "strategy": "theirs"}
    merged = server.post(f"{GRAPH}/branches/merge", body).json()
    assert (merged["outcome"], merged["stats"]["resolved"], merged["discarded"][0]["value"]) == ("merged", 1, 1)
    assert server.rows(AGES, branch=ours)[0]["p.age"] == 2
    ours, theirs = two_branches(server, "values")
    resolution = {"type_name": "Person", "entity_id": "ada", "values": {"age": 99}}
    resolved = {"source": theirs, "target": ours, "resolutions": [resolution]}
    assert server.post(f"{GRAPH}/branches/merge", resolved).status == 200
    assert server.rows(AGES, branch=ours)[0]["p.age"] == 99


def test_a_merge_deletes_its_branch_when_asked(server: HttpServer, branch: str) -> None:
    source = f"{branch}-source"
    server.post(f"{GRAPH}/branches", {"name": source, "from": branch})
    change(server, ADD, source, "merged")
    body = {"source": source, "target": branch, "delete_branch": True}
    merged = server.post(f"{GRAPH}/branches/merge", body).json()
    assert (merged["outcome"], merged["branch_deleted"]) == ("fast_forward", True)
    again = server.post(f"{GRAPH}/branches/merge", {"source": "main", "target": branch}).json()
    assert again["outcome"] == "already_up_to_date"


def test_commits_are_listed_in_pages_and_shown_by_id(server: HttpServer, branch: str) -> None:
    ids = [change(server, ADD, branch, f"c{number}") for number in range(3)]
    listed = server.get(f"{GRAPH}/commits?branch={path_of(branch)}&limit=2").json()
    assert [commit["graph_commit_id"] for commit in listed["commits"]] == [ids[2], ids[1]]
    rest = server.get(f"{GRAPH}/commits?branch={path_of(branch)}&before={listed['next_cursor']}").json()["commits"]
    assert rest[0]["graph_commit_id"] == ids[0]
    assert "next_cursor" not in rest
    shown = server.get(f"{GRAPH}/commits/{ids[1]}")
    assert shown.json()["parent_commit_id"] == ids[0]
    assert shown.json()["types"][0]["type_name"] == "Person"
    unchanged = server.get(f"{GRAPH}/commits/{ids[1]}", headers={"If-None-Match": shown.headers["etag"]})
    assert (unchanged.status, unchanged.body) == (304, b"")
    for missing in ("01AAAAAAAAAAAAAAAAAAAAAAAA", "nothing"):
        assert server.get(f"{GRAPH}/commits/{missing}").status == 404


def test_a_snapshot_and_a_schema_are_shown_for_a_branch_and_a_revision(server: HttpServer) -> None:
    snapshot = server.get(f"{GRAPH}/snapshot").json()
    assert snapshot["graph_commit_id"] == server.head()
    counts = {dataset["type_name"]: dataset["entity_count"] for dataset in snapshot["datasets"]}
    assert counts["Person"] == 2
    assert server.get(f"{GRAPH}/snapshot?branch=nowhere").status == 404
    first = server.get(f"{GRAPH}/snapshot?snapshot=HEAD~2").json()
    assert {dataset["entity_count"] for dataset in first["datasets"]} == {0}
    assert "node Person" in server.get(f"{GRAPH}/schema").json()["schema_source"]


def test_a_schema_is_shown_with_the_columns_of_its_keys(server: HttpServer, branch: str) -> None:
    document = server.get(f"{GRAPH}/schema?branch={path_of(branch)}").json()
    assert list(document) == ["schema_source", "graph_branch", "graph_commit_id", "shape_hash", "keys"]
    keys = [
        {"kind": "node", "type": name, "columns": [column]} for name, column in (("Doc", "slug"), ("Person", "name"))
    ]
    assert document["keys"] == keys
    seat = "node Seat { row: String  number: I32  @key(number, row) }"
    server.post(f"{GRAPH}/schema/apply", {"schema_source": f"{document['schema_source']}\n{seat}", "branch": branch})
    renamed = seat.replace("number: I32", 'place: I32 @rename_from("number")').replace("(number", "(place")
    source = f"{document['schema_source']}\n{renamed}"
    before = seat_columns(server, branch)
    server.post(f"{GRAPH}/schema/apply", {"schema_source": source, "branch": branch})
    assert sorted(before) == ["number", "row"]
    assert seat_columns(server, branch) == ["place" if column == "number" else column for column in before]


def seat_columns(server: HttpServer, branch: str) -> list[str]:
    keys = server.get(f"{GRAPH}/schema?branch={path_of(branch)}").json()["keys"]
    return next(key["columns"] for key in keys if key["type"] == "Seat")


def test_a_schema_is_planned_and_applied(server: HttpServer, branch: str) -> None:
    source = server.get(f"{GRAPH}/schema").json()["schema_source"]
    wider = source.replace("age: I32?", "age: I64?")
    plan = server.post(f"{GRAPH}/schema/plan", {"schema_source": wider, "branch": branch}).json()
    assert (plan["supported"], plan["step_count"]) == (True, 1)
    applied = server.post(f"{GRAPH}/schema/apply", {"schema_source": wider, "branch": branch}).json()
    assert (applied["applied"], applied["commit"]["graph_branch"]) == (True, branch)
    repeated = server.post(f"{GRAPH}/schema/apply", {"schema_source": wider, "branch": branch}).json()
    assert (repeated["applied"], repeated["commit"]) == (False, None)
    broken = server.post(f"{GRAPH}/schema/apply", {"schema_source": "node {", "branch": branch})
    assert broken.status == 400
    assert broken.json()["diagnostics"]


def test_a_repeated_change_with_its_key_returns_the_first_answer(server: HttpServer, branch: str) -> None:
    """Merges, reverts, cherry-picks, resets and schema changes, each sent twice with other changes between."""
    source = f"{branch}-source"
    server.post(f"{GRAPH}/branches", {"name": source, "from": branch})
    change(server, ADD, source, "dev", 5)
    server.post(f"{GRAPH}/branches", {"name": f"{branch}-other", "from": branch})
    picked = change(server, ADD, f"{branch}-other", "other")
    change(server, SET, branch, "ada", 50)
    wider = server.get(f"{GRAPH}/schema").json()["schema_source"].replace("age: I32?", "age: I64?")
    requests: list[tuple[str, dict[str, Any]]] = [
        ("branches/merge", {"source": source, "target": branch, "delete_branch": True}),
        ("revert", {"commit": "HEAD", "branch": branch}),
        ("cherry-pick", {"commit": picked, "branch": branch}),
        (f"branches/{path_of(branch)}/reset", {"to": "HEAD~1"}),
        ("schema/apply", {"schema_source": wider, "branch": branch}),
    ]
    for number, (path, body) in enumerate(requests):
        headers = {"Idempotency-Key": f"twice-{number}"}
        first = server.post(f"{GRAPH}/{path}", body, headers=headers)
        assert (first.status, "idempotent-replay" in first.headers) == (200, False)
        head = server.head(branch)
        assert first.json()["commit"]["graph_commit_id"] == head
        change(server, ADD, branch, f"between-{number}")
        again = server.post(f"{GRAPH}/{path}", body, headers=headers)
        assert (again.headers["idempotent-replay"], again.json()) == ("true", first.json())
        conditional = {**headers, "Omnigraph-If-Graph-Commit": head}
        assert server.post(f"{GRAPH}/{path}/if-graph-commit", body, headers=conditional).json() == first.json()
        other = server.post(f"{GRAPH}/revert", {"commit": "HEAD~1", "branch": branch}, headers=headers)
        assert (other.status, other.json()["kind"]) == (400, "InputError")


def test_resolutions_belong_to_the_request(server: HttpServer, branch: str) -> None:
    source = f"{branch}-source"
    server.post(f"{GRAPH}/branches", {"name": source, "from": branch})
    change(server, SET, source, "ada", 5)
    change(server, SET, branch, "ada", 6)
    resolution = {"type_name": "Person", "entity_id": "ada", "values": {"age": 7}}
    body = {"source": source, "target": branch, "resolutions": [resolution]}
    headers = {"Idempotency-Key": "resolved"}
    first = server.post(f"{GRAPH}/branches/merge", body, headers=headers)
    assert first.json()["outcome"] == "merged"
    again = server.post(f"{GRAPH}/branches/merge", body, headers=headers)
    assert (again.headers["idempotent-replay"], again.json()) == ("true", first.json())
    resolution["values"] = {"age": 8}
    assert server.post(f"{GRAPH}/branches/merge", body, headers=headers).status == 400


def test_branches_and_tags_do_not_take_a_key(server: HttpServer, branch: str) -> None:
    headers = {"Idempotency-Key": "k"}
    for path, body in (
        ("branches", {"name": "x"}),
        ("tags", {"name": "x"}),
        (f"branches/{path_of(branch)}/rename", {}),
    ):
        reply = server.post(f"{GRAPH}/{path}", body, headers=headers)
        assert (reply.status, "not accepted on this path" in reply.json()["error"]) == (400, True)


def test_tags_name_commits(server: HttpServer) -> None:
    head = server.head()
    created = server.post(f"{GRAPH}/tags", {"name": "v1", "message": "first"}).json()
    assert (created["graph_commit_id"], created["message"]) == (head, "first")
    assert server.get(f"{GRAPH}/tags").json()["tags"] == [created]
    assert server.get(f"{GRAPH}/tags/v1").json() == created
    assert server.post(f"{GRAPH}/tags", {"name": "v1"}).status == 409
    assert server.query(AGES, snapshot="v1").status == 200
    assert server.delete(f"{GRAPH}/tags/v1").json() == created
    assert server.get(f"{GRAPH}/tags/v1").status == 404


def test_a_diff_lists_the_changed_entities(server: HttpServer, branch: str) -> None:
    change(server, ADD, branch, "new", 5)
    change(server, SET, branch, "ada", 37)
    path = f"{GRAPH}/diff?from=main&to={path_of(branch)}"
    document = server.get(path).json()
    assert (document["summary"]["inserts"], document["summary"]["updates"]) == (1, 1)
    updated = next(entry for entry in document["changes"] if entry["op"] == "update")
    assert (updated["id"], updated["changed"], updated["before"]["age"], updated["after"]["age"]) == (
        "ada",
        ["age"],
        36,
        37,
    )
    assert server.get(f"{path}&limit=1").json()["truncated"] is True
    lines = server.get(path, headers={"Accept": "application/x-ndjson"}).body.splitlines()
    assert len(lines) == 2
    assert server.get(f"{GRAPH}/diff?from=nowhere").status == 400


# The change feed ------------------------------------------------------------------------------------------------------


def test_case_26_pages_of_one_yield_every_change_once(server: HttpServer, branch: str) -> None:
    for number in range(3):
        change(server, ADD, branch, f"f{number}")
    base, seen, cursors = f"{GRAPH}/changes?branch={path_of(branch)}&limit=1", [], []
    position = "start=beginning"
    while True:
        page = server.get(f"{base}&{position}").json()
        seen += [entry["id"] for block in page["blocks"] for entry in block["changes"]]
        if "cursor" in page:
            assert "next_page_token" not in page
            cursors.append(page["cursor"])
            if page["caught_up"]:
                break
        position = f"page_token={page['next_page_token']}" if "next_page_token" in page else f"cursor={page['cursor']}"
    assert [name for name in seen if name.startswith("f")] == ["f0", "f1", "f2"]
    assert sorted(set(seen)) == sorted(seen)
    replay = server.get(f"{base}&cursor={cursors[-2]}").json()
    assert replay["blocks"][0]["changes"][0]["id"] == "f2"


def test_case_26_a_cursor_belongs_to_its_branch_and_filter(server: HttpServer, branch: str) -> None:
    cursor = server.get(f"{GRAPH}/changes?branch={path_of(branch)}").json()["cursor"]
    for path in (f"/changes?cursor={cursor}", f"/changes?branch={path_of(branch)}&op=insert&cursor={cursor}"):
        rejected = server.get(GRAPH + path)
        assert rejected.status == 400
        assert rejected.json()["error"].startswith("change cursor rejected: ")
    server.delete(f"{GRAPH}/branches/{path_of(branch)}")
    server.post(f"{GRAPH}/branches", {"name": branch})
    recreated = server.get(f"{GRAPH}/changes?branch={path_of(branch)}&cursor={cursor}")
    assert recreated.json()["error"].startswith("change cursor rejected: ")


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ("limit=0", 400),
        ("limit=8193", 413),
        ("start=now&cursor=x", 400),
        ("colour=red", 400),
        ("op=insert&op=burn", 400),
        ("start=now&start=now", 400),
        ("start=sometimes", 400),
        ("wait=1000", 400),
        ("cursor=%ff", 400),
    ],
)
def test_malformed_parameters_of_the_feed_are_refused(server: HttpServer, parameters: str, status: int) -> None:
    assert server.get(f"{GRAPH}/changes?{parameters}").status == status


def test_the_changes_of_a_commit_are_paged(server: HttpServer, branch: str) -> None:
    text = 'query two() { insert Person { name: "t1" }  insert Person { name: "t2" } }'
    commit = server.post(f"{GRAPH}/mutate", {"query": text, "branch": branch}).json()["commit"]["graph_commit_id"]
    first = server.get(f"{GRAPH}/commits/{commit}/changes?limit=1").json()
    second = server.get(f"{GRAPH}/commits/{commit}/changes?limit=1&page_token={first['next_page_token']}").json()
    assert [page["changes"][0]["id"] for page in (first, second)] == ["t1", "t2"]
    assert "next_page_token" not in second
    assert server.get(f"{GRAPH}/commits/{quote(branch, safe='')}/changes?limit=1").json() == first
    missing = [server.get(f"{GRAPH}/commits/{name}/changes") for name in ("01AAAAAAAAAAAAAAAAAAAAAAAA", "x")]
    assert {reply.status for reply in missing} == {404}
    assert len({reply.json()["error"] for reply in missing}) == 1


def test_a_long_poll_returns_when_a_commit_arrives(server: HttpServer, branch: str) -> None:
    connection = server.connect()
    connection.request("GET", f"{GRAPH}/changes?branch={path_of(branch)}&wait=60")
    change(server, ADD, branch, "awaited")
    page = json.loads(connection.getresponse().read())
    connection.close()
    assert page["blocks"][0]["changes"][0]["id"] == "awaited"


def read_event(response: http.client.HTTPResponse) -> dict[str, str]:
    """The next event of a stream; comments are skipped."""
    members: dict[str, str] = {}
    while True:
        line = response.readline().decode().rstrip("\n")
        if not line and members:
            return members
        name, _, value = line.partition(": ")
        if name:
            members[name] = value


def test_events_follow_a_branch_and_resume(server: HttpServer, branch: str) -> None:
    connection = server.connect()
    path = f"{GRAPH}/changes/stream?branch={path_of(branch)}"
    connection.request("GET", path)
    response = connection.getresponse()
    assert response.headers["content-type"] == "text/event-stream"
    change(server, ADD, branch, "e1")
    first = read_event(response)
    assert json.loads(first["data"])["blocks"][0]["changes"][0]["id"] == "e1"
    connection.close()
    change(server, ADD, branch, "e2")
    resumed = server.connect()
    resumed.request("GET", path, headers={"Last-Event-ID": first["id"]})
    second = read_event(resumed.getresponse())
    resumed.close()
    assert json.loads(second["data"])["blocks"][0]["changes"][0]["id"] == "e2"


def test_a_baseline_ends_with_a_cursor(server: HttpServer, branch: str) -> None:
    lines = server.post(f"{GRAPH}/changes/baseline", {"branch": branch, "kind": ["node"]}).body.splitlines()
    assert [json.loads(line)["data"]["name"] for line in lines[:-1]] == ["ada", "bob"]
    baseline = json.loads(lines[-1])["baseline"]
    change(server, ADD, branch, "later")
    path = f"{GRAPH}/changes?branch={path_of(branch)}&kind=node&cursor={baseline['resume_cursor']}"
    assert server.get(path).json()["blocks"][0]["changes"][0]["id"] == "later"
    assert server.post(f"{GRAPH}/changes/baseline", b"").status == 200, "the body is optional"


def test_case_27_a_cursor_from_before_a_cleanup_is_410(deployment: Deployment, tmp_path: Path) -> None:
    uri = make_graph(deployment.new_root(tmp_path))
    graph = omnigraph.open(uri)
    cursor = graph.changes.feed().cursor
    for number in range(3):
        graph.insert("Person", {"name": f"n{number}"})
    graph.maintenance.cleanup(keep=1, older_than=0, grace=0, confirm=True)
    with deployment.serving(tmp_path, uri, "--unauthenticated") as server:
        gap = server.get(f"{GRAPH}/changes?cursor={cursor}")
        assert gap.status == 410
        assert "code" not in gap.json()
        assert gap.json()["change_feed_gap"]["first_unreadable_commit_id"]
        lines = server.post(f"{GRAPH}/changes/baseline", {}).body.splitlines()
        names = {json.loads(line).get("data", {}).get("name") for line in lines[:-1]}
        assert {"n0", "n1", "n2"} <= names
        resume = json.loads(lines[-1])["baseline"]["resume_cursor"]
        change(server, ADD, "main", "after")
        page = server.get(f"{GRAPH}/changes?cursor={resume}").json()
        assert page["blocks"][0]["changes"][0]["id"] == "after"
