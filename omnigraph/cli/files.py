"""Read and write the files that are named on the command line.

A path argument is a file, a directory, or `-` for standard input. Unreadable files raise typed errors, and files are
replaced atomically.
"""

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from omnigraph.errors import InputError
from omnigraph.errors.diagnostics import SourceText
from omnigraph.lang.parsing import decode_source

from . import show

STDIN = "-"


def read_source(path: str) -> SourceText:
    """Read a file, or standard input for `-`; errors name the path."""
    try:
        content = _read_stdin() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read {display_name(path)}: {error.strerror}",
            reason="unreadable",
            hint="check the path and its permissions",
        ) from error
    return decode_source(content, display_name(path))


def display_name(path: str) -> str:
    """Return the name that messages use for a path."""
    return "<stdin>" if path == STDIN else path


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return sys.stdin.buffer.read()


def reject_repeated_stdin(*paths: str) -> None:
    """Raise an error if standard input would be read twice, because the second read would be empty."""
    if paths.count(STDIN) > 1:
        raise click.UsageError("standard input (`-`) can be read only once")


def is_single_file(paths: Sequence[str]) -> bool:
    """Return whether the paths name exactly one file and no directory."""
    return len(paths) == 1 and (paths[0] == STDIN or not Path(paths[0]).is_dir())


def expand_directories(paths: Iterable[str], *suffixes: str) -> Iterator[str]:
    """Replace each directory with the files below it whose names end in one of the suffixes."""
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            yield path
            continue
        matching_files = [
            file_path
            for file_path in sorted(Path(path).rglob("*"))
            if file_path.suffix in suffixes and file_path.is_file()
        ]
        if not matching_files:
            show.note(f"no {' or '.join(suffixes)} files in {path}")
        yield from map(str, matching_files)


def replace_text(path: str, text: str) -> None:
    """Replace a regular file atomically; an interruption leaves the old file in place."""
    target = Path(path).resolve()
    if not target.is_file():
        reason = "it is not a regular file"
        raise InputError(
            f"cannot replace {path}: {reason}",
            reason="unwritable",
            hint="pass a regular file, or `-` to read from a pipe",
        )
    temporary_file = _create_temporary_file(target, path)
    try:
        temporary_file.write_text(text, encoding="utf-8", newline="")
        temporary_file.chmod(target.stat().st_mode)
        temporary_file.replace(target)
    except OSError as error:
        raise _write_error(path, error) from error
    finally:
        temporary_file.unlink(missing_ok=True)


def _create_temporary_file(target: Path, path: str) -> Path:
    import tempfile

    try:
        descriptor, temporary_name = tempfile.mkstemp(dir=target.parent, prefix=".omnigraph-")
    except OSError as error:
        raise _write_error(path, error) from error
    os.close(descriptor)
    return Path(temporary_name)


def _write_error(path: str, error: OSError) -> InputError:
    hint = "check free disk space and permissions"
    return InputError(f"cannot write {path}: {error.strerror}", reason="unwritable", hint=hint)
