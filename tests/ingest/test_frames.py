"""Records in Python and Arrow form become the same rows as text."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import InputError, KeyConflict, OmnigraphError, PropertyValueError
from tests.engine.writes.conftest import World

UTC = datetime.UTC
NAIVE = datetime.datetime(2024, 1, 1)


@dataclass
class User:
    login: str
    age: int | None = None


@dataclass
class Follows:
    src: str
    dst: str
    since: datetime.date | None = None


def test_dataclass_name_is_the_type_name(world: World) -> None:
    done = world.load([User("cyd", 3), Follows("cyd", "ann", datetime.date(2024, 1, 1))])
    assert (done.nodes, done.edges) == ({"User": 1}, {"Follows": 1})
    assert world.user("cyd")["age"] == 3
    assert {one["since"] for one in world.rows("edge:Follows")} == {None, datetime.date(2024, 1, 1)}


def test_dicts_and_dataclasses_are_loaded_by_type(world: World) -> None:
    world.load({"User": [{"login": "cyd"}, User("dan", 4)], "follows": [{"from": "cyd", "to": "dan"}]})
    assert world.ids("node:User") == ["ann", "bob", "cyd", "dan"]


@pytest.mark.parametrize(
    "encode",
    [
        lambda array: array.cast(pa.large_string()),
        lambda array: array.cast(pa.string_view()),
        lambda array: array.dictionary_encode(),
        lambda array: array.cast(pa.large_string()).dictionary_encode(),
    ],
    ids=["large strings", "string views", "dictionary", "dictionary of large strings"],
)
def test_endpoints_and_ids_can_have_any_string_type(world: World, encode: Callable[[pa.Array], pa.Array]) -> None:
    columns = {"id": ["e1", None], "src": ["cyd", "dan"], "dst": ["dan", "cyd"]}
    world.load({"User": [{"login": "cyd"}, {"login": "dan"}]})
    world.load({"Follows": pa.table({name: encode(pa.array(values)) for name, values in columns.items()})})
    endpoints = {(row["src"], row["dst"]): row["id"] for row in world.rows("edge:Follows")}
    assert endpoints["cyd", "dan"] == "e1"
    assert len(endpoints["dan", "cyd"]) == 26


class Frame:
    """A frame of some other library: it only speaks Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class OldFrame:
    """One that only knows `to_arrow`."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        return self._table


@pytest.mark.parametrize("wrap", [lambda t: t, Frame, OldFrame])
def test_columns_are_cast_only_losslessly(world: World, wrap: Callable[[pa.Table], Any]) -> None:
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    users = pa.table(
        {
            "login": pa.array(["cyd", "dan"], pa.large_string()),
            "age": pa.array([3, None], pa.int64()),
            "role": pa.array(["admin", None]).dictionary_encode(),
            "score": pa.array([1, 2], pa.int8()),
            "joined": pa.array([moment, None], pa.timestamp("us", "Europe/Paris")),
            "pic": pa.array([b"", None], pa.binary()),
        }
    )
    events = pa.table(
        {"title": ["t"], "at": ["2024-01-01T00:00:00Z"], "v": pa.array([[1.0, 2.0]], pa.list_(pa.float64()))}
    )
    assert world.load({"User": wrap(users), "Event": wrap(events)}).total == 3
    cyd, dan = world.user("cyd"), world.user("dan")
    assert (cyd["age"], cyd["role"], cyd["score"], cyd["pic"]) == (3, "admin", 1.0, b"")
    assert cyd["joined"] == datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)
    assert (dan["age"], dan["joined"], dan["pic"]) == (None, None, None)
    assert world.rows("node:Event")[0]["v"] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({"login": ["a", "b"], "age": [1, 2**40]}, PropertyValueError, "line 2: .*User.age"),
        ({"login": ["a", "b"], "age": [1.0, 1.5]}, PropertyValueError, "User.age"),
        ({"login": ["a", "b"], "age": ["1", "2"]}, PropertyValueError, "User.age"),
        ({"login": ["a", None]}, PropertyValueError, "line 2: .*User.login"),
        ({"login": ["a", "b"], "nick": [1, 2]}, InputError, "'nick'"),
        ({"login": ["a", "b"], "score": [1.0, float("nan")]}, PropertyValueError, "finite"),
        ({"login": ["a", "b"], "id": ["a", "x"]}, InputError, "line 2: id 'x'"),
        ({"login": ["a", "ann"]}, KeyConflict, "ann"),
        ({"login": ["a", "b"], "joined": [None, NAIVE]}, PropertyValueError, "joined"),
    ],
)  # fmt: skip
def test_columns_of_wrong_types_are_rejected(
    quiet: World, columns: dict[str, list[Any]], error: type[OmnigraphError], words: str
) -> None:
    before = quiet.head
    with pytest.raises(error, match=words):
        quiet.load({"User": pa.table(columns)})
    assert quiet.head == before


@pytest.mark.parametrize("data", [pa.table({"a": [1]}), 7, {"Nobody": []}, [7], {"User": [7]}])
def test_unsupported_inputs_are_rejected(quiet: World, data: Any) -> None:
    with pytest.raises(InputError):
        quiet.load(data)


def test_edge_tables_accept_both_endpoint_column_names(world: World) -> None:
    world.load({"Follows": pa.table({"from": ["bob"], "to": ["ann"]})})
    with pytest.raises(InputError, match="'from' and 'src' name the same endpoint"):
        world.load({"Follows": pa.table({"from": ["bob"], "src": ["x"], "to": ["ann"]})})
    with pytest.raises(InputError, match="'to' must be a string, got nothing"):
        world.load({"Follows": pa.table({"src": ["bob"]})})


def test_arrow_table_has_no_row_limit(make: Callable[[str], World]) -> None:
    world = make("node N { n: I64 }  edge E: N -> N")
    count = 30_000
    ids = [f"i{n}" for n in range(count)]
    nodes = pa.table({"id": ids, "n": list(range(count))})
    edges = pa.table({"src": ids, "dst": ids[::-1]})
    done = world.load({"N": nodes, "E": edges})
    assert (done.nodes, done.edges) == ({"N": count}, {"E": count})
    with pytest.raises(KeyConflict, match="i29999"):
        world.load({"N": nodes.slice(count - 1)})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_other_libraries_are_loaded(world: World, library: str) -> None:
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"login": ["cyd", "dan"], "age": [3, None]})
    world.load({"User": frame})
    assert (world.user("cyd")["age"], world.user("dan")["age"]) == (3, None)
