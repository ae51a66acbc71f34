"""An export can be loaded, and the copy exports the same bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from omnigraph.errors import InputError
from omnigraph.history.snapshot import load_snapshot
from omnigraph.ingest.export import export_lines
from omnigraph.storage import blob_pieces
from omnigraph.values import format_blob
from tests.engine.writes.conftest import World

SCHEMA = """
node Key { k: String @key  note: String? }
node All {
    s: String?  b: Bool?  i: I32?  l: I64?  u: U32?  w: U64?  f: F32?  d: F64?  day: Date?
    at: DateTime?  v: Vector(2)?  blob: Blob?  many: [String]?  days: [Date]?  e: enum(x, y)?
}
edge To: Key -> All { n: I32? }
"""
texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["'", '"', "\\", "%", "\0", "a\nb", "\u202e", "🂡", "'; DROP TABLE x --", "x" * 3_000]
)
singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
records = st.fixed_dictionaries(
    {},
    optional={
        "s": texts,
        "b": st.booleans(),
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": st.integers(-(2**63), 2**63 - 1),
        "u": st.integers(0, 2**32 - 1),
        "w": st.integers(0, 2**64 - 1),
        "f": singles,
        "d": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70),
        "day": st.integers(-719162, 2932896),
        "at": st.integers(-62135596800000, 253402300799999),
        "v": st.lists(singles, min_size=2, max_size=2),
        "blob": st.binary(max_size=20).map(format_blob),
        "many": st.lists(texts, max_size=3),
        "days": st.lists(st.integers(-9, 9), max_size=3),
        "e": st.sampled_from(["x", "y"]),
    },
)


def exported(world: World, types: list[str] | None = None) -> bytes:
    return b"".join(export_lines(load_snapshot(world.line.store, world.line), types))


def test_export_lists_nodes_first_and_sorts_tables_by_id(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_pieces, "_PIECE_ROWS", 2)
    world.do('insert User { login: "abe", joined: datetime("1970-01-01T00:00:01Z") }')
    world.do('update User set { age: 31 } where login = "ann"')
    records = [orjson.loads(one) for one in exported(world).splitlines()]
    assert [one.get("type") or one["edge"] for one in records] == ["User"] * 3 + ["Follows"]
    assert [one["data"]["id"] for one in records[:3]] == ["abe", "ann", "bob"]
    assert records[0]["data"] == {
        "id": "abe", "login": "abe", "joined": 1000, "mail": None, "age": None, "role": None,
        "bio": None, "score": None, "pic": None,
    }  # fmt: skip
    assert exported(world, ["Follows"]) == exported(world).splitlines(keepends=True)[-1]
    with pytest.raises(InputError, match="unknown type 'Nope'"):
        exported(world, ["Nope"])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, World]:
    where = tmp_path_factory.mktemp("pair")
    return World(where / "a", SCHEMA, b""), World(where / "b", SCHEMA, b"")


@settings(max_examples=15, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(
    keys=st.lists(texts.filter(bool), min_size=1, max_size=4, unique=True),
    rows=st.lists(records, min_size=1, max_size=5),
)
def test_the_copy_exports_the_same_bytes(
    pair: tuple[World, World], keys: list[str], rows: list[dict[str, Any]]
) -> None:
    source, copy = pair
    ids = [f"{n}{'é' * (n % 2)}" for n in range(len(rows))]
    data: list[dict[str, Any]] = [{"type": "Key", "data": {"k": k, "note": k}} for k in keys]
    data += [{"type": "All", "data": {"id": i, **r}} for i, r in zip(ids, rows, strict=True)]
    data += [{"edge": "To", "from": k, "to": ids[0], "data": {"n": n}} for n, k in enumerate(keys)]
    lines = b"\n".join(orjson.dumps(_shown(one)) for one in data)
    source.load(lines, "overwrite")
    first = exported(source)
    copy.load(first, "overwrite")
    assert exported(copy) == first
    assert sorted(source.ids("node:Key"), key=str.encode) == sorted(keys, key=str.encode)


def _shown(one: dict[str, Any]) -> dict[str, Any]:
    """Integers that JSON writers cannot hold are written as floats."""
    data = one["data"]
    if isinstance(data.get("d"), int):
        data["d"] = float(data["d"])
    return one


def test_an_empty_graph_exports_nothing(make: Callable[[str], World], tmp_path: Path) -> None:
    world = make(SCHEMA)
    assert exported(world) == b""
    path = tmp_path / "empty.ndjson"
    path.write_bytes(b"")
    assert world.load(path).commit is None


def test_dates_are_exported_as_iso_text_on_request(make: Callable[[str], World]) -> None:
    world = make("node Day { on: Date @key  at: DateTime?  more: [Date]? }")
    day = {"on": "2024-01-31", "at": "2024-01-31T12:00:00.250Z", "more": ["1969-12-31"]}
    world.load([{"type": "Day", "data": day}, {"type": "Day", "data": {"on": 0}}])
    plain = list(world.graph.export())
    texts = list(world.graph.export(iso_dates=True))
    assert orjson.loads(texts[1])["data"]["on"] == "2024-01-31"
    assert orjson.loads(texts[1])["data"]["more"] == ["1969-12-31"]
    assert orjson.loads(plain[1])["data"]["on"] == 19753
    world.load(b"".join(texts), "overwrite")
    assert list(world.graph.export()) == plain
