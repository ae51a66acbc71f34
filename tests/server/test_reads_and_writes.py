"""Queries and mutations over HTTP: cases 3, 6, 7, 8, 9, 10 and 11 of the server's conformance list."""

import io
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import omnigraph
from tests.rig.http_server import HttpServer, serving

GRAPH = "/graphs/default"
PEOPLE = "query people() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
ADD = "query add($n: String) { insert Person { name: $n } }"
BARE = "match { $p: Person } return { $p.name, $p.age } order { $p.name }"


def test_case_3_open_mode_allows_writes_but_not_the_list_of_graphs(server: HttpServer, branch: str) -> None:
    added = server.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": "eve"}, "branch": branch})
    assert added.status == 200
    assert added.json()["commit"]["actor_id"] is None
    assert server.get("/graphs").status == 403


def test_a_query_returns_rows_and_the_commit_that_was_read(server: HttpServer) -> None:
    reply = server.query(PEOPLE)
    document = reply.json()
    assert document["rows"] == [{"p.name": "ada", "p.age": 36}, {"p.name": "bob", "p.age": 40}]
    assert document["columns"] == ["p.name", "p.age"]
    assert document["target"] == {"branch": "main", "snapshot": None}
    assert document["graph_commit_id"] == server.head()
    assert "engine" in reply.headers["server-timing"]


def test_rows_are_the_same_in_every_format(server: HttpServer) -> None:
    def read(accept: str) -> bytes:
        reply = server.post(f"{GRAPH}/query", {"query": BARE}, headers={"Accept": accept})
        assert reply.status == 200, reply.body
        assert reply.headers["omnigraph-snapshot-id"] == server.head()
        return reply.body

    assert read("application/x-ndjson") == b'{"p.name":"ada","p.age":36}\n{"p.name":"bob","p.age":40}\n'
    assert read("text/csv") == b"p.name,p.age\r\nada,36\r\nbob,40\r\n"
    arrow = "application/vnd.apache.arrow.stream"
    for accept in (arrow, f"{arrow};codec=lz4", f"{arrow};codec=zstd"):
        table = pa.ipc.open_stream(io.BytesIO(read(accept))).read_all()
        assert table.to_pylist() == [{"p.name": "ada", "p.age": 36}, {"p.name": "bob", "p.age": 40}]


def test_csv_spells_32_bit_floats_shortly_and_json_widens_them(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", "node Runner { name: String @key  pace: F32? }", durability="os")
    graph.insert("Runner", {"name": "ada", "pace": 24.1})
    body = {"query": "match { $r: Runner } return { $r.pace }"}
    with serving(tmp_path, graph.uri, "--unauthenticated") as server:
        replies = {
            accept: server.post(f"{GRAPH}/query", body, headers={"Accept": accept}).body
            for accept in ("text/csv", "application/x-ndjson")
        }
        rows = server.post(f"{GRAPH}/query", body).json()["rows"]
    assert replies == {"text/csv": b"r.pace\r\n24.1\r\n", "application/x-ndjson": b'{"r.pace":24.100000381469727}\n'}
    assert rows == [{"r.pace": 24.100000381469727}]


def test_an_unknown_accept_is_406(server: HttpServer) -> None:
    for accept in ("image/png", "application/vnd.apache.arrow.stream;codec=brotli"):
        reply = server.post(f"{GRAPH}/query", {"query": BARE}, headers={"Accept": accept})
        assert reply.status == 406


def test_case_6_a_mutation_is_refused_by_query_and_by_read(server: HttpServer) -> None:
    head = server.head()
    refused = server.query(ADD, params={"n": "mallory"})
    assert refused.status == 400
    assert "mutate" in refused.json()["hint"]
    old = server.post(f"{GRAPH}/read", {"query_source": ADD, "params": {"n": "mallory"}})
    assert old.status == 400
    assert server.head() == head


def test_case_7_branch_and_snapshot_exclude_each_other(server: HttpServer) -> None:
    assert server.query(PEOPLE, branch="main", snapshot="HEAD").status == 400


def test_case_8_several_queries_need_a_name(server: HttpServer) -> None:
    two = PEOPLE + " query other() { match { $p: Person } return { $p.age } }"
    assert server.query(two).status == 400
    unknown = server.query(two, name="third")
    assert unknown.status == 400
    assert "third" in unknown.json()["error"]
    assert server.query(two, name="other").json()["columns"] == ["p.age"]


def test_case_9_a_mutation_that_matches_nothing_makes_no_commit(server: HttpServer) -> None:
    head = server.head()
    text = 'query old() { update Person set { age: 1 } where name = "nobody" }'
    reply = server.post(f"{GRAPH}/mutate", {"query": text})
    assert (reply.status, reply.json()["commit"], reply.json()["affected_nodes"]) == (200, None, 0)
    assert server.head() == head


def test_case_10_the_commit_of_a_read_is_a_precondition_of_a_write(server: HttpServer, branch: str) -> None:
    commit = server.query(PEOPLE, branch=branch).json()["graph_commit_id"]
    assert commit == server.head()
    path, condition = f"{GRAPH}/mutate/if-graph-commit", {"Omnigraph-If-Graph-Commit": commit}
    body = {"query": ADD, "params": {"n": "first"}, "branch": branch}
    written = server.post(path, body, headers=condition)
    assert written.status == 200
    lost = server.post(path, {**body, "params": {"n": "second"}}, headers=condition)
    assert lost.status == 412
    assert "code" not in lost.json()
    actual = written.json()["commit"]["graph_commit_id"]
    assert lost.json()["precondition_failure"] == {"expected": commit, "actual": actual}


@pytest.mark.parametrize("value", ['"abc"', "*", "W/abc", "a,b", " "])
def test_case_11_a_malformed_condition_is_400(server: HttpServer, value: str) -> None:
    body = {"query": ADD, "params": {"n": "x"}}
    reply = server.post(f"{GRAPH}/mutate/if-graph-commit", body, headers={"Omnigraph-If-Graph-Commit": value})
    assert reply.status == 400


def test_case_11_a_condition_on_the_unconditional_route_is_400(server: HttpServer) -> None:
    headers = {"Omnigraph-If-Graph-Commit": server.head()}
    reply = server.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": "x"}}, headers=headers)
    assert reply.status == 400
    assert "/mutate/if-graph-commit" in reply.json()["hint"]
    assert server.post(f"{GRAPH}/mutate/if-graph-commit", {"query": ADD, "params": {"n": "x"}}).status == 400


@pytest.mark.parametrize(
    ("method", "path", "hint"),
    [
        ("POST", "/change", "/mutate/if-graph-commit"),
        ("POST", "/ingest", "/load/if-graph-commit"),
        ("POST", "/branches/dev/reset", "/branches/{branch}/reset/if-graph-commit"),
        ("POST", "/branches/dev/rename", None),
        ("DELETE", "/branches/dev", None),
        ("POST", "/branches", None),
        ("POST", "/tags", None),
        ("DELETE", "/tags/t", None),
        ("POST", "/maintenance/optimize", None),
    ],
)
def test_the_hint_about_a_condition_names_only_paths_that_exist(
    server: HttpServer, method: str, path: str, hint: str | None
) -> None:
    headers = {"Omnigraph-If-Graph-Commit": server.head()}
    reply = server.request(method, GRAPH + path, None if method == "DELETE" else {}, headers=headers)
    assert reply.status == 400
    sentence = "this operation has no conditional form" if hint is None else f"send the request to {hint}"
    assert reply.json()["hint"] == sentence
    paths = server.get("/openapi.json").json()["paths"]
    assert hint is None or f"/graphs/{{graph_id}}{hint}" in paths


def test_a_repeated_write_with_its_key_returns_the_first_commit(server: HttpServer, branch: str) -> None:
    body, headers = {"query": ADD, "params": {"n": "once"}, "branch": branch}, {"Idempotency-Key": "k-1"}
    first = server.post(f"{GRAPH}/mutate", body, headers=headers)
    second = server.post(f"{GRAPH}/mutate", body, headers=headers)
    assert "idempotent-replay" not in first.headers
    assert second.headers["idempotent-replay"] == "true"
    assert second.json()["commit"] == first.json()["commit"]
    other = server.post(f"{GRAPH}/mutate", {**body, "params": {"n": "other"}}, headers=headers)
    assert other.status == 400


def test_a_file_name_is_never_opened(server: HttpServer, tmp_path: object) -> None:
    for text in ("/etc/passwd", "x.gq", "secret.pg"):
        reply = server.query(text)
        assert reply.status == 400
        assert reply.json()["kind"] in ("ParseError", "InputError")
        applied = server.post(f"{GRAPH}/schema/apply", {"schema_source": text})
        assert applied.status == 400


def test_errors_name_what_is_wrong_and_what_happened(server: HttpServer) -> None:
    missing = server.query(PEOPLE, branch="nowhere")
    assert missing.status == 404
    assert missing.json()["effect"] == "none"
    duplicate = server.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": "ada"}})
    assert duplicate.status == 409
    assert duplicate.json()["key_conflict"] == {"entity_kind": "node", "type_name": "Person", "entity_id": "ada"}
    wrong = server.query("match { $p: Person } return { $p.nmae }")
    assert wrong.json()["diagnostics"][0]["code"] == "T6"


def test_a_past_state_is_read_by_commit_tag_and_revision(server: HttpServer, branch: str) -> None:
    before = server.head(quote(branch, safe=""))
    server.post(f"{GRAPH}/mutate", {"query": ADD, "params": {"n": "new"}, "branch": branch})
    assert len(server.rows(PEOPLE, branch=branch)) == 3
    past = server.query(PEOPLE, snapshot=before)
    assert past.json()["row_count"] == 2
    assert past.json()["target"] == {"branch": None, "snapshot": before}
    assert server.query(PEOPLE, snapshot="01AAAAAAAAAAAAAAAAAAAAAAAA").status == 404


def test_explain_shows_a_plan(server: HttpServer) -> None:
    assert "Person" in server.post(f"{GRAPH}/explain", {"query": PEOPLE}).json()["plan"]


def test_a_query_that_takes_too_long_is_503(server: HttpServer) -> None:
    late = server.query("match { $a: Person  $b: Person  $c: Person } return { count($a) as n }", timeout=1e-9)
    assert late.status == 503
    assert late.json()["resource_limit"]["resource"] == "query_wall_ms"
    assert "code" not in late.json()
    assert late.headers["retry-after"] == "1"


def test_a_result_beyond_the_requested_rows_is_413(server: HttpServer) -> None:
    refused = server.query(PEOPLE, limit_rows=1)
    assert refused.status == 413
    assert refused.json()["resource_limit"] == {"resource": "result_rows", "limit": 1, "actual": 2}
    headers = {"Accept": "application/x-ndjson"}
    assert server.post(f"{GRAPH}/query", {"query": PEOPLE, "limit_rows": 1}, headers=headers).status == 413


def test_large_integers_are_strings_when_asked(server: HttpServer) -> None:
    text = "match { $p: Person } return { 9007199254740993 as n, $p.age } order { $p.age } limit 1"
    assert server.rows(text)[0] == {"n": 9007199254740993, "p.age": 36}
    assert server.rows(text, integers="string")[0] == {"n": "9007199254740993", "p.age": 36}
    headers = {"Omnigraph-Integers": "string", "Accept": "application/x-ndjson"}
    lines = server.post(f"{GRAPH}/query", {"query": text}, headers=headers).body
    assert lines == b'{"n":"9007199254740993","p.age":36}\n'
    assert server.post(f"{GRAPH}/query", {"query": text}, headers={"Omnigraph-Integers": "roman"}).status == 400


def test_case_31_the_document_lists_every_route_without_security(server: HttpServer) -> None:
    document = server.get("/openapi.json").json()
    assert "securitySchemes" not in document["components"]
    assert not any("security" in operation for path in document["paths"].values() for operation in path.values())
    reference = {
        *("cluster_getSnapshot", "cluster_query", "cluster_mutate", "cluster_mutate_if_graph_commit", "listGraphs"),
        *("cluster_list_queries", "cluster_invoke_query", "cluster_invoke_query_if_graph_commit", "cluster_getSchema"),
        *("cluster_applySchema", "cluster_loadNdjson", "cluster_load", "cluster_export", "cluster_listBranches"),
        *("cluster_createBranch", "cluster_deleteBranch", "cluster_mergeBranches", "cluster_listCommits", "health"),
        *("cluster_getCommit", "cluster_getCommitChanges", "cluster_pollChanges", "cluster_captureChangeBaseline"),
        *("cluster_getBlob", "cluster_headBlob", "cluster_read", "cluster_change", "cluster_ingest"),
    }
    operations = {operation["operationId"] for path in document["paths"].values() for operation in path.values()}
    assert reference <= operations


def test_the_page_of_operations_loads_nothing_from_elsewhere(server: HttpServer) -> None:
    page = server.get("/docs")
    assert page.media_type == "text/html"
    assert b"http://" not in page.body
    assert b"https://" not in page.body
    assert "default-src 'self'" in page.headers["content-security-policy"]


def test_records_are_written_with_their_verbs(server: HttpServer, branch: str) -> None:
    def write(verb: str, type_name: str, *records: object) -> dict[str, object]:
        body = {"verb": verb, "type": type_name, "records": list(records), "branch": branch}
        reply = server.post(f"{GRAPH}/records", body)
        assert reply.status == 200, reply.body
        document: dict[str, object] = reply.json()
        return document

    assert write("insert", "Person", {"name": "r1", "age": 1}, {"name": "r2"})["ids"] == {"Person": ["r1", "r2"]}
    write("upsert", "Person", {"name": "r1", "score": 2.5})
    write("patch", "Person", {"name": "r2", "age": 7})
    write("connect", "Knows", ["r1", "r2", {"since": 1999}], ["r2", "r1"])
    rows = server.rows(
        'match { $p: Person  $p.name starts_with "r" } return { $p.name, $p.age, $p.score }', branch=branch
    )
    assert sorted(map(str, rows)) == sorted(
        map(str, [{"p.name": "r1", "p.age": 1, "p.score": 2.5}, {"p.name": "r2", "p.age": 7, "p.score": None}])
    )
    body = {"verb": "connect", "type": "Knows", "records": ["r1"], "branch": branch}
    assert server.post(f"{GRAPH}/records", body).status == 400


def test_a_transaction_is_one_commit_with_reads_that_see_its_writes(server: HttpServer, branch: str) -> None:
    count = {"op": "query", "query": "match { $p: Person } return { count($p) as n }"}
    operations = [
        {"op": "insert", "type": "Person", "records": [{"name": "t1"}]},
        count,
        {"op": "mutate", "query": ADD, "params": {"n": "t2"}},
        {"op": "update", "type": "Person", "where": "name = $who", "set": {"age": 5}, "params": {"who": "t1"}},
        {"op": "connect", "type": "Knows", "records": [["t1", "t2"]]},
        {"op": "delete", "type": "Person", "where": 'name = "bob"'},
        count,
    ]
    preview = server.post(f"{GRAPH}/transaction", {"operations": operations, "branch": branch, "rollback": True}).json()
    assert [result["rows"] for result in preview["results"]] == [[{"n": 3}], [{"n": 3}]]
    assert preview["commit"] is None
    written = server.post(f"{GRAPH}/transaction", {"operations": operations, "branch": branch}).json()
    assert written["commit"]["parent_commit_id"] == preview["base_commit_id"]
    assert len(server.rows(PEOPLE, branch=branch)) == 3


def test_a_transaction_fails_if_what_it_read_has_changed(server: HttpServer, branch: str) -> None:
    read = {"op": "query", "query": PEOPLE}
    seen = server.post(f"{GRAPH}/transaction", {"operations": [read], "branch": branch, "rollback": True}).json()
    steps = [
        {**read, "digest": seen["results"][0]["digest"]},
        {"op": "insert", "type": "Person", "records": [{"name": "x1"}]},
    ]
    assert server.post(f"{GRAPH}/transaction", {"operations": steps, "branch": branch}).status == 200
    stale = server.post(f"{GRAPH}/transaction", {"operations": steps[:1], "branch": branch})
    assert stale.status == 409
    assert stale.json()["read_set_conflict"]["member"] == "query"
    assert server.post(f"{GRAPH}/transaction", {"operations": [{"op": "insert"}], "branch": branch}).status == 400


def test_parameters_are_numbers_or_their_text(server: HttpServer) -> None:
    text = "query q($n: I64) { match { $p: Person  $p.age = $n } return { $p.name } }"
    assert server.rows(text, params={"n": "36"}) == server.rows(text, params={"n": 36}) == [{"p.name": "ada"}]


def test_a_query_is_described(server: HttpServer) -> None:
    (described,) = server.post(f"{GRAPH}/language/describe", {"text": ADD}).json()["queries"]
    assert (described["name"], described["kind"], described["params"][0]["type"]) == ("add", "mutation", "String")
    assert server.post(f"{GRAPH}/language/describe", {"text": "query {"}).status == 400


def test_ids_of_a_preview_are_used_again_but_never_twice(server: HttpServer, branch: str) -> None:
    add = {"op": "mutate", "query": 'insert Knows { from: "bob", to: "ada" }'}
    body = {"operations": [add, add], "branch": branch}
    preview = server.post(f"{GRAPH}/transaction", {**body, "rollback": True}).json()
    assert len(preview["generated_ids"]) == 2
    written = server.post(f"{GRAPH}/transaction", {**body, "generated_ids": preview["generated_ids"]}).json()
    assert written["ids"] == {"Knows": preview["generated_ids"]}
    again = server.post(f"{GRAPH}/transaction", {**body, "generated_ids": preview["generated_ids"]})
    assert (again.status, again.json()["kind"]) == (409, "KeyConflict")
    invalid = server.post(f"{GRAPH}/transaction", {**body, "generated_ids": ["x"]})
    assert (invalid.status, invalid.json()["kind"]) == (400, "InputError")


def test_a_record_that_is_no_object_is_rejected(server: HttpServer, branch: str) -> None:
    for verb in ("insert", "upsert", "patch"):
        body = {"verb": verb, "type": "Person", "records": [7], "branch": branch}
        assert server.post(f"{GRAPH}/records", body).status == 400
