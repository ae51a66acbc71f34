"""Fixtures: a real S3 server behind a counting, fault-injecting proxy."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import omnigraph.storage  # noqa: F401 - before a test uses Lance, it is told how to behave
from omnigraph.values import clock_and_ids
from tests.rig.proxy import Proxy
from tests.rig.rclone import rclone
from tests.rig.s3_server import S3Server
from tests.rig.seaweed import seaweed


@dataclass(frozen=True, slots=True)
class S3:
    """A place in a bucket that only this test uses; `AWS_*` variables lead there by the proxy."""

    proxy: Proxy
    url: str
    server: S3Server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One server for all tests of this process."""
    with seaweed(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """A fresh place on the server, behind a proxy of its own."""
    yield from _behind_proxy(s3_server, monkeypatch)


@pytest.fixture
def careless_s3(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """The same on a server that lets a second creator overwrite the first."""
    with rclone(tmp_path_factory.mktemp("rclone")) as server:
        yield from _behind_proxy(server, monkeypatch)


def _behind_proxy(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    proxy = Proxy(server.port)
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in server.behind(proxy.port).environment.items():
        monkeypatch.setenv(name, value)
    try:
        yield S3(proxy, f"s3://{server.bucket}/graph-{clock_and_ids.new_nonce()}", server)
    finally:
        proxy.stop()
