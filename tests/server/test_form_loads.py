"""Loads of several files in the parts of a form, as other programs send them."""

import gzip
import json
from collections.abc import Mapping
from typing import Any

from tests.rig.http_server import HttpServer, Reply

GRAPH = "/graphs/default"
PATH = f"{GRAPH}/load/files"
Part = tuple[str, str | None, str | None, bytes]  # name, file name, media type, content


def write_form(parts: list[Part], boundary: str = "x-y-z") -> bytes:
    body = b"a preamble, which is ignored\r\n"
    for name, file_name, media_type, content in parts:
        file = "" if file_name is None else f'; filename="{file_name}"'
        kind = "" if media_type is None else f"Content-Type: {media_type}\r\n"
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n{kind}\r\n'.encode()
        body += content + b"\r\n"
    return body + f"--{boundary}--\r\n".encode()


def send(
    server: HttpServer, branch: str, body: bytes, headers: Mapping[str, str] | None = None, query: str = "mode=append"
) -> Reply:
    media_type = {"Content-Type": 'multipart/form-data; boundary="x-y-z"'}
    return server.post(f"{PATH}?{query}&branch={branch}", body, headers=media_type | dict(headers or {}))


def ages(server: HttpServer, branch: str) -> dict[str, Any]:
    query = "match { $p: Person } return { $p.name, $p.age }"
    rows = server.post(f"{GRAPH}/query", {"query": query, "branch": branch}).json()["rows"]
    return {row["p.name"]: row["p.age"] for row in rows}


def test_files_of_several_formats_are_one_commit(server: HttpServer, branch: str) -> None:
    options = {"csv": {"delimiter": ";", "null": ["-"]}, "mapping": {"Person": {"years": "age"}}}
    reply = send(
        server,
        branch,
        write_form(
            [
                ("options", None, "application/json", json.dumps(options).encode()),
                ("Person", "people.csv", "application/octet-stream", b"name;years\r\nx1;7\r\nx2;-\r\n"),
                ("Person", "more.csv.gz", None, gzip.compress(b"name;years\nx3;8\n")),
                ("Person", "typed.ndjson", None, b'{"name": "x4\\r\\n--x-y-z", "years": 9}'),
                ("", "rest.ndjson", "application/x-ndjson", b'{"edge": "Knows", "from": "x1", "to": "ada"}\n'),
            ]
        ),
    )
    document = reply.json()
    assert reply.status == 200, document
    assert document["nodes"] == [{"name": "Person", "entities_loaded": 4}]
    assert document["edges"] == [{"name": "Knows", "entities_loaded": 1}]
    loaded = {name: age for name, age in ages(server, branch).items() if name.startswith("x")}
    assert loaded == {"x1": 7, "x2": None, "x3": 8, "x4\r\n--x-y-z": 9}


def test_problems_name_the_file_and_the_line(server: HttpServer, branch: str) -> None:
    parts: list[Part] = [
        ("Person", "folder/a.csv", "text/csv", b"name,age\ny1,1\n"),
        ("Person", "s3://bucket/b.csv", "text/csv", b"name,age\ny2,old\ny3,3\ny4,x\n"),
    ]
    one = send(server, branch, write_form(parts)).json()
    assert one["error"].startswith("b.csv: line 2: property 'Person.age'")
    listed = send(server, branch, write_form(parts), query="mode=append&max_errors=1000").json()["details"]
    assert [(problem["file"], problem["line"]) for problem in listed["problems"]] == [("b.csv", 2), ("b.csv", 4)]
    assert "y1" not in ages(server, branch)


def test_repeated_form_with_the_same_key_is_applied_once(server: HttpServer, branch: str) -> None:
    keyed = {"Idempotency-Key": "form-1"}
    for content, status in ((b"name\nz1\n", 200), (b"name\nz1\n", 200), (b"name\nz2\n", 400)):
        reply = send(server, branch, write_form([("Person", "p.csv", "text/csv", content)]), keyed)
        assert reply.status == status
    assert {"z1", "z2"} & set(ages(server, branch)) == {"z1"}


MALFORMED = [
    (b"", "the final boundary is missing"),
    (b"--x-y-z\r\n", "the final boundary is missing"),
    (write_form([])[:-6], "the final boundary is missing"),
    (b"--x-y-z\r\nContent-Type: text/csv\r\n\r\na\r\n--x-y-z--", "no `Content-Disposition: form-data`"),
    (b"--x-y-z\r\nname\r\n--x-y-z--", "no blank line after its headers"),
    (write_form([]), "there are no files to load"),
    (write_form([("options", None, None, b"{")]), "not valid JSON"),
    (write_form([("options", None, None, b'{"colour": 1}')]), "invalid request body"),
    (write_form([("", "x.csv", "text/csv", b"name\nx\n")]), "requires a type name"),
    (write_form([("Nobody", "x.csv", "text/csv", b"name\nx\n")]), "Nobody"),
    (write_form([("Person", "x.parquet", None, b"no parquet")]), "cannot read x.parquet"),
]


def test_malformed_form_is_rejected(server: HttpServer) -> None:
    for body, problem in MALFORMED:
        reply = send(server, "main", body)
        assert (reply.status, problem in reply.json()["error"]) == (400, True), reply.json()


def test_boundary_is_required(server: HttpServer) -> None:
    reply = send(server, "main", write_form([]), {"Content-Type": "multipart/form-data"})
    assert reply.json()["error"] == "the form is malformed: the Content-Type has no boundary"


def test_large_part_is_found_across_the_pieces_that_are_searched(server: HttpServer, branch: str) -> None:
    lines = b"name,bio\n" + b"".join(b"w%d,%s\n" % (number, b"-" * 1000) for number in range(2200))
    reply = send(
        server, branch, write_form([("Person", "a.csv", None, lines), ("Person", "b.csv", None, b"name\nv\n")])
    )
    assert reply.json()["total_entities"] == 2201
