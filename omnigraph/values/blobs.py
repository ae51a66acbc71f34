"""The text form of a blob: bytes as base64, or the URI of an external object.

Never reads an object and never decides whether a URI is allowed.
"""

from omnigraph.record import record

_PREFIX = "base64:"


@record
class BlobUri:
    """A blob that is stored outside the graph."""

    uri: str


def parse_blob(text: str) -> bytes | BlobUri | None:
    """Return the blob that a text encodes; None if its base64 is malformed.

    >>> parse_blob("base64:aGk="), parse_blob("base64:"), parse_blob("base64:aGk")
    (b'hi', b'', None)
    >>> parse_blob("s3://shelf/cover.png")
    BlobUri(uri='s3://shelf/cover.png')
    """
    if not text.startswith(_PREFIX):
        return BlobUri(text)
    from binascii import Error, a2b_base64

    digits = text[len(_PREFIX) :]
    try:
        data = a2b_base64(digits, strict_mode=True)
    except (Error, ValueError):
        return None
    # Unused bits of the last digit must be zero, so that each value has exactly one spelling.
    left = len(data) % 3
    return data if not left or _base64(data[-left:]) == digits[-4:] else None


def format_blob(value: bytes | BlobUri) -> str:
    """Return the text form of a blob.

    >>> format_blob(b"hi")
    'base64:aGk='
    """
    if isinstance(value, BlobUri):
        return value.uri
    return _PREFIX + _base64(value)


def _base64(data: bytes) -> str:
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode()
