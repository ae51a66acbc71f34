"""Objects of every size are transferred between stores completely or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.object_backend import TRANSFER_BLOCK_BYTES
from omnigraph.storage.store import Store, open_store
from omnigraph.storage.transfer import transfer
from tests.rig.plugin import S3

BODIES = {"empty": b"", "small": b"x", "a/b/large": b"0123456789abcdef" * (2 * TRANSFER_BLOCK_BYTES // 16) + b"!"}


@pytest.fixture(params=["disk to disk", "disk to s3", "s3 to disk", "s3 to s3"])
def places(request: pytest.FixtureRequest, tmp_path: Path, s3: S3) -> tuple[Store, Store]:
    """Where objects come from, and where they go."""
    kinds = request.param.split(" to ")
    uris = {"disk": str(tmp_path / "here"), "s3": f"{s3.url}-here"}
    there = {"disk": str(tmp_path / "there"), "s3": f"{s3.url}-there"}
    return open_store(uris[kinds[0]], durability="os"), open_store(there[kinds[1]], durability="os")


def test_objects_of_every_size_are_transferred(places: tuple[Store, Store]) -> None:
    source, target = places
    for name, body in BODIES.items():
        source.objects.create_bytes(name, body)
    told: list[str] = []
    assert transfer(source, target, BODIES, told.append)
    assert sorted(told) == sorted(BODIES)
    assert {one: target.objects.read(one) for one in BODIES} == BODIES


def test_missing_source_is_reported_and_creates_nothing(places: tuple[Store, Store]) -> None:
    source, target = places
    told: list[str] = []
    assert not transfer(source, target, ["nothing"], told.append)
    assert (told, target.objects.list("")) == ([], [])
    assert target.effects.counts_by_kind() == {}


def _breaking() -> Iterator[bytes]:
    yield b"x" * TRANSFER_BLOCK_BYTES
    raise StorageError("gone", kind="transient")


def test_source_failure_midway_creates_nothing(places: tuple[Store, Store]) -> None:
    _, target = places
    with pytest.raises(Exception, match="gone"):
        target.objects.backend.write_blocks("half", _breaking())
    assert target.objects.list("") == []
