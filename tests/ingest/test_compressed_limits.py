"""A compressed input is rejected at the line limit, and nothing behind it is decompressed."""

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.api.results.receipt import LoadReport
from omnigraph.errors import InputError, ResourceLimitExceeded
from omnigraph.ingest import files
from omnigraph.ingest.files import cut_blocks, iter_blocks, iter_lines
from omnigraph.ingest.input_files import InputFile
from omnigraph.ingest.input_pieces import InputPiece, _read_span, read_piece_blocks
from omnigraph.ingest.load_limits import LoadLimits
from omnigraph.testing import graph as new_graph

LIMIT = LoadLimits().line_bytes
LINE = b'{"type": "A", "data": {"k": "x"}}\n'
MIB = 1 << 20


def pack_gzip(text: bytes) -> bytes:
    return gzip.compress(text, 6, mtime=0)


def pack_zstd(text: bytes) -> bytes:
    packed: bytes = pa.compress(text, codec="zstd", asbytes=True)
    return packed


def spoil(packed: bytes) -> bytes:
    """Make the last tenth unreadable."""
    kept = len(packed) * 9 // 10
    return packed[:kept] + bytes(255 - one for one in packed[kept:])


PACKINGS = pytest.mark.parametrize("pack", [pack_gzip, pack_zstd])
Pack = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def bombs() -> dict[Pack, bytes]:
    """A record, then a line of two limits whose end is unreadable."""
    text = LINE + b"x" * (2 * LIMIT)
    return {pack: spoil(pack(text)) for pack in (pack_gzip, pack_zstd)}


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all pieces that were unpacked."""
    sizes: list[int] = []
    real = files._read_pieces

    def count(source: Any) -> Iterator[bytes]:
        for piece in real(source):
            sizes.append(len(piece))
            yield piece

    monkeypatch.setattr(files, "_read_pieces", count)
    return sizes


@PACKINGS
def test_bytes_beyond_the_line_limit_are_not_decompressed(bombs: dict[Pack, bytes], pack: Pack) -> None:
    with pytest.raises(InputError, match="cannot read"):
        list(iter_blocks(bombs[pack], 4 * LIMIT))


@PACKINGS
def test_load_is_rejected_at_the_line_limit(bombs: dict[Pack, bytes], pack: Pack, unpacked: list[int]) -> None:
    with new_graph("node A { k: String @key }") as graph:
        with pytest.raises(ResourceLimitExceeded) as refusal:
            graph.load(bombs[pack], mode="append")
        assert (refusal.value.resource, refusal.value.limit) == ("graph_batch_line_bytes", LIMIT)
        assert sum(unpacked) <= LIMIT + 2 * MIB


@PACKINGS
def test_report_ends_at_the_line_limit(
    bombs: dict[Pack, bytes], pack: Pack, tmp_path: Path, unpacked: list[int]
) -> None:
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(bombs[pack])
    with new_graph("node A { k: String @key }") as graph:
        report = graph.load(path, mode="append", on_error="report")
        assert isinstance(report, LoadReport)
        assert [one.line for one in report.problems] == [2]
        assert sum(unpacked) <= LIMIT + 2 * MIB


@PACKINGS
def test_spark_tasks_stop_at_the_line_limit(pack: Pack, tmp_path: Path, unpacked: list[int]) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(spoil(pack(LINE + b"x" * (20 * MIB))))
    lines = list(read_piece_blocks(InputPiece(0, InputFile(str(path), "ndjson")), MIB))
    assert [len(one) for one in lines] == [len(LINE) - 1, MIB + 1]
    assert sum(unpacked) <= 3 * MIB


def test_plain_input_continues_after_an_oversized_line() -> None:
    text = b"a\n" + b"x" * (9 * MIB) + b"\nb\n" + b"y" * (5 * MIB)
    assert [len(one) for one in iter_lines(text, 100)] == [1, 101, 1, 101]


def test_memory_is_bounded_by_the_line_limit() -> None:
    most = 0

    def endless() -> Iterator[bytes]:
        for _ in range(400):
            yield b"x" * MIB
        yield b"\nend"

    for block in cut_blocks(endless(), 2 * MIB):
        most = max(most, len(block))
    assert most == 2 * MIB + 1


@given(st.lists(st.text("ab", max_size=12).map(str.encode), max_size=12), st.integers(1, 30), st.integers(1, 8))
def test_line_splitting_does_not_depend_on_block_size(lines: list[bytes], size: int, longest: int) -> None:
    text = b"".join(one + b"\n" for one in lines)
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    blocks = list(cut_blocks(pieces, longest, 10))
    found = [line[: longest + 1] for one in blocks for line in one.split(b"\n")]
    assert found == [one[: longest + 1] for one in lines]


@pytest.mark.parametrize("open_file", [io.BytesIO, pa.BufferReader])
def test_byte_ranges_are_read_in_bounded_blocks(open_file: Callable[[bytes], Any]) -> None:
    """Files of an object store have no `readline`."""
    text = b"first\n" + b"x" * (300 << 10) + b"\nlast\n"
    half = len(text) // 2
    parts = [list(_read_span(open_file(text), *span)) for span in ((0, half), (half, len(text)))]
    assert [b"".join(one) for one in parts] == [text[:-5], b"last\n"]
    assert max(len(one) for some in parts for one in some) <= half
