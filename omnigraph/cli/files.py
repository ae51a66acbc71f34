"""Reading and writing the files that are named on the command line.

Owns what a path argument may be (a file, a directory, `-` for standard input) and the typed errors
for unreadable ones. A file is replaced atomically.
"""

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from omnigraph.diagnostics import Source
from omnigraph.errors import InputError
from omnigraph.lang.parsing import decode

from . import show

STDIN = "-"


def read_source(path: str) -> Source:
    """Read a file, or standard input for `-`; errors name the path."""
    try:
        data = _stdin() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read {name_of(path)}: {error.strerror}",
            reason="unreadable",
            hint="check the path and its permissions",
        ) from error
    return decode(data, name_of(path))


def name_of(path: str) -> str:
    """Return how messages refer to a path."""
    return "<stdin>" if path == STDIN else path


def _stdin() -> bytes:
    if sys.stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return sys.stdin.buffer.read()


def once(*paths: str) -> None:
    """Reject reading standard input twice: the second read would be empty."""
    if paths.count(STDIN) > 1:
        raise click.UsageError("standard input (`-`) can be read only once")


def lone(paths: Sequence[str]) -> bool:
    """Return whether the paths name a single file, as opposed to a directory of any size."""
    return len(paths) == 1 and (paths[0] == STDIN or not Path(paths[0]).is_dir())


def expand(paths: Iterable[str], *suffixes: str) -> Iterator[str]:
    """Replace each directory with the files below it that end in one of the suffixes."""
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            yield path
            continue
        found = [p for p in sorted(Path(path).rglob("*")) if p.suffix in suffixes and p.is_file()]
        if not found:
            show.note(f"no {' or '.join(suffixes)} files in {path}")
        yield from map(str, found)


def replace_text(path: str, text: str) -> None:
    """Replace a file atomically: an interruption leaves the old file."""
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
    import tempfile

    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".omnigraph-")
    except OSError as error:
        raise _unwritable(path, error) from error
    os.close(handle)
    return Path(name)


def _unwritable(path: str, error: OSError) -> InputError:
    hint = "check free disk space and permissions"
    return InputError(f"cannot write {path}: {error.strerror}", reason="unwritable", hint=hint)
