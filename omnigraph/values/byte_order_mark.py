"""Detect the encoding of text from its byte order mark.

This module only recognizes byte order marks. It does not decode text or guess an encoding if there is no mark.
"""

import codecs

# UTF-32 must come first, because its little-endian mark begins with the little-endian UTF-16 mark.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 4


def encoding_from_mark(first_bytes: bytes) -> str | None:
    r"""Return the Python codec for text that begins with a byte order mark, or None if there is no mark.

    >>> encoding_from_mark(b"\xef\xbb\xbfa"), encoding_from_mark("a".encode("utf-16")), encoding_from_mark(b"a")
    ('utf-8-sig', 'utf-16', None)
    """
    return next((encoding for mark, encoding in _MARKS if first_bytes.startswith(mark)), None)


def looks_like_unmarked_utf16(first_bytes: bytes) -> bool:
    r"""Return whether every other byte is NUL, as is typical of English text in UTF-16 without a mark.

    >>> looks_like_unmarked_utf16("name".encode("utf-16-le")), looks_like_unmarked_utf16(b"name")
    (True, False)
    """
    sample = first_bytes[:_SAMPLE_BYTES]
    halves = (sample[0::2], sample[1::2])
    return len(sample) == _SAMPLE_BYTES and any(sample) and any(not any(half) for half in halves)
