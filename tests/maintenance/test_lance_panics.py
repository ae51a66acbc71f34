"""Bytes that make Lance panic still produce a typed error."""

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.failures import as_storage_errors, panics_as_errors
from tests.maintenance.conftest import again
from tests.maintenance.test_check_damage import FULL, PERSON, data_file, look, version_file


class PanicException(BaseException):
    """What Lance raises; its own cannot be made here."""


def spoil_footer(path: Path) -> None:
    """Say that the columns of a data file are described where no file has bytes."""
    body = bytearray(path.read_bytes())
    body[-34] ^= 0x55
    path.write_bytes(bytes(body))


def spoil_type(path: Path) -> None:
    """Give a column a type that does not exist."""
    body = path.read_bytes()
    assert b"string" in body
    path.write_bytes(body.replace(b"string", b"strinG", 1))


def test_check_names_a_data_file_that_makes_lance_panic(graph: Graph) -> None:
    path = data_file(graph)
    spoil_footer(path)
    data_file(graph, "node:City").unlink()
    found = look(graph)
    told = {one.name: one.type_key for one in found.damage if one.branch == "main"}
    assert told[str(path.relative_to(graph.uri))] == PERSON
    assert "node:City" in told.values(), "the other files are looked at"
    assert found.readable["main"] is None or found.readable["main"] != graph.head.id


def test_check_names_a_version_that_makes_lance_panic(graph: Graph) -> None:
    path = version_file(graph)
    spoil_type(path)
    told = [one for one in look(graph).damage if one.branch == "main"]
    assert [(one.kind, one.name) for one in told] == [("version", str(path.relative_to(graph.uri)))]


@pytest.mark.parametrize(
    "verb", ["query", "insert", *(pytest.param(one, marks=FULL) for one in ("export", "ensure_indices"))]
)
def test_readers_and_writers_get_a_typed_error(graph: Graph, verb: str) -> None:
    spoil_type(version_file(graph))
    fresh = again(graph)
    asked: dict[str, Callable[[], object]] = {
        "query": lambda: fresh.query("match { $p: Person } return { $p.name }"),
        "export": lambda: list(fresh.export()),
        "insert": lambda: fresh.insert("Person", {"name": "zoe"}),
        "ensure_indices": fresh.maintenance.ensure_indices,
    }
    with pytest.raises(OmnigraphError) as told:
        asked[verb]()
    assert isinstance(told.value, StorageError)
    assert told.value.effect == "none"
    assert "omnigraph check" in (told.value.hint or "")


def test_only_panics_are_turned_into_errors() -> None:
    for other in (KeyboardInterrupt, SystemExit, GeneratorExit, ValueError):
        with pytest.raises(other), panics_as_errors():
            raise other
    with pytest.raises(StorageError, match="decoded: range start must") as told, panics_as_errors():
        raise PanicException("range start must not be greater\nthan its end")
    assert told.value.effect == "none"
    with pytest.raises(StorageError) as told, as_storage_errors("unknown"):
        raise PanicException("in the midst of a write")
    assert told.value.effect == "unknown"
