"""The forms, other than bytes, in which callers can pass a blob: base64 text, an external object's URI, or a file.

This module does not read files or external objects, and does not decide which URIs are allowed.
"""

import os
from typing import Any

from omnigraph.records.frozen import record

_BASE64_PREFIX = "base64:"


@record
class BlobUri:
    """A blob that is stored outside the graph."""

    uri: str


@record
class BlobDigest:
    """A large blob in a merge conflict, represented by its size and hash instead of its bytes.

    A function that resolves conflicts can return the digest as the property's value.
    """

    size: int
    content_hash: str

    def to_json(self) -> dict[str, Any]:
        """Return the digest in the JSON form that merge conflicts use."""
        return {"size": self.size, "content_hash": self.content_hash}


@record
class BlobSource:
    """A blob that a caller passed as a path or as an open binary file."""

    source: Any


def blob_source(value: object) -> BlobSource | None:
    """Return the blob source for a path or a binary file, or None for any other value.

    >>> from pathlib import Path
    >>> blob_source(Path("cover.png")), blob_source("cover.png")
    (BlobSource(source=PosixPath('cover.png')), None)
    """
    is_file = isinstance(value, os.PathLike) or callable(getattr(value, "read", None))
    return BlobSource(value) if is_file else None


def parse_blob(blob_text: str) -> bytes | BlobUri | None:
    """Return the bytes or the URI that a string represents, or None if its base64 is malformed.

    >>> parse_blob("base64:aGk="), parse_blob("base64:"), parse_blob("base64:aGk")
    (b'hi', b'', None)
    >>> parse_blob("s3://shelf/cover.png")
    BlobUri(uri='s3://shelf/cover.png')
    """
    if not blob_text.startswith(_BASE64_PREFIX):
        return BlobUri(blob_text)
    from binascii import Error, a2b_base64

    base64_digits = blob_text[len(_BASE64_PREFIX) :]
    try:
        decoded_bytes = a2b_base64(base64_digits, strict_mode=True)
    except (Error, ValueError):
        return None
    # Unused bits in the last digit must be zero, so that each value has exactly one encoding.
    trailing_count = len(decoded_bytes) % 3
    return (
        decoded_bytes
        if not trailing_count or _encode_base64(decoded_bytes[-trailing_count:]) == base64_digits[-4:]
        else None
    )


def format_blob(blob: bytes | BlobUri) -> str:
    """Return the string form of a blob.

    >>> format_blob(b"hi")
    'base64:aGk='
    """
    if isinstance(blob, BlobUri):
        return blob.uri
    return _BASE64_PREFIX + _encode_base64(blob)


def _encode_base64(content: bytes) -> str:
    from binascii import b2a_base64

    return b2a_base64(content, newline=False).decode()
