"""A store that would lose writes is refused before anything is written."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.local_objects import LocalBackend
from omnigraph.storage.s3 import S3Backend
from omnigraph.storage.store import open_store
from omnigraph.storage.store_probe import probe_create_if_absent
from tests.rig.plugin import S3
from tests.rig.proxy import requests_of


def test_disk_passes_and_the_probe_leaves_nothing(tmp_path: Path) -> None:
    probe_create_if_absent(open_store(str(tmp_path / "g")))
    assert list((tmp_path / "g").iterdir()) == []


def test_s3_server_passes_and_the_probe_leaves_nothing(s3: S3) -> None:
    store = open_store(s3.url)
    with requests_of(s3.proxy) as made:
        probe_create_if_absent(store)
    # Create, refused create and its look, look, list, remove.
    assert made.counts == {"PUT": 2, "GET": 2, "LIST": 1, "DELETE": 1}
    assert store.objects.list("") == []


@pytest.mark.parametrize("deed", ["drop", "500"])
def test_lost_response_does_not_reject_a_good_server(s3: S3, deed: str) -> None:
    rule = s3.proxy.drop("PUT", "*probe*") if deed == "drop" else s3.proxy.answer(500, "PUT", "*probe*", forward=True)
    probe_create_if_absent(open_store(s3.url))
    assert rule.hit.is_set()


@pytest.mark.full
def test_server_that_ignores_if_none_match_is_rejected(careless_s3: S3) -> None:
    store = open_store(careless_s3.url)
    with pytest.raises(StorageError, match="If-None-Match is ignored") as caught:
        probe_create_if_absent(store)
    assert (caught.value.kind, caught.value.effect) == ("configuration", "none")
    assert store.objects.list("") == []


def test_store_with_stale_listings_is_rejected(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(S3Backend, "list", lambda self, prefix: iter(()))
    with pytest.raises(StorageError, match="a listing does not include") as caught:
        probe_create_if_absent(open_store(s3.url))
    assert caught.value.kind == "configuration"


def test_store_that_overwrites_despite_an_error_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = LocalBackend.create

    def careless(self: LocalBackend, name: str, body: bytes) -> bool:
        won = create(self, name, body)
        if not won:
            (self.directory / name).write_bytes(b"{}")
        return won

    monkeypatch.setattr(LocalBackend, "create", careless)
    with pytest.raises(StorageError, match="although the second create request was rejected"):
        probe_create_if_absent(open_store(str(tmp_path / "g")))


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_a_disk_without_hard_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError, match="does not support hard links") as caught:
        probe_create_if_absent(open_store(str(tmp_path / "g")))
    assert (caught.value.kind, caught.value.effect) == ("configuration", "none")
    assert list((tmp_path / "g").iterdir()) == []


def test_another_failure_of_the_disk_keeps_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(StorageError, match="No space left") as caught:
        probe_create_if_absent(open_store(str(tmp_path / "g")))
    assert caught.value.kind == "configuration"


def test_unreachable_server_is_reported_as_such(s3: S3) -> None:
    s3.proxy.cut(2, "PUT")
    with pytest.raises(StorageError) as caught:
        probe_create_if_absent(open_store(s3.url))
    assert caught.value.kind == "unknown"
