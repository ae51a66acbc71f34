"""Lines of NDJSON: valid records, and reasons for invalid ones."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ClientError, InputError, ResourceLimitExceeded
from omnigraph.ingest import json_arrays
from omnigraph.ingest.files import iter_lines
from omnigraph.ingest.input_parts import find_input_files
from omnigraph.ingest.input_pieces import cut_into_pieces, read_piece_blocks
from omnigraph.ingest.json_arrays import unwrap_array
from omnigraph.ingest.load_limits import LoadLimits
from omnigraph.ingest.ndjson import parse_line

LIMITS = LoadLimits()
words = st.text(alphabet=st.sampled_from('ab:",\\é\n{}[] '), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(words, values, max_size=4)


@given(objects, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
def test_line_without_duplicate_members_equals_json_loads(
    value: dict[str, Any], ascii: bool, marks: tuple[str, str]
) -> None:
    line = json.dumps(value, ensure_ascii=ascii, separators=marks).encode()
    assert parse_line(line, LIMITS) == value


def spelled(value: Any, twice: list[bool]) -> str:
    """JSON text in which the first member of the first object that has one stands twice."""
    if isinstance(value, dict):
        members = [f"{json.dumps(k)} :{spelled(v, twice)}" for k, v in value.items()]
        if members and not twice:
            twice.append(True)
            members.append(members[0])
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(spelled(one, twice) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)


@given(objects)
def test_duplicate_member_is_found_at_any_depth(value: dict[str, Any]) -> None:
    twice: list[bool] = []
    line = spelled({"type": "T", "data": value} if value else {"data": {"x": value}}, twice)
    assert twice
    with pytest.raises(InputError, match="twice"):
        parse_line(line.encode(), LIMITS)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"a":1} {"b":2}', "malformed"),
        (b'{"a":1}x', "malformed"),
        (b'{"a":NaN}', "malformed"),
        (b'{"a":1e999}', "malformed"),
        (b'{"a":"\\ud800"}', "malformed"),
        (b'{"a":"\xff"}', "byte 0xff at column 7 is not valid UTF-8"),
        (b"null", "null"),
        (b"[" * 2000 + b"]" * 2000, "malformed"),
        (b'{"a":{"b":[{"c":1,"c":2}]}}', "'c' appears twice"),
        (b'{"a":"\\u003a","a":1}', "'a' appears twice"),
    ],
)
def test_malformed_lines_are_rejected(line: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_line(line, LIMITS)


def test_blank_lines_are_skipped() -> None:
    assert [parse_line(one, LIMITS) for one in (b"", b" \t\r", b"\r")] == [None] * 3


def test_limits_are_inclusive() -> None:
    line = orjson.dumps({"a": [1, 2, 3]})  # { : [ , , ] } and one more
    assert parse_line(line, LoadLimits(slots=8, line_bytes=len(line)))
    with pytest.raises(ResourceLimitExceeded) as slots:
        parse_line(line, LoadLimits(slots=7))
    assert (slots.value.resource, slots.value.actual) == ("graph_batch_json_structural_slots", 8)
    with pytest.raises(ResourceLimitExceeded) as size:
        parse_line(line, LoadLimits(line_bytes=len(line) - 1))
    assert size.value.resource == "graph_batch_line_bytes"
    assert parse_line(orjson.dumps({"a": "{[,:]}" * 9}), LoadLimits(slots=4))


@given(st.lists(st.text("ab \r\0é🂡", max_size=9).map(str.encode), max_size=9))
def test_compressed_and_plain_files_yield_the_same_lines(lines: list[bytes]) -> None:
    text = b"".join(one + b"\n" for one in lines)
    assert list(iter_lines(text, 100)) == lines
    assert list(iter_lines(io.BytesIO(gzip.compress(text)), 100)) == lines
    packed = pa.compress(text, codec="zstd", asbytes=True) if text else b""
    assert list(iter_lines(packed, 100)) == lines


def test_concatenated_gzip_members_are_read(tmp_path: Any) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b"))
    assert list(iter_lines(path, 100)) == [b"a", b"b"]


@pytest.mark.parametrize("damage", [b"\x1f\x8b\x08\x00junkjunkjunk", gzip.compress(b"a" * 99, mtime=0)[:-9]])
def test_a_damaged_file_is_bad_input(damage: bytes) -> None:
    with pytest.raises(ClientError, match="cannot read"):
        list(iter_lines(damage, 100))


def test_missing_file_is_reported() -> None:
    with pytest.raises(InputError, match=r"cannot read nowhere\.ndjson: No such file"):
        list(iter_lines("nowhere.ndjson", 100))


def test_text_streams_and_long_lines_are_read() -> None:
    assert list(iter_lines(io.StringIO("ä\r\nb"), 100)) == ["ä\r".encode(), b"b"]
    long = b"x" * 3_000_000 + b"\ny"
    assert [len(one) for one in iter_lines(long, 2_000_000)] == [2_000_001, 1]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_files_in_pieces_yield_the_same_lines(tmp_path: Path, encoding: str) -> None:
    lines = [f'{{"ä": {number}}}' for number in range(50)]
    path = tmp_path / "a.ndjson"
    path.write_text("\n".join(lines), encoding=encoding)
    pieces = cut_into_pieces(find_input_files(path), 40)
    assert (len(pieces) > 5) == encoding.startswith("utf-8")
    read = [line for piece in pieces for block in read_piece_blocks(piece, 100) for line in block.split(b"\n")]
    assert [line.decode() for line in read] == lines


@given(st.lists(objects, min_size=1, max_size=5), st.sampled_from([None, 2]), st.integers(1, 40))
def test_an_array_of_records_is_read_like_lines(records: list[Any], indent: int | None, piece_bytes: int) -> None:
    text = json.dumps(records, indent=indent, ensure_ascii=False).encode()
    pieces = iter([text[start : start + piece_bytes] for start in range(0, len(text), piece_bytes)])
    lines = b"".join(unwrap_array(pieces)).split(b"\n")
    assert [json.loads(line) for line in lines if line] == records
    if indent:  # every record is on the line on which it begins
        first_lines = [number for number, line in enumerate(text.split(b"\n")) if line.startswith(b"  {")]
        assert [number for number, line in enumerate(lines) if line] == first_lines


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'[{"a": 1},\n]', "line 2: malformed JSON array: a record is missing before ']'"),
        (b'[{"a": 1},\n,{}]', "line 2: malformed JSON array: a record is missing before ','"),
        (b'[\n{"a": [1}', "line 2: malformed JSON array: the closing bracket is missing"),
        (b'[{"a": 1}]\n{}', "line 1: malformed JSON array: unexpected text after the closing bracket"),
        (b'[{"a": "x\ny"}]', "line 1: malformed JSON array: unterminated string"),
    ],
)
def test_malformed_arrays_are_rejected(text: bytes, reason: str) -> None:
    with pytest.raises(InputError) as rejected:
        list(iter_lines(text, 1000))
    assert rejected.value.message == reason


def test_arrays_are_one_piece_and_have_a_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "records.json"
    file.write_text("[" + ",".join(json.dumps({"n": n}) for n in range(50)) + "]")
    (piece,) = cut_into_pieces(find_input_files(str(file)), 100)
    assert sum(block.count(b"\n") + 1 for block in read_piece_blocks(piece, 1000)) == 50
    monkeypatch.setattr(json_arrays, "MAX_ARRAY_BYTES", 100)
    with pytest.raises(ResourceLimitExceeded, match="json_array_bytes"):
        list(iter_lines(file, 1000))
