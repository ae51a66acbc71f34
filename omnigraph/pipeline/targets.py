"""The target of an export: a folder on a disk that all workers share, or a prefix on S3."""

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
    """A folder for files; secrets in its settings must never appear in its `repr`."""

    scheme: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def at(self, name: str) -> str:
        """Return the full path or address of a file inside."""
        return f"{self.path}/{name}" if self.scheme == "file" else f"s3://{self.path}/{name}"

    def claim(self) -> None:
        """Create the folder; raise `InputError` if it contains anything."""
        from pyarrow.fs import FileSelector

        with _told(self):
            inside = FileSelector(self.path, allow_not_found=True)
            if self._system().get_file_info(inside):
                raise InputError(
                    f"{self.at('')} is not empty", reason="export", hint="choose a new folder"
                )
            self._system().create_dir(self.path, recursive=True)

    def create(self, name: str) -> Any:
        """Open a new file for writing; the caller closes it."""
        with _told(self):
            self._system().create_dir(f"{self.path}/{name}".rpartition("/")[0], recursive=True)
            return self._system().open_output_stream(f"{self.path}/{name}")

    def move(self, name: str, to: str) -> None:
        """Rename a file."""
        with _told(self):
            self._system().move(f"{self.path}/{name}", f"{self.path}/{to}")

    def remove(self, folder: str) -> None:
        """Remove a folder and its contents."""
        with suppress(FileNotFoundError):
            self._system().delete_dir(f"{self.path}/{folder}")

    def _system(self) -> Any:
        if self.scheme == "file":
            from pyarrow.fs import LocalFileSystem

            return LocalFileSystem()
        from .sources import s3_system

        return s3_system(self.options)


def target_of(folder: str | os.PathLike[str]) -> Target:
    """Parse a path or an `s3://` address."""
    root = parse_root(folder)
    return Target(root.scheme, root.path, root.options)


class _told:
    """Turns write errors into `InputError` that name the target."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError | pa.ArrowException) and not isinstance(error, InputError):
            hint = "check free space and write permission"
            text = f"cannot write to {self.target.at('')}: {error}"
            raise InputError(text, reason="unwritable", hint=hint) from error
