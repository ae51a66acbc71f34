"""Completion and hover over HTTP."""

from tests.rig.http_server import HttpServer

PATH = "/graphs/default/language"


def test_queries_are_completed_from_the_schema_of_a_branch(server: HttpServer, branch: str) -> None:
    text = "match { $p: Person } return { $p.ag }"
    body = {"text": text, "offset": text.index("ag }") + 2, "branch": branch}
    reply = server.post(f"{PATH}/complete", body)
    assert reply.status == 200
    (item,) = reply.json()["completions"]
    start = text.index("ag }")
    assert item == {
        "text": "age",
        "label": "age",
        "kind": "property",
        "start": start,
        "end": start + 2,
        "detail": "I32?",
    }
    assert server.post(f"{PATH}/complete", {**body, "branch": "missing"}).status == 404


def test_schemas_are_completed_from_their_own_text(server: HttpServer) -> None:
    text = "node A {} edge E: A -> "
    reply = server.post(f"{PATH}/complete", {"text": text, "offset": len(text), "language": "schema"})
    assert [item["label"] for item in reply.json()["completions"]] == ["A"]


def test_words_are_explained(server: HttpServer) -> None:
    text = "match { $p: Person }"
    reply = server.post(f"{PATH}/hover", {"text": text, "offset": 9})
    assert reply.json() == {"contents": "`$p`: node of type Person", "start": 8, "end": 10}
    assert server.post(f"{PATH}/hover", {"text": text, "offset": 6}).json() == {"contents": None}
    assert server.post(f"{PATH}/hover", {"text": text, "offset": -1}).status == 400
