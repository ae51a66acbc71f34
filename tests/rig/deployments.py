"""Servers with one or four workers on graphs on disk or in S3, for tests that must pass on all of them.

A test run uses one worker on disk. `make test-full` adds the other deployments. This module starts no server.
"""

import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

import omnigraph
from omnigraph.values import clock_and_ids
from tests.rig.http_server import HttpServer, serving, start_server
from tests.rig.s3_server import S3Server

DEPLOYMENTS = [
    pytest.param((1, "disk"), id="1-disk"),
    pytest.param((4, "disk"), id="4-disk", marks=pytest.mark.full),
    pytest.param((1, "s3"), id="1-s3", marks=pytest.mark.full),
    pytest.param((4, "s3"), id="4-s3", marks=pytest.mark.full),
]
_AWS_VARIABLES = ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_ENDPOINT")


@dataclass(frozen=True)
class Deployment:
    """How many workers a server has, and where its graphs are stored."""

    workers: int
    s3_server: S3Server | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _prefix: str = field(default_factory=clock_and_ids.new_nonce)

    def new_root(self, folder: Path) -> str:
        """A location for a new graph: in the folder, or in S3."""
        name = f"graph-{next(self._numbers)}"
        if self.s3_server is None:
            return str(folder / name)
        return f"s3://{self.s3_server.bucket}/{self._prefix}/{name}"

    def init(self, folder: Path, schema: str) -> omnigraph.Graph:
        """Create an empty graph at a new location."""
        return omnigraph.init(self.new_root(folder), schema, durability="os")

    def serving(
        self, folder: Path, *arguments: str, variables: dict[str, str] | None = None, token: str | None = None
    ) -> AbstractContextManager[HttpServer]:
        """A server with the workers of this deployment, which is stopped at the end."""
        return serving(folder, *arguments, "--workers", str(self.workers), variables=variables, token=token)

    def start_server(self, folder: Path, *arguments: str) -> HttpServer:
        """Start a server with the workers of this deployment."""
        return start_server(folder, *arguments, "--workers", str(self.workers))

    def remove_data_files(self, uri: str) -> None:
        """Remove the data files of all tables of a graph, as a storage that loses data would."""
        if self.s3_server is None:
            for file in Path(uri).rglob("*.lance"):
                if file.is_file():
                    file.unlink()
            return
        store = S3Store(
            self.s3_server.bucket,
            endpoint=f"http://127.0.0.1:{self.s3_server.port}",
            access_key_id=self.s3_server.key,
            secret_access_key=self.s3_server.secret,
            region="us-east-1",
            client_options={"allow_http": True},
        )
        prefix = uri.removeprefix(f"s3://{self.s3_server.bucket}/")
        for objects in obstore.list(store, prefix):
            obstore.delete(store, [entry["path"] for entry in objects if entry["path"].endswith(".lance")])


@contextmanager
def deployed(workers: int, s3_server: S3Server | None) -> Iterator[Deployment]:
    """A deployment, with the variables that lead to its S3 server."""
    with pytest.MonkeyPatch.context() as patch:
        if s3_server is not None:
            for name in _AWS_VARIABLES:
                patch.delenv(name, raising=False)
            for name, value in s3_server.environment.items():
                patch.setenv(name, value)
        yield Deployment(workers, s3_server)
