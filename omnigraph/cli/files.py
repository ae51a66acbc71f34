"""Reading and writing the files that commands name.

Owns what a path argument may be (a file, a directory, `-` for standard input) and the typed errors
for those that cannot be read. A file is replaced as a whole or not at all.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from omnigraph.diagnostics import Source
from omnigraph.errors import InputError
from omnigraph.lang.parsing import decode

STDIN = "-"


def read_source(path: str) -> Source:
    """The text of a file, or of standard input for `-`; errors name the path."""
    if path == STDIN:
        return decode(sys.stdin.buffer.read(), "<stdin>")
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", reason="unreadable") from error
    return decode(data, path)


def expand(paths: Iterable[str], *suffixes: str) -> Iterator[str]:
    """The paths with every directory replaced by the files below it that end in a suffix."""
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            found = (p for p in sorted(Path(path).rglob("*")) if p.suffix in suffixes)
            yield from (str(p) for p in found if p.is_file())
        else:
            yield path


def replace_text(path: str, text: str) -> None:
    """Put `text` in the place of a file, in one move: whoever is cut off leaves the old file."""
    target = Path(path).resolve()
    scratch = _scratch_beside(target, path)
    try:
        scratch.write_text(text, encoding="utf-8", newline="")
        scratch.chmod(target.stat().st_mode)
        scratch.replace(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        scratch.unlink(missing_ok=True)


def _scratch_beside(target: Path, path: str) -> Path:
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise _unwritable(path, error) from error
    os.close(handle)
    return Path(name)


def _unwritable(path: str, error: OSError) -> InputError:
    return InputError(f"cannot write {path}: {error.strerror}", reason="unwritable")
