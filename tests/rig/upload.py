"""Uploads a graph from a disk to a bucket of an S3 server, file by file.

So a graph of many commits can be looked at on S3 without a request for each of its writes.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from obstore.store import S3Store

from tests.rig.s3_server import S3Server

_AT_ONCE = 8


def bring(server: S3Server, source: Path, target: str) -> None:
    """Put every file of a directory below `s3://bucket/...`, past any proxy."""
    bucket, top = direct(server), target.removeprefix(f"s3://{server.bucket}/")
    files = [one for one in source.rglob("*") if one.is_file()]

    def put(file: Path) -> None:
        bucket.put(f"{top}/{file.relative_to(source)}", file.read_bytes())

    with ThreadPoolExecutor(_AT_ONCE, "bring") as pool:
        list(pool.map(put, files))


def direct(server: S3Server) -> S3Store:
    """The bucket, past the proxy."""
    return S3Store(
        server.bucket,
        endpoint=f"http://127.0.0.1:{server.port}",
        access_key_id=server.key,
        secret_access_key=server.secret,
        region="us-east-1",
        client_options={"allow_http": True},
    )
