"""The id index: hashes find candidates, texts decide, for any ids."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.ingest.id_sets import hashed_ids, packed_ids
from omnigraph.ingest.id_sets.packed_ids import PackedIds
from omnigraph.ingest.id_sets.text_hashes import TextArray, UInt64Array, hash_texts, texts_equal
from omnigraph.ingest.position_runs import pack_positions, unpack_positions
from omnigraph.spark import id_index as index
from omnigraph.spark.id_index import open_id_index

texts = st.lists(st.text(alphabet="ab\0é", max_size=20) | st.sampled_from(["x" * 300, "x" * 256]))


@given(texts, st.integers(0, 3))
def test_hashes_and_comparisons_agree_with_the_texts(values: list[str], skipped: int) -> None:
    column = pa.array(values, pa.string())[skipped:]
    values = values[skipped:]
    for kind in (pa.string(), pa.large_string()):
        held = TextArray.from_arrow(column.cast(kind))
        numbers = hash_texts(held).tolist()
        assert len(set(numbers)) == len(set(values))
        assert len({*zip(values, numbers, strict=True)}) == len(set(values))
        turned = np.arange(len(values))[::-1]
        assert texts_equal(held, held.take(turned)).tolist() == [
            one == other for one, other in zip(values, reversed(values), strict=True)
        ]


def missing(folder: Path, ids: list[str], asked: list[str]) -> list[str]:
    found = open_id_index(folder, len(ids), lambda: [pa.array(ids[:2], pa.string()), pa.array(ids[2:], pa.string())])
    return [asked[at] for at in found.missing_positions(pa.array(asked, pa.string()))]


@given(texts, texts, st.integers(0, 3))
def test_packed_ids_are_exact_for_any_bytes(ids: list[str], asked: list[str], skipped: int) -> None:
    ids, asked = [text for text in ids if len(text) < 20], asked[skipped:]
    packed = PackedIds.build(TextArray.from_arrow(pa.array(ids, pa.string())))
    positions = packed.missing_positions(TextArray.from_arrow(pa.array(["", *asked], pa.string())[1:]))
    assert positions.tolist() == [at for at, text in enumerate(asked) if text not in ids]


def test_packed_ids_differ_from_texts_that_end_like_their_padding() -> None:
    packed = PackedIds.build(TextArray.from_arrow(pa.array(["abc", "abcdefgh", "abc\0"])))
    padded = pa.array([b"abc\x80", b"abc\x80\0\0\0\0", b"abc\0\0", b"abcdefgh\x80", b"abc\0", b"abcdefgh"], pa.binary())
    texts_with_padding = pa.Array.from_buffers(pa.string(), len(padded), padded.buffers())
    assert packed.missing_positions(TextArray.from_arrow(texts_with_padding)).tolist() == [0, 1, 2, 3]


def weakened(function: Any, bits: int) -> Any:
    """Return a hash function that has only some of the bits."""

    def weak(some: Any) -> UInt64Array:
        mask = np.uint64(0) if bits == 0 else np.uint64(((1 << bits) - 1) << (64 - bits))
        weak_hashes: UInt64Array = function(some) & mask
        return weak_hashes

    return weak


@pytest.mark.parametrize("shard", [1 << 30, 3])
@pytest.mark.parametrize("bits", [64, 2, 0])
@pytest.mark.parametrize("long_id", ["é" * 40, "z" * 40])
def test_only_unknown_ids_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: int, bits: int, long_id: str
) -> None:
    monkeypatch.setattr(index, "SHARD_IDS", shard)
    for module, name in ((index, "hash_texts"), (hashed_ids, "hash_texts"), (packed_ids, "hash_words")):
        monkeypatch.setattr(module, name, weakened(getattr(module, name), bits))
    ids = [f"n{at}" for at in range(10)] + ["", long_id, "z"]
    asked = ["n3", "n", "", "zz", "z", long_id, long_id[1:], "n10", "n3", "y" * 90]
    assert missing(tmp_path / "some", ids, asked) == ["n", "zz", long_id[1:], "n10", "y" * 90]
    assert missing(tmp_path / "none", [], asked) == asked
    assert missing(tmp_path / "all", ids, ids) == []


def test_index_is_built_once_and_flags_repeated_ids(tmp_path: Path) -> None:
    reads: list[int] = []

    def read() -> list[pa.Array]:
        reads.append(1)
        return [pa.array(["a", "b"]), pa.array(["c", "a"])]

    assert open_id_index(tmp_path, 4, read).may_repeat_ids
    assert open_id_index(tmp_path, 4, read).may_repeat_ids
    assert len(reads) == 1
    assert not open_id_index(tmp_path / "other", 2, lambda: [pa.array(["a", "b"])]).may_repeat_ids


@given(st.lists(st.integers(0, 1 << 50), min_size=1))
def test_positions_round_trip_through_packing(values: list[int]) -> None:
    spots = np.array(values, np.int64)
    assert unpack_positions(pack_positions(spots)).tolist() == values


def test_consecutive_positions_pack_into_few_bytes() -> None:
    assert len(pack_positions(np.arange(7, 1_000_007))) < 50
