"""Write single S3 objects outside any graph, such as exports.

An object appears only once it is complete, and an existing object is replaced. This module never writes below the root
of a graph, so its writes are not effects of a graph.
"""

import os
from collections.abc import Iterator

from omnigraph.errors import InputError, OmnigraphError, StorageError

from .root import GraphRoot, s3_options


def is_s3_uri(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is an `s3://` URI.

    >>> is_s3_uri("s3://bucket/a.ndjson"), is_s3_uri("a.ndjson")
    (True, False)
    """
    return os.fspath(path).startswith("s3://")


def write_object(uri: str, blocks: Iterator[bytes]) -> None:
    """Write an object from blocks of bytes, with the settings of the `AWS_*` variables or the selected AWS profile.

    Raises:
        InputError: the URI has no bucket or no name, or the store refused the object. The message names the object.

    """
    from .s3 import S3Backend

    folder, _, name = uri.removeprefix("s3://").rpartition("/")
    if not folder or not name:
        raise InputError(f"cannot write {uri}: expected s3://bucket/name", reason="unwritable")
    try:
        S3Backend.connect(GraphRoot("s3", folder, s3_options(os.environ))).write_blocks(name, blocks)
    except (StorageError, OSError) as error:
        reason = error.message if isinstance(error, OmnigraphError) else str(error)
        hint = "check the bucket, the AWS_* variables and the permissions"
        raise InputError(f"cannot write {uri}: {reason}", reason="unwritable", hint=hint) from error
