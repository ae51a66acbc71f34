"""Single S3 objects outside any graph, such as exports and input files for loads.

An object becomes visible only when it is complete, and an existing object is replaced. This module never writes below
the root of a graph, so its writes do not go through the effects gateway.
"""

import os
from collections.abc import Iterator, Mapping

from omnigraph.errors import InputError, OmnigraphError, StorageError
from omnigraph.records.frozen import record

from .root import GraphRoot, s3_options


def is_s3_uri(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is an `s3://` URI.

    >>> is_s3_uri("s3://bucket/a.ndjson"), is_s3_uri("a.ndjson")
    (True, False)
    """
    return os.fspath(path).startswith("s3://")


def write_object(uri: str, blocks: Iterator[bytes]) -> None:
    """Write an object from blocks of bytes, using the `AWS_*` variables or the selected AWS profile.

    Raises: InputError: The URI has no bucket or no name, or the object cannot be written. The message contains the URI.

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


@record
class ReadFailure:
    """The reason why an object cannot be read, and a hint about what to do."""

    reason: str
    hint: str | None = None


def explain_unreadable(uri: str, options: Mapping[str, str]) -> ReadFailure | None:
    """Ask the store why an object or a folder cannot be read; return None if the store has the object.

    The messages of client errors are never shown, because they contain internal details such as library names.
    """
    from .s3 import S3Backend

    bucket, _, name = uri.removeprefix("s3://").partition("/")
    try:
        backend = S3Backend.connect(GraphRoot("s3", bucket, options))
        if backend.exists(name or "/"):
            return None
    except StorageError as error:
        if error.kind == "configuration":
            hint = "check the AWS_* variables or AWS_PROFILE, and the permissions for the bucket"
            return ReadFailure("the store denied access", hint)
        return ReadFailure("the store does not respond", "check AWS_ENDPOINT_URL, AWS_REGION and the network")
    try:
        backend.list_first(name, 1)
    except StorageError:  # the store has just answered a request with the same settings
        return ReadFailure(f"the bucket '{bucket}' does not exist", "check the name, AWS_REGION and AWS_ENDPOINT_URL")
    return ReadFailure("no such object")
