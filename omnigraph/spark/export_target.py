"""The target of an export: a folder that all workers share, or an S3 prefix.

The target is sent to the export tasks, which use it to write their parts.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.storage.root import parse_root


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """A folder for exported files; secrets in its settings must never appear in its `repr`."""

    scheme: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def full_path(self, name: str) -> str:
        """Return the full path or URI of a file in the folder."""
        return f"{self.path}/{name}" if self.scheme == "file" else f"s3://{self.path}/{name}"

    def claim_empty_folder(self) -> None:
        """Create the folder; raise `InputError` if it exists and is not empty."""
        from pyarrow.fs import FileSelector

        with _WriteErrorContext(self):
            selector = FileSelector(self.path, allow_not_found=True)
            if self._file_system().get_file_info(selector):
                message = f"cannot export to {self.full_path('')}: the folder is not empty"
                raise InputError(message, reason="export", hint="choose a new folder")
            self._file_system().create_dir(self.path, recursive=True)

    def create_file(self, name: str) -> Any:
        """Open a new file for writing; the caller must close it."""
        with _WriteErrorContext(self):
            self._file_system().create_dir(f"{self.path}/{name}".rpartition("/")[0], recursive=True)
            return self._file_system().open_output_stream(f"{self.path}/{name}")

    def rename_file(self, old_name: str, new_name: str) -> None:
        """Rename a file."""
        with _WriteErrorContext(self):
            self._file_system().move(f"{self.path}/{old_name}", f"{self.path}/{new_name}")

    def remove_folder(self, folder: str) -> None:
        """Remove a folder and its contents."""
        with suppress(FileNotFoundError):
            self._file_system().delete_dir(f"{self.path}/{folder}")

    def _file_system(self) -> Any:
        if self.scheme == "file":
            from pyarrow.fs import LocalFileSystem

            return LocalFileSystem()
        from omnigraph.ingest.input_files import s3_file_system

        return s3_file_system(self.options)


def parse_export_target(folder: str | os.PathLike[str]) -> ExportTarget:
    """Parse a path or an `s3://` URI."""
    root = parse_root(folder)
    return ExportTarget(root.scheme, root.path, root.options)


class _WriteErrorContext:
    """A context manager that converts write errors to `InputError`s that mention the target."""

    def __init__(self, target: ExportTarget) -> None:
        self.target = target

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError | pa.ArrowException) and not isinstance(error, InputError):
            hint = "check the free space and the write permission"
            message = f"cannot write to {self.target.full_path('')}: {error}"
            raise InputError(message, reason="unwritable", hint=hint) from error
