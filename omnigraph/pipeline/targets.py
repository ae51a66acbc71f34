"""Where an export goes: a folder on a disk that all workers see, or a prefix on S3."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.storage.root import parse_root


@dataclass(frozen=True, slots=True)
class Target:
    """A place for files; what is secret in its settings never shows."""

    scheme: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def at(self, name: str) -> str:
        """The whole name of a file inside."""
        return f"{self.path}/{name}" if self.scheme == "file" else f"s3://{self.path}/{name}"

    def claim(self) -> None:
        """Refuse a place where something is already."""
        from pyarrow.fs import FileSelector

        with _told(self):
            inside = FileSelector(self.path, allow_not_found=True)
            if self._system().get_file_info(inside):
                raise InputError(
                    f"{self.at('')} is not empty", reason="export", hint="give a new folder"
                )
            self._system().create_dir(self.path, recursive=True)

    def create(self, name: str) -> Any:
        """A new file, to be closed."""
        with _told(self):
            self._system().create_dir(f"{self.path}/{name}".rpartition("/")[0], recursive=True)
            return self._system().open_output_stream(f"{self.path}/{name}")

    def move(self, name: str, to: str) -> None:
        """Give a file another name."""
        with _told(self):
            self._system().move(f"{self.path}/{name}", f"{self.path}/{to}")

    def remove(self, folder: str) -> None:
        """Remove a folder with what is in it."""
        with suppress(FileNotFoundError):
            self._system().delete_dir(f"{self.path}/{folder}")

    def _system(self) -> Any:
        if self.scheme == "file":
            from pyarrow.fs import LocalFileSystem

            return LocalFileSystem()
        from .sources import s3_system

        return s3_system(self.options)


def target_of(folder: str | os.PathLike[str]) -> Target:
    """The place that a path or an `s3://` address names."""
    root = parse_root(folder)
    return Target(root.scheme, root.path, root.options)


class _told:  # noqa: N801 - reads as a sentence
    """Says of a failure where it happened."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError | pa.ArrowException) and not isinstance(error, InputError):
            hint = "is there room, and may you write there?"
            text = f"cannot write to {self.target.at('')}: {error}"
            raise InputError(text, reason="unwritable", hint=hint) from error
