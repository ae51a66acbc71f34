"""Read the files that callers pass as blobs, before their bytes are sent. Only this module opens such files."""

from pathlib import Path
from typing import Any

from omnigraph.errors import InputError


def read_blob(source: Any) -> bytes:
    """Return the bytes of a path or of a file that is open in binary mode."""
    try:
        content = source.read() if hasattr(source, "read") else Path(source).read_bytes()
    except OSError as error:
        name = getattr(source, "name", "the file") if hasattr(source, "read") else Path(source).absolute()
        raise InputError(reason=f"cannot read {name}: {error.strerror or error}") from None
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InputError(reason="the file must be opened in binary mode", hint='use open(path, "rb")')
    return bytes(content)
