"""Every kind of Python value in a property of every type: a server accepts and rejects what an embedded graph does."""

import io
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ExternalBlobPolicyError, OmnigraphError
from tests.rig.thread_server import ThreadServer

TYPES = {
    "text": "String",
    "mood": "enum(good, bad)",
    "flag": "Bool",
    "small": "I32",
    "big": "I64",
    "count": "U32",
    "huge": "U64",
    "single": "F32",
    "double": "F64",
    "day": "Date",
    "moment": "DateTime",
    "body": "Blob",
    "words": "[String]",
    "numbers": "[F64]",
    "days": "[Date]",
    "place": "Vector(2)",
}
SCHEMA = "node Item { name: String @key " + " ".join(f"{name}: {text}?" for name, text in TYPES.items()) + " }"
NOON = datetime(2024, 5, 1, 12)


class Color(Enum):
    RED = "red"
    FIRST = date(2020, 1, 1)


@dataclass
class Point:
    x: int


def make_values(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return functions that create a value, because a file can be read only once."""
    file = folder / "content.bin"
    file.write_bytes(b"content")
    plain: list[Any] = [
        *(None, True, False, 0, 5, -1, 2**31, 2**53 + 1, 2**63, 2**64, 2**200, 10**5000, 1.0, 1.5, 1e300, -0.0),
        *(math.nan, math.inf, -math.inf, "x", "", "good", "5", "NaN", "2020-01-01", "base64:eA==", "a\ud800b"),
        *(b"x", b"", bytearray(b"x"), memoryview(b"x"), date(2020, 1, 1), NOON, NOON.replace(tzinfo=UTC)),
        *(time(12), timedelta(days=1), Decimal("1.5"), UUID(int=7), object, Color.RED, Color.FIRST, Point(1)),
        *([], ["x", "y"], [1.0, 2.0], ("x",), (1.0, 2.0), {"x"}, frozenset({"x"}), {"a": 1}, {1: 2}, {"a": b"x"}),
        *([math.nan, 1.0], [1.0, math.inf], ["x", b"x"], ["x", None], [date(2020, 1, 1)], [{"x"}], [["x"]]),
        *(1 + 2j, range(2), [NOON]),
        *(np.int32(5), np.int64(5), np.float32(1.5), np.float64(1.5), np.float64("nan"), np.bool_(True), np.str_("x")),
        *(
            np.array([1.0, 2.0]),
            np.array([1.0, np.nan]),
            np.array(["x", "y"]),
            np.array(5),
            np.datetime64("2020-01-01"),
        ),
        *(pa.scalar(5), pa.scalar("x"), pa.scalar(1.5), pa.scalar(b"x"), pa.scalar(date(2020, 1, 1)), pa.scalar(NOON)),
        *(pa.scalar(None), pa.scalar(math.nan), pa.array([1.0, 2.0]), pa.array(["x"]), pa.scalar([1.0, 2.0])),
        *(file, folder / "missing.bin", folder),
    ]
    files: dict[str, Callable[[], Any]] = {
        "binary file": partial(file.open, "rb"),
        "text file": file.open,
        "memory file": partial(io.BytesIO, b"memory"),
    }
    return {f"{number:02}-{type(value).__name__}": partial(_same, value) for number, value in enumerate(plain)} | files


def _same(value: Any) -> Any:
    return value


def write_key() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"k{number}"


@dataclass
class Hosts:
    """The same graph twice, and the keys of its nodes."""

    embedded: Graph
    remote: Graph
    keys: Iterator[str]

    def compare(self, run: "Entry", name: str, make_value: Callable[[], Any]) -> str | None:
        """Return how the two hosts differ, or None."""
        key = next(self.keys)
        outcomes = [describe_outcome(run, graph, key, name, make_value()) for graph in (self.embedded, self.remote)]
        return None if outcomes[0] == outcomes[1] else f"\n  embedded: {outcomes[0]}\n  remote:   {outcomes[1]}"


Entry = Callable[[Graph, str, str, Any], Any]


def describe_outcome(run: Entry, graph: Graph, key: str, name: str, value: Any) -> Any:
    try:
        answer = run(graph, key, name, value)
    except OmnigraphError as error:
        if isinstance(error, ExternalBlobPolicyError):  # a server does not repeat the location
            return type(error).__name__, error.hint
        if "cannot read" in error.message or "binary mode" in error.message:
            return type(error).__name__, error.details[
                "reason"
            ]  # a client reads files before it sends a query or a load
        facts = {fact: text for fact, text in error.details.items() if fact not in ("commit_id",)}
        return type(error).__name__, error.message, error.hint, facts
    except Exception as error:
        return type(error).__name__, str(error)
    finally:
        with suppress(AttributeError):
            value.close()
    return "accepted", repr(answer)


def read_back(graph: Graph, key: str, name: str) -> Any:
    if name == "body":
        with suppress(omnigraph.errors.NotFound):
            return graph.blob("Item", key, name).read()
        return None
    node = graph.node("Item", key)
    return None if node is None else node[name]


def insert(graph: Graph, key: str, name: str, value: Any) -> Any:
    graph.insert("Item", {"name": key, name: value})
    return read_back(graph, key, name)


def upsert(graph: Graph, key: str, name: str, value: Any) -> Any:
    graph.upsert("Item", {"name": "base", name: value})
    return read_back(graph, "base", name)


def patch(graph: Graph, key: str, name: str, value: Any) -> Any:
    graph.patch("Item", {"name": "base", name: value})
    return read_back(graph, "base", name)


def update(graph: Graph, key: str, name: str, value: Any) -> Any:
    graph.update("Item", where="name = 'base'", set={name: value})
    return read_back(graph, "base", name)


def mutate(graph: Graph, key: str, name: str, value: Any) -> Any:
    text = f'query change($v: {declared(name)}?) {{ update Item set {{ {name}: $v }} where name = "base" }}'
    graph.mutate(text, v=value)
    return read_back(graph, "base", name)


def mutate_body(graph: Graph, key: str, name: str, value: Any) -> Any:
    graph.mutate(f"insert Item {{ name: $key, {name}: $v }}", key=key, v=value)
    return read_back(graph, key, name)


def query(graph: Graph, key: str, name: str, value: Any) -> Any:
    text = f"query find($v: {declared(name)}) {{ match {{ $i: Item  $i.{name} = $v }} return {{ $i.name }} }}"
    graph.query(text, v=value)  # rows depend on what the other entries wrote, so only errors are compared


def query_body(graph: Graph, key: str, name: str, value: Any) -> Any:
    graph.query(f"match {{ $i: Item  $i.{name} = $v }} return {{ $i.name }}", v=value)


def load(graph: Graph, key: str, name: str, value: Any) -> Any:
    graph.load({"Item": [{"name": key, name: value}]}, mode="append")
    return read_back(graph, key, name)


def load_lines(graph: Graph, key: str, name: str, value: Any) -> Any:
    graph.load([{"type": "Item", "data": {"name": key, name: value}}], mode="merge")
    return read_back(graph, key, name)


def report(graph: Graph, key: str, name: str, value: Any) -> Any:
    return graph.load({"Item": [{"name": key}, {"name": f"{key}x", name: value}]}, mode="append", on_error="report")


def transact(work: Callable[[Any, str, str, Any], None]) -> Entry:
    def run(graph: Graph, key: str, name: str, value: Any) -> Any:
        with graph.transaction() as transaction:
            transaction.insert("Item", {"name": key})
            work(transaction, key, name, value)
        return read_back(graph, key, name)

    return run


def declared(name: str) -> str:
    return "String" if name == "mood" else TYPES[name]


ENTRIES: dict[str, Entry] = {
    "insert": insert,
    "upsert": upsert,
    "patch": patch,
    "update": update,
    "mutate": mutate,
    "mutate_body": mutate_body,
    "query": query,
    "query_body": query_body,
    "load": load,
    "load_lines": load_lines,
    "transaction.upsert": transact(lambda tx, key, name, value: tx.upsert("Item", {"name": key, name: value})),
    "transaction.insert": transact(lambda tx, key, name, value: tx.insert("Item", {"name": f"{key}i", name: value})),
    "transaction.load": transact(
        lambda tx, key, name, value: tx.load({"Item": [{"name": key, name: value}]}, mode="merge")
    ),
    "transaction.load_lines": transact(
        lambda tx, key, name, value: tx.load([{"type": "Item", "data": {"name": key, name: value}}], mode="merge")
    ),
    "transaction.update": transact(
        lambda tx, key, name, value: tx.update("Item", where="name = $key", set={name: value}, key=key)
    ),
    "transaction.mutate": transact(
        lambda tx, key, name, value: tx.mutate(
            f"query set($v: {declared(name)}?, $key: String) {{ update Item set {{ {name}: $v }} where name = $key }}",
            v=value,
            key=key,
        )
    ),
    "transaction.query": transact(
        lambda tx, key, name, value: tx.query(
            f"query find($v: {declared(name)}) {{ match {{ $i: Item  $i.{name} = $v }} return {{ $i.name }} }}", v=value
        )
    ),
}
QUICK_NAMES = ("text", "body")


@pytest.fixture(scope="module")
def hosts(graph_server: ThreadServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("values")
    for name in ("embedded", "remote"):
        with omnigraph.init(folder / name, SCHEMA, durability="os") as graph:
            graph.insert("Item", {"name": "base"})
    embedded = omnigraph.open(folder / "embedded", durability="os")
    with omnigraph.open(graph_server.serve(folder / "remote")) as remote:
        yield Hosts(embedded, remote, write_key())
    embedded.close()
    graph_server.forget(remote.uri)


def compare_all(hosts: Hosts, entry: str, names: Any, folder: Path) -> list[str]:
    values = make_values(folder)
    return [
        f"{TYPES[name]} {label}: {difference}"
        for name in names
        for label, make_value in values.items()
        if (difference := hosts.compare(ENTRIES[entry], name, make_value)) is not None
    ]


@pytest.mark.parametrize("entry", ["load", "mutate"])
def test_values_have_the_same_outcome_on_both_hosts(hosts: Hosts, entry: str, tmp_path: Path) -> None:
    different = compare_all(hosts, entry, QUICK_NAMES, tmp_path)
    assert not different, "\n".join(different)


@pytest.mark.parametrize("entry", ENTRIES)
def test_bytes_never_become_text(hosts: Hosts, entry: str) -> None:
    for value in (b"x", math.nan, date(2020, 1, 1), {"x"}, Path("x")):
        for name in ("text", "words"):
            assert hosts.compare(ENTRIES[entry], name, partial(_same, value)) is None
            assert describe_outcome(ENTRIES[entry], hosts.remote, next(hosts.keys), name, value)[0] != "accepted"


@pytest.mark.full
@pytest.mark.parametrize("entry", ENTRIES)
def test_values_have_the_same_outcome_in_every_call(hosts: Hosts, entry: str, tmp_path: Path) -> None:
    names = [name for name in TYPES if name != "body" or "query" not in entry]  # no query takes a blob
    different = compare_all(hosts, entry, names, tmp_path)
    assert not different, "\n".join(different)
