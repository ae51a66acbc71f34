"""Guess the media type of content from its first bytes.

Only formats with an unambiguous signature are recognized. Otherwise, UTF-8 text without control characters is
`text/plain`, and everything else is `application/octet-stream`. File names are never used.
"""

LEADING_BYTES = 512  # the number of leading bytes that `guess_media_type` examines
_UNKNOWN, _TEXT = "application/octet-stream", "text/plain"
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
# Formats whose signature is not at the start of the content, as (offset, signature, media type).
_INNER_SIGNATURES = (
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftyp", "video/mp4"),
)
_TEXT_CONTROLS = frozenset(b"\t\n\r\f")


def guess_media_type(leading_bytes: bytes) -> str:
    r"""Return the media type indicated by the first bytes of the content.

    >>> guess_media_type(b"%PDF-1.7"), guess_media_type("Grüße\n".encode()), guess_media_type(b"\x00\x01")
    ('application/pdf', 'text/plain', 'application/octet-stream')
    """
    for signature, media_type in _SIGNATURES:
        if leading_bytes.startswith(signature):
            return media_type
    for offset, signature, media_type in _INNER_SIGNATURES:
        if leading_bytes[offset : offset + len(signature)] == signature:
            return media_type
    return _TEXT if leading_bytes and _is_text(leading_bytes[:LEADING_BYTES]) else _UNKNOWN


def _is_text(leading_bytes: bytes) -> bool:
    if any(byte < 0x20 and byte not in _TEXT_CONTROLS for byte in leading_bytes):
        return False
    try:
        leading_bytes.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"  # the excerpt may end in the middle of a character
    return True
