"""The id index: hashes find candidates, texts decide, for any ids."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.spark import id_index as index
from omnigraph.spark.id_index import open_id_index
from omnigraph.spark.staged_fragments import pack_positions, unpack_positions
from omnigraph.spark.text_hashes import TextArray, UInt64Array, hash_texts, texts_equal

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


@pytest.mark.parametrize("shard", [1 << 30, 3])
@pytest.mark.parametrize("bits", [64, 2, 0])
def test_only_unknown_ids_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: int, bits: int) -> None:
    def weak(some: TextArray) -> UInt64Array:
        return hash_texts(some) >> np.uint64(64 - bits) if bits else hash_texts(some) * np.uint64(0)

    monkeypatch.setattr(index, "SHARD_IDS", shard)
    if bits < 64:
        monkeypatch.setattr(index, "hash_texts", weak)
    ids = [f"n{at}" for at in range(10)] + ["", "é" * 40, "z"]
    asked = ["n3", "n", "", "zz", "z", "é" * 40, "é" * 39, "n10", "n3"]
    assert missing(tmp_path / "some", ids, asked) == ["n", "zz", "é" * 39, "n10"]
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
