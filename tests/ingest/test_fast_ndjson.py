"""Block parsing yields the same rows and problems as line parsing, or declines."""

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omnigraph.ingest.fast_ndjson import take_block
from omnigraph.ingest.files import cut_blocks, iter_blocks
from omnigraph.ingest.frames import RecordType
from omnigraph.ingest.load_limits import LoadLimits
from omnigraph.ingest.ndjson import read_blocks, read_lines
from omnigraph.ingest.problem import ProblemCollector
from omnigraph.ingest.record_intake import Intake
from omnigraph.lang.schema import compile_schema
from omnigraph.lang.schema.assign_identity import new_identity
from omnigraph.lang.schema.ir import SchemaIR
from omnigraph.lang.schema.type_names import resolve_type
from omnigraph.values.clock_and_ids import is_ulid

SCHEMA = """
node A {
  k: String @key
  s: String?
  i: I32?
  u: U64?
  f: F32?
  d: F64?
  b: Bool?
  on: Date?
  at: DateTime?
  tags: [String]?
  nums: [F64]?
  v: Vector(2)?
  x: Blob?
  n: I64 @default(7)
}
node B { s: String }
node E { z: String? }
edge R: A -> B { w: F64? }
edge S: A -> A
"""
VALUES = [
    "null", "1", "-1", "0", "-0", "1.0", "-0.0", "1e2", "2147483648", "18446744073709551615",
    "9007199254740993", "16777217", "0.1", "1e39", "1e400", "NaN", '"x"', '""', '"\\u0041"',
    '"a\\u0000"', '"\\ud800"', '"é"', "true", "[]", '["a"]', '["a", null]', "[1]", "[1, 2]",
    "[0.5, -0.25]", "[null]", "{}", '"2024-01-31"', '"2024-01-31T10:00:00Z"', "19000",
    '"base64:aGk="', '"aGk="', "01", "'x'", "[1, 2,]",
]  # fmt: skip
MADE = re.compile("[0-9A-Z]{26}")
NAMES = ["k", "s", "i", "u", "f", "d", "b", "on", "at", "tags", "nums", "v", "x", "n", "w", "id"]
WHOLE = [
    "", " ", "{", "{}", "{}{}", "[]", "null", '{"type": "A"}', '{"type": "E"}', '{"type": "Z"}',
    '{"edge": "R"}', '{"edge": "r", "from": "a", "to": "b"}', '{"type": "B", "truncate": true}',
    '{"type": "A", "data": {"k": "a"}, "type": "A"}', '{"type": "A", "data": null}',
    '{"type": "A", "edge": null, "data": {"k": "a"}}', '{"data": {"s": "x"}, "type": "B"}',
    '{"type": "B", "data": {"s": "a"}} {"type": "B", "data": {"s": "b"}}',
    '{"type": "B", "data": {"s": "a", "\\u0073": "b"}}', '{"type": "B", "data":',
    '{"s": "a"}}', '{"type":"B","data":{"s":"a"}}\r', ' {"type": "B", "data": {"s": "a"}}',
    '{"edge": "S", "from": "a", "to": "b", "data": {"id": "e"}}',
    '{"edge": "S", "from": "a", "to": 5}', '{"edge": "S", "from": "a", "to": null}',
    '{"type": "E", "data": {"id": "e"}}', '{"type": "E", "data": {"id": ""}}',
    '{"edge": "R", "from": "a", "to": "b", "data": null}', '{"type": "E", "data": null}',
    '{"type": "B"}', '{"type": "B", "data": {"s": null}}', '\ufeff{}',
]  # fmt: skip


@pytest.fixture(scope="module")
def ir() -> SchemaIR:
    return new_identity(compile_schema(SCHEMA), "test")


def records() -> st.SearchStrategy[str]:
    """Mostly usual records, with something odd here and there."""
    plain = st.sampled_from(VALUES[:1] + VALUES[3:4] + ['"x"', '"y"'])
    members = st.dictionaries(st.sampled_from(NAMES), plain | st.sampled_from(VALUES), max_size=3)
    node = st.builds(lambda k, m: _node({"k": f'"{k}"', **m}), st.integers(0, 9), members)
    text = st.builds(lambda s: f'{{"type":"B","data":{{"s":"{s}"}}}}', st.sampled_from("abc"))
    edge = st.builds(_edge, st.sampled_from(["null", "0.5", "3", '"x"', "-0"]), st.booleans())
    return st.one_of(node, node, text, edge, st.sampled_from(WHOLE))


def _node(members: dict[str, str]) -> str:
    inside = ", ".join(f'"{name}": {value}' for name, value in members.items())
    return f'{{"type": "A", "data": {{{inside}}}}}'


def _edge(weight: str, given: bool) -> str:
    data = f'"w": {weight}' if not given else f'"w": {weight}, "id": "e"'
    return f'{{"edge":"R","from":"a","to":"b","data":{{{data}}}}}'


def seen(ir: SchemaIR, text: bytes, quick: bool, record_type: RecordType | None = None, **limits: Any) -> Any:
    """All that is left of a text: rows, places, counts, problems."""
    problems, made = ProblemCollector(), LoadLimits(**limits)
    intake = Intake(ir, problems, made)
    failed = None
    try:
        if quick:
            rules: Any = {"allow_truncate": True, "report_all": True, "record_type": record_type}
            for _ in read_blocks(intake, [text], first_number=5, **rules):
                pass
        else:
            lines = (one[: made.line_bytes + 1] for one in text.split(b"\n"))
            read_lines(intake, lines, 5, 5, allow_truncate=True, report_all=True, record_type=record_type)
        intake.flush()
    except Exception as error:  # compared below
        failed = (type(error), str(error))
    told = [(p.line, p.type, given_id(p.id), type(p.error), MADE.sub("", p.reason), p.error.hint)
            for p in problems.in_input_order()]  # fmt: skip
    shelves = {
        key: (rows_of(one.all_rows()), one.line_positions().tolist(), one.record_count,
              one.truncated, one.all_ids_generated)
        for key, one in sorted(intake.buffers.items())
    } if failed is None else {}  # fmt: skip
    return shelves, told, failed


def rows_of(rows: pa.Table) -> str:
    """Rows as text, which tells both zeros apart; ids that were made are left out."""
    assert rows["id"].null_count == 0
    shown = [{**one, "id": given_id(one["id"])} for one in rows.to_pylist()]
    return f"{rows.schema}{shown}"


def given_id(entity: str | None) -> str | None:
    return None if entity is None or is_ulid(entity) else entity


@given(st.lists(records(), min_size=1, max_size=6))
def test_block_parsing_equals_line_parsing(ir: SchemaIR, lines: list[str]) -> None:
    text = "\n".join(lines).encode()
    assert seen(ir, text, True) == seen(ir, text, False)


@pytest.mark.parametrize("name", NAMES)
def test_block_parsing_equals_line_parsing_for_every_value(ir: SchemaIR, name: str) -> None:
    usual = _node({"k": '"a"', "d": "0.5"})
    for value in VALUES:
        text = "\n".join([usual, _node({"k": '"b"', name: value}), usual]).encode()
        assert seen(ir, text, True) == seen(ir, text, False)


@pytest.mark.parametrize("line", WHOLE)
def test_unusual_lines_between_usual_ones_are_parsed_alike(ir: SchemaIR, line: str) -> None:
    usual = '{"type":"B","data":{"s":"a"}}'
    for text in (f"{usual}\n{line}\n{usual}", f"{line}\n{line}", f"{usual}\n{line}"):
        assert seen(ir, text.encode(), True) == seen(ir, text.encode(), False)


@pytest.mark.parametrize("text", [b'{"type":"B","data":{"s":"\xff"}}', b"\xff", b"\x00", b"\n"])
def test_invalid_utf8_is_reported_alike(ir: SchemaIR, text: bytes) -> None:
    assert seen(ir, text, True) == seen(ir, text, False)


@pytest.mark.parametrize("limits", [{"rows": 1}, {"rows": 2}, {"line_bytes": 20}, {"slots": 5},
                                    {"value_bytes": 2}])  # fmt: skip
def test_limits_are_reported_alike(ir: SchemaIR, limits: dict[str, Any]) -> None:
    text = b"\n".join([b'{"type":"B","data":{"s":"abcdefghi"}}'] * 2)
    assert seen(ir, text, True, **limits) == seen(ir, text, False, **limits)


TYPED = [
    "", "{", "[]", "5", '{"k": "a"}', '{"k": "a", "k": "b"}', '{"type": "A", "data": {"k": "a"}}', '{"k": 5}',
    '{"k": "a", "edge": "R"}', '{"from": "a", "to": "b"}', '{"src": "a", "dst": "b", "w": 1}', '{"src": "a"}',
    '{"from": "a", "src": "a", "to": "b"}', '{"from": "a"}', '{"from": null, "to": "b"}', '{"from": 5, "to": "b"}',
    '{"from": "a", "to": "b", "id": "e"}', '{"from": "a", "to": "b", "w": "x"}', '{"k": "from", "s": "src"}',
]  # fmt: skip


@pytest.mark.parametrize("type_name", ["A", "R", "S"])
def test_records_without_an_envelope_are_parsed_alike(ir: SchemaIR, type_name: str) -> None:
    record_type = RecordType(resolve_type(ir.catalog, type_name))
    usual = '{"k": "x", "n": 1}' if type_name == "A" else '{"from": "x", "to": "y"}'
    for line in TYPED:
        for text in (f"{usual}\n{line}\n{usual}", line, f"{line}\n{line}"):
            quick, slow = (seen(ir, text.encode(), quick, record_type) for quick in (True, False))
            assert quick == slow


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=3), min_size=1, max_size=4))
def test_random_records_without_an_envelope_are_parsed_alike(ir: SchemaIR, records: list[dict[str, str]]) -> None:
    record_type = RecordType(resolve_type(ir.catalog, "A"))
    lines = [
        "{" + ", ".join(f'"{name}": {value}' for name, value in {"k": '"a"', **one}.items()) + "}" for one in records
    ]
    text = "\n".join(lines).encode()
    assert seen(ir, text, True, record_type) == seen(ir, text, False, record_type)


@pytest.mark.parametrize("ends", [("from", "to"), ("src", "dst"), ("from", "dst")])
def test_both_names_of_endpoints_are_parsed_alike(ir: SchemaIR, ends: tuple[str, str]) -> None:
    line = f'{{"edge": "R", "{ends[0]}": "a", "{ends[1]}": "b", "data": {{"w": 0.5}}}}'
    shelves, problems, failed = seen(ir, line.encode(), True)
    assert (problems, failed) == ([], None)
    assert "'src': 'a', 'dst': 'b'" in shelves["edge:R"][0]
    assert seen(ir, line.encode(), True) == seen(ir, line.encode(), False)


def test_endpoint_given_twice_is_rejected(ir: SchemaIR) -> None:
    line = b'{"edge": "R", "from": "a", "src": "a", "to": "b"}'
    _, problems, _ = seen(ir, line, True)
    assert [one[4] for one in problems] == ["line 5: 'from' and 'src' name the same endpoint, but both are present"]


def taken(ir: SchemaIR, *lines: str, type_name: str | None = None) -> bool:
    intake = Intake(ir, ProblemCollector(), LoadLimits())
    entity_type = None if type_name is None else resolve_type(ir.catalog, type_name)
    done = take_block(intake, "\n".join(lines).encode(), 1, entity_type)
    assert done == bool(intake.buffers)
    return done


def test_usual_blocks_use_the_fast_path(ir: SchemaIR) -> None:
    full = {"k": '"a"', "s": '"é\\n"', "i": "1", "u": "18446744073709551615", "f": "0.5",
            "d": "1e3", "b": "true", "on": '"2024-01-31"', "at": "0", "tags": '["x", "y"]',
            "nums": "[1, 0.5]", "v": "[1, 2]", "x": '"base64:aGk="', "n": "1"}  # fmt: skip
    assert taken(ir, _node(full))
    assert taken(ir, _node(full), _node({"k": '"b"'}), '{"type":"B","data":{"s":"a"}}')
    assert taken(ir, _node({"k": '"b"', "s": "null", "n": "1"}), _edge("null", False))
    assert taken(ir, _edge("0.5", False), _edge("1", True) + "\r")
    assert taken(ir, '{"edge":"R","src":"a","dst":"b","data":{"w":0.5}}')
    assert taken(ir, '{"from":"a","to":"b","w":0.5}', '{"from":"b","to":"b"}', type_name="R")
    assert taken(ir, '{"k":"a","i":1,"n":1}', '{"k":"b","n":1}', type_name="A")
    assert not taken(ir, _node({"k": '"b"', "s": "null"}))  # is it null that n was given?
    assert not taken(ir, '{"type":"B","data":{"s":"a"}}', "")


def pieces(text: bytes, size: int) -> Iterator[bytes]:
    return (text[at : at + size] for at in range(0, len(text), size))


@given(st.binary(max_size=40).map(lambda b: b.replace(b"\x01", b"\n")), st.integers(1, 9))
def test_blocks_end_at_line_boundaries(text: bytes, size: int) -> None:
    text = text.replace(b"a", b"\n").replace(b"\x00", b"\n")
    assume(not text.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")))  # would be decompressed
    lines = text.split(b"\n")
    expected = lines[:-1] if not lines[-1] else lines
    found = [x for b in cut_blocks(pieces(text, size), 100, 5) for x in b.split(b"\n")]
    assert found == expected
    assert [x for b in iter_blocks(text, 100) for x in b.split(b"\n")] == expected
