"""Control objects behave alike on a disk and on S3; of several creators exactly one wins."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import StorageError, Transient
from omnigraph.storage.effects import Effects, Fault
from omnigraph.storage.objects import ControlObjects, open_objects
from omnigraph.storage.root import GraphRoot, parse_root
from omnigraph.storage.s3 import S3Backend
from tests.rig.plugin import S3
from tests.rig.proxy import requests_of
from tests.rig.racing_creators import race_processes, race_threads
from tests.rig.server_process import free_ports

# Contenders for one name wait in turn for a lock of SeaweedFS, a second each: few names there.
NAMES = [f"_refs/branches/a/{n:010d}.json" for n in range(20)]


def opened(url: str) -> ControlObjects:
    return open_objects(parse_root(url), Effects(), durable=True)


@pytest.fixture(params=["disk", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A root on each kind of store."""
    if request.param == "disk":
        return str(tmp_path / "graph")
    place: S3 = request.getfixturevalue("s3")
    return place.url


@pytest.fixture
def objects(url: str) -> ControlObjects:
    return opened(url)


# One suite for every kind of store.


def test_created_object_is_readable(objects: ControlObjects) -> None:
    assert objects.read("_audit/x.json") is None
    assert objects.read_json("_audit/x.json") is None
    assert objects.create_json("_audit/x.json", {"who": "Ada ☕"})
    found = objects.read_json("_audit/x.json")
    assert found is not None
    assert found["who"] == "Ada ☕"
    assert len(found["nonce"]) == 32


def test_the_second_creator_loses_and_changes_nothing(objects: ControlObjects) -> None:
    assert objects.create_json("x.json", {"who": "first"})
    before = objects.read("x.json")
    assert not objects.create_json("x.json", {"who": "second"})
    assert objects.read("x.json") == before


def test_the_same_nonce_is_the_same_creator(objects: ControlObjects) -> None:
    mine = {"nonce": "0" * 32}
    assert objects.create_json("x.json", mine)
    assert objects.create_json("x.json", mine)


def test_bytes_are_created_once(objects: ControlObjects) -> None:
    objects.create_bytes("_commits/a", b"\x00\xff")
    objects.create_bytes("_commits/a", b"\x00\xff")
    with pytest.raises(StorageError) as caught:
        objects.create_bytes("_commits/a", b"other")
    assert caught.value.kind == "permanent"
    assert objects.read("_commits/a") == b"\x00\xff"


def test_one_of_eight_threads_wins(url: str) -> None:
    names = NAMES[:1] if url.startswith("s3") else NAMES
    check_winners(url, names, race_threads(url, 8, names))


def test_one_of_four_processes_wins(url: str) -> None:
    names = NAMES[:1] if url.startswith("s3") else NAMES
    check_winners(url, names, race_processes(url, 4, names))


@pytest.mark.full
def test_one_of_many_creators_on_s3_wins(s3: S3) -> None:
    check_winners(s3.url, NAMES[:5], race_processes(s3.url, 8, NAMES[:5]))


def check_winners(url: str, names: list[str], won: list[tuple[str, str]]) -> None:
    objects = opened(url)
    stored = [(name, (objects.read_json(name) or {})["who"]) for name in names]
    assert won == stored
    assert [one.name for one in objects.list("_refs")] == names


def test_a_listing_is_by_directory_in_order_of_names(objects: ControlObjects) -> None:
    for name in ("a/2", "a/10", "a/b/c", "ab/1", "z"):
        objects.create_bytes(name, b"12345")
    assert [one.name for one in objects.list("a")] == ["a/10", "a/2", "a/b/c"]
    assert [one.name for one in objects.list("")] == ["a/10", "a/2", "a/b/c", "ab/1", "z"]
    assert objects.list("nothing") == []
    assert objects.list("z") == []
    (one,) = objects.list("ab")
    assert one.size == 5
    assert one.modified.utcoffset() is not None


@pytest.mark.full
def test_more_objects_than_a_page_are_all_listed(objects: ControlObjects) -> None:
    for n in range(1001):
        objects.backend.replace(f"many/{n:05d}", b"")
    assert len(objects.list("many")) == 1001


def test_a_quoted_name_is_taken_literally(objects: ControlObjects) -> None:
    name = "_refs/branches/review%2Fa%20b%C3%A9/0000000001.json"
    objects.create_bytes(name, b"x")
    assert [one.name for one in objects.list("_refs/branches")] == [name]
    assert objects.read(name) == b"x"
    assert objects.read("_refs/branches/review/a bé/0000000001.json") is None


def test_directory_is_not_an_object(objects: ControlObjects) -> None:
    objects.create_bytes("a/b", b"x")
    assert objects.read("a") is None
    assert objects.read("a/b/c") is None


def test_removed_object_is_absent(objects: ControlObjects) -> None:
    objects.create_bytes("a/x", b"x")
    objects.remove("a/x")
    objects.remove("a/x")
    assert objects.read("a/x") is None
    assert objects.list("a") == []
    objects.create_bytes("a/x", b"again")


def test_lease_overwrites_the_old_one(objects: ControlObjects) -> None:
    objects.write_lease("__recovery/a.lease", {"turn": 1})
    objects.write_lease("__recovery/a.lease", {"turn": 2})
    assert objects.read_json("__recovery/a.lease") == {"turn": 2}


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe{}", b"[1]", b"5", b"null"])
def test_invalid_json_is_a_permanent_failure(objects: ControlObjects, body: bytes) -> None:
    objects.create_bytes("__recovery/x.json", body)
    with pytest.raises(StorageError, match=r"__recovery/x\.json") as caught:
        objects.read_json("__recovery/x.json")
    assert caught.value.kind == "permanent"
    assert objects.read("__recovery/x.json") == body


def test_unfinished_files_are_not_listed(objects: ControlObjects) -> None:
    objects.create_bytes("a/x.json", b"")
    objects.backend.replace("a/y.json#123", b"")
    assert [one.name for one in objects.list("a")] == ["a/x.json"]


def test_effects_are_counted_when_they_happened(objects: ControlObjects) -> None:
    objects.create_bytes("x", b"")
    objects.write_lease("l", {})
    objects.remove("x")
    assert objects.effects.counts_by_kind() == {"object": 1, "renew": 1, "remove": 1}
    with objects.effects.failing(Fault(1, "before")), pytest.raises(OSError, match="injected"):
        objects.create_bytes("y", b"")
    assert objects.read("y") is None
    with objects.effects.failing(Fault(1, "after")), pytest.raises(OSError, match="injected"):
        objects.create_bytes("y", b"")
    assert objects.read("y") == b""


# Disks.


def files_below(directory: Path) -> list[str]:
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())


@pytest.mark.parametrize("call", ["link", "fsync", "replace"])
def test_no_unfinished_file_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    objects = opened(str(tmp_path))
    objects.write_lease("lease", {"turn": 1})

    def fail(*args: Any, **options: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path if call == "replace" else os, call, fail)
    attempt: Callable[[], object] = (
        (lambda: objects.write_lease("lease", {"turn": 2}))
        if call == "replace"
        else (lambda: objects.create_json("x.json", {}))
    )
    with pytest.raises(StorageError) as caught:
        attempt()
    assert caught.value.kind == "unknown"
    assert files_below(tmp_path) == ["lease"]
    assert objects.read_json("lease") == {"turn": 1}


def test_a_directory_that_cannot_be_read_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = opened(str(tmp_path))
    objects.create_bytes("a/x", b"")

    def refuse(*args: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StorageError) as caught:
        objects.list("a")
    assert (caught.value.kind, caught.value.effect) == ("configuration", "none")


def test_parent_directories_of_a_new_object_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []

    def record(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink())

    monkeypatch.setattr(os, "fsync", record)
    objects = opened(str(tmp_path / "g"))
    objects.create_bytes("a/b/x", b"")
    top = tmp_path / "g"
    assert synced[0].name.startswith("x#")
    assert synced[1:] == [top / "a/b", top / "a", top]
    synced.clear()
    objects.create_bytes("a/b/y", b"")
    assert synced[1:] == [top / "a/b"]


# S3: answers that are lost, late, wrong.


def lose_answer(place: S3) -> None:
    place.proxy.drop("PUT")


def fail_after(place: S3) -> None:
    place.proxy.answer(500, "PUT", forward=True)


def fail_before(place: S3) -> None:
    place.proxy.answer(503, "PUT", forward=False)


@pytest.mark.parametrize(("fault", "looks"), [(lose_answer, 1), (fail_after, 1), (fail_before, 0)])
def test_repeated_object_creation_is_recognised_as_own(s3: S3, fault: Callable[[S3], None], looks: int) -> None:
    objects = opened(s3.url)
    fault(s3)
    with requests_of(s3.proxy) as made:
        assert objects.create_json("verdict", {"who": "me"})
    assert made.attempts["PUT"] == 2, made.lines
    assert (made.counts["PUT"], made.counts["GET"]) == (1, looks), made.lines
    assert (objects.read_json("verdict") or {})["who"] == "me"


def test_repeated_bytes_creation_is_recognised_as_own(s3: S3) -> None:
    objects = opened(s3.url)
    lose_answer(s3)
    objects.create_bytes("chunk", b"body")
    assert objects.read("chunk") == b"body"


def test_creation_without_a_response_has_unknown_effect(s3: S3) -> None:
    objects = opened(s3.url)
    s3.proxy.drop("PUT", times=None)
    with pytest.raises(StorageError) as caught:
        objects.create_json("verdict", {"who": "me"})
    assert (caught.value.kind, caught.value.effect) == ("unknown", "unknown")
    s3.proxy.heal()
    assert (objects.read_json("verdict") or {})["who"] == "me"


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_fails_is_not_an_absent_object(s3: S3, status: int) -> None:
    objects = opened(s3.url)
    s3.proxy.answer(status, "GET", forward=False, times=None)
    s3.proxy.answer(status, "LIST", forward=False, times=None)
    for ask in (objects.read, objects.list):
        with pytest.raises(StorageError) as caught:
            ask("x")
        assert (caught.value.kind, caught.value.effect) == ("unknown", "none")


@pytest.mark.parametrize("status", [401, 403])
def test_rejected_credentials_do_not_look_like_an_absent_object(s3: S3, status: int) -> None:
    objects = opened(s3.url)
    s3.proxy.answer(status, "GET", forward=False, times=None)
    with pytest.raises(StorageError) as caught:
        objects.read("x")
    assert caught.value.kind == "configuration"
    assert not isinstance(caught.value, Transient)


def test_wrong_credentials_are_reported_without_their_values(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA-STRANGER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    objects = opened(s3.url)
    with pytest.raises(StorageError) as caught:
        objects.create_json("x", {})
    assert caught.value.kind == "configuration"
    told = f"{caught.value} {caught.value.details} {caught.value.to_json()} {objects}"
    assert "STRANGER" not in told
    assert "hush" not in told
    assert caught.value.__cause__ is None


def test_unreachable_store_fails_after_few_attempts(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{free_ports(1)[0]}")
    with pytest.raises(StorageError) as caught:
        opened(s3.url).read("x")
    assert caught.value.kind == "unknown"


@pytest.mark.full
def test_unresponsive_store_times_out(s3: S3) -> None:
    objects = opened(s3.url)
    held = s3.proxy.hold("GET", times=None)
    with pytest.raises(StorageError):
        objects.read("x")
    held.release()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("AWS_ALLOW_HTTP", "false", "plain http"),
        ("AWS_ENDPOINT_URL_S3", "localhost:9000", "not an http or https address"),
        ("AWS_ENDPOINT_URL_S3", "::::", "not an http or https address"),
        ("AWS_ENDPOINT_URL_S3", "https://", "not an http or https address"),
    ],
)
def test_invalid_setting_is_rejected_at_once(
    s3: S3, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(StorageError, match=told) as caught:
        opened(s3.url)
    assert (caught.value.kind, caught.value.effect) == ("configuration", "none")


def test_setting_rejected_by_the_client_is_a_configuration_error() -> None:
    root = GraphRoot("s3", "bucket/graph", {"connect_timeout": "soon"})
    with pytest.raises(StorageError) as caught:
        S3Backend.connect(root)
    assert caught.value.kind == "configuration"
