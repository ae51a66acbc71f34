"""Requests that fail, each expressed for the Python API, for the command line and over HTTP.

They share one graph, and none of them changes it. This module sends nothing.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import omnigraph
from omnigraph import Graph

SCHEMA = """
node Person { name: String @key  age: I32?  mail: String? @unique  @range(age, 0..150) }
node Doc { slug: String @key  body: Blob? }
edge Knows: Person -> Person { since: I32? }
"""
GRAPH = "/graphs/default"
PEOPLE = "match { $p: Person } return { $p.name, $p.age }"
ADD = "query add($n: String) { insert Person { name: $n } }"
SET = 'query set($a: I32) { update Person set { age: $a } where name = "ada" }'
MISSING_COMMIT = "01AAAAAAAAAAAAAAAAAAAAAAAA"
OUTSIDE_URI = "s3://key:secret@bucket/x?sig=abc"
ALLOWED_BASE = "file:///srv/omnigraph-tests"  # allowed for external blobs, but it does not exist


@dataclass(frozen=True)
class Request:
    """An HTTP request below the graph."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Provocation:
    """How to provoke one error: a call, the arguments of a command (`GRAPH` and files by name), and a request."""

    error: str
    call: Callable[[Graph], object]
    command: tuple[str, ...]
    request: Request


def create_graph(root: str) -> Graph:
    """A graph with two people, a document, and two branches in conflict."""
    graph = omnigraph.init(root, SCHEMA, durability="os")
    graph.insert("Person", {"name": "ada", "age": 36, "mail": "ada@x"}, {"name": "bob"})
    graph.insert("Doc", {"slug": "d", "body": b"0123"})
    for branch, age in (("ours", 1), ("theirs", 2)):
        graph.branches.create(branch).mutate(SET, a=age)
    return graph


def _query(text: str, **params: Any) -> tuple[Callable[[Graph], object], tuple[str, ...], Request]:
    """The three forms of a query."""
    return (
        lambda graph: graph.query(text, **params),
        ("query", "GRAPH", "-e", text, "--params", json.dumps(params)),
        Request("POST", "/query", {"query": text, "params": params}),
    )


def _mutation(text: str, **params: Any) -> tuple[Callable[[Graph], object], tuple[str, ...], Request]:
    """The three forms of a mutation."""
    return (
        lambda graph: graph.mutate(text, **params),
        ("mutate", "GRAPH", "-e", text, "--params", json.dumps(params)),
        Request("POST", "/mutate", {"query": text, "params": params}),
    )


def _load(data: str, mode: str = "append") -> tuple[Callable[[Graph], object], tuple[str, ...], Request]:
    """The three forms of a load."""
    return (
        lambda graph: graph.load(data.encode(), mode=mode),
        ("load", "GRAPH", "--data", f"file.ndjson={data}", "--mode", mode),
        Request("POST", f"/load/ndjson?mode={mode}", data.encode(), {"Content-Type": "application/x-ndjson"}),
    )


def _schema(text: str) -> tuple[Callable[[Graph], object], tuple[str, ...], Request]:
    """The three forms of a schema change."""
    return (
        lambda graph: graph.schema.apply(text),
        ("schema", "apply", "GRAPH", "--schema", f"file.pg={text}", "--yes"),
        Request("POST", "/schema/apply", {"schema_source": text}),
    )


def _document(body: str) -> str:
    return json.dumps({"type": "Doc", "data": {"slug": "e", "body": body}}) + "\n"


def _person(**values: Any) -> str:
    return json.dumps({"type": "Person", "data": values}) + "\n"


_OVERFLOW = "match { $p: Person } return { 9223372036854775807 + $p.age as n }"
_MALFORMED_CURSOR = "not-a-cursor"

PROVOCATIONS = [
    Provocation("ParseError", *_query("match {")),
    Provocation("TypeCheckError", *_query("match { $p: Person } return { $p.nmae }")),
    Provocation(
        "ParameterError", *_query("query q($n: String) { match { $p: Person  $p.name = $n } return { $p.name } }")
    ),
    Provocation("ExpressionError", *_query(_OVERFLOW)),
    Provocation("CatalogError", *_schema("node A {} node A {}")),
    Provocation(
        "SchemaUnsupported", *_schema(SCHEMA.replace("age: I32?", "age: Bool?").replace("@range(age, 0..150)", ""))
    ),
    Provocation("SchemaViolation", *_schema(SCHEMA.replace("mail: String?", "mail: String"))),
    Provocation("UniqueViolation", *_load(_person(name="u1", mail="u@x") + _person(name="u2", mail="u@x"))),
    Provocation("ConstraintViolation", *_load(_person(name="old", age=200))),
    Provocation("PropertyValueError", *_load(_person(name="x", age="old"))),
    Provocation("InputError", *_load("{broken\n")),
    Provocation("KeyConflict", *_mutation(ADD, n="ada")),
    Provocation("ExternalBlobPolicyError", *_load(_document(OUTSIDE_URI))),
    Provocation("ExternalBlobSourceError", *_load(_document(f"{ALLOWED_BASE}/missing"))),
    Provocation(
        "BranchNotFound",
        lambda graph: graph.query(PEOPLE, branch="nowhere"),
        ("query", "GRAPH", "-e", PEOPLE, "--branch", "nowhere"),
        Request("POST", "/query", {"query": PEOPLE, "branch": "nowhere"}),
    ),
    Provocation(
        "SnapshotNotFound",
        lambda graph: graph.revisions.commit(MISSING_COMMIT),
        ("commit", "show", "GRAPH", MISSING_COMMIT),
        Request("GET", f"/commits/{MISSING_COMMIT}"),
    ),
    Provocation(
        "EntityNotFound",
        lambda graph: graph.blob("Doc", "nobody", "body").read(),
        ("blob", "get", "GRAPH", "Doc", "nobody", "body"),
        Request("GET", "/blob?entity=node&type=Doc&id=nobody&property=body"),
    ),
    Provocation(
        "NotFound",
        lambda graph: graph.tags.delete("nothing"),
        ("tag", "delete", "GRAPH", "nothing"),
        Request("DELETE", "/tags/nothing"),
    ),
    Provocation(
        "MergeConflict",
        lambda graph: graph.merge("theirs", into="ours"),
        ("branch", "merge", "GRAPH", "theirs", "--into", "ours"),
        Request("POST", "/branches/merge", {"source": "theirs", "target": "ours"}),
    ),
    Provocation(
        "AlreadyExists",
        lambda graph: graph.branches.create("ours"),
        ("branch", "create", "GRAPH", "ours"),
        Request("POST", "/branches", {"name": "ours"}),
    ),
    Provocation(
        "BranchBusy",
        lambda graph: graph.branches.delete("ours"),
        ("branch", "delete", "GRAPH", "ours", "--yes"),
        Request("DELETE", "/branches/ours"),
    ),
    Provocation(
        "PreconditionFailed",
        lambda graph: graph.mutate(ADD, n="new", if_commit=MISSING_COMMIT),
        ("mutate", "GRAPH", "-e", ADD, "--params", '{"n": "new"}', "--if-commit", MISSING_COMMIT),
        Request(
            "POST",
            "/mutate/if-graph-commit",
            {"query": ADD, "params": {"n": "new"}},
            {"Omnigraph-If-Graph-Commit": MISSING_COMMIT},
        ),
    ),
    Provocation(
        "BlobPreconditionFailed",
        lambda graph: graph.put_blob("Doc", "d", "body", b"new", if_match='"other"'),
        ("blob", "put", "GRAPH", "Doc", "d", "body", "file.bin=new", "--if-match", '"other"'),
        Request(
            "PUT",
            "/blob?type=Doc&id=d&property=body",
            b"new",
            {"If-Match": '"other"', "Content-Type": "application/octet-stream"},
        ),
    ),
    Provocation(
        "RangeNotSatisfiable",
        lambda graph: graph.blob("Doc", "d", "body").read(9, 10),
        ("blob", "get", "GRAPH", "Doc", "d", "body", "--range", "9-10"),
        Request("GET", "/blob?entity=node&type=Doc&id=d&property=body", headers={"Range": "bytes=9-9"}),
    ),
    Provocation(
        "ChangeCursorRejected",
        lambda graph: graph.changes.feed(cursor=_MALFORMED_CURSOR),
        ("changes", "poll", "GRAPH", "--cursor", _MALFORMED_CURSOR),
        Request("GET", f"/changes?cursor={_MALFORMED_CURSOR}"),
    ),
    Provocation(
        "QueryTimeout",
        lambda graph: graph.query(PEOPLE, timeout=1e-9),
        ("query", "GRAPH", "-e", PEOPLE, "--timeout", "1e-9"),
        Request("POST", "/query", {"query": PEOPLE, "timeout": 1e-9}),
    ),
]
