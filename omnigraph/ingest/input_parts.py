"""The parts of a load's input: paths with or without a type, open files, and records in memory.

This module decides whether an input contains files, and lists its parts in order. A list contains untyped paths and
mappings by type; a mapping assigns files, tables or records to a type. A list of records contains no files; `frames`
handles it.
"""

import os
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from omnigraph.errors import InputError

from .input_files import FileOptions, InputFile, resolve_path

_RECORD_MEMBERS = frozenset({"type", "edge"})
Part = tuple[str | None, Any]  # (type, part)


def is_text_source(source: Any) -> bool:
    """Return whether an input is a path, a file or bytes, whose content must be read first."""
    return isinstance(source, str | os.PathLike | bytes) or hasattr(source, "read")


def has_files(data: Any) -> bool:
    """Return whether an input contains at least one path, or an open file whose type is known.

    >>> has_files("people.ndjson"), has_files([{"Person": "p.csv"}, "rest.ndjson"]), has_files([{"type": "Person"}])
    (True, True, False)
    """
    if isinstance(data, str | os.PathLike):
        return True
    if isinstance(data, list | tuple):
        return bool(data) and all(map(_is_list_part, data)) and any(map(has_files, data))
    return isinstance(data, Mapping) and any(is_text_source(part) for _, part in _iter_parts(data))


def are_paths(data: Any) -> bool:
    """Return whether an input consists only of paths, which every engine can read."""
    return has_files(data) and all(isinstance(part, str | os.PathLike) for _, part in _iter_parts(data))


def find_input_files(data: Any, options: FileOptions | None = None) -> list[InputFile]:
    """Return all parts of an input in order: the files that its paths name, open files, and records in memory."""
    options = options or FileOptions()
    input_files = [
        input_file for type_name, part in _iter_parts(data) for input_file in _resolve_part(type_name, part, options)
    ]
    if not input_files:
        raise InputError("there are no files to load", reason="no input")
    return input_files


def _is_list_part(item: Any) -> bool:
    is_record = isinstance(item, Mapping) and not _RECORD_MEMBERS.isdisjoint(item)
    return isinstance(item, str | os.PathLike) or (isinstance(item, Mapping) and not is_record)


def _is_file_list(type_input: Any) -> bool:
    """Return whether one type's input is a list of files; a list that begins with a mapping contains records."""
    if not isinstance(type_input, list | tuple):
        return False
    return any(map(is_text_source, takewhile(lambda item: not isinstance(item, Mapping), type_input)))


def _iter_parts(data: Any) -> Iterator[Part]:
    if isinstance(data, list | tuple):
        for item in data:
            yield from _iter_parts(item)
    elif isinstance(data, Mapping):
        for type_name, type_input in data.items():
            for part in type_input if _is_file_list(type_input) else [type_input]:
                yield str(type_name), part
    else:
        yield None, data


def _resolve_part(type_name: str | None, part: Any, options: FileOptions) -> Iterator[InputFile]:
    if isinstance(part, str | os.PathLike):
        yield from resolve_path(os.fspath(part), type_name, options)
        return
    column_mapping = dict(options.column_mappings.get(type_name or "", {}))
    if not is_text_source(part):
        yield InputFile("", "frame", type_name, column_mapping, content=part)
        return
    stream_name = getattr(part, "name", None)
    yield InputFile(
        stream_name if isinstance(stream_name, str) else "",
        options.file_format or "ndjson",  # type: ignore[arg-type]
        type_name,
        column_mapping,
        csv_options=options.csv_options,
        content=part,
    )
