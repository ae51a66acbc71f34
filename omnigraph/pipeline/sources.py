"""Inputs of a load: NDJSON, Parquet and CSV files, given as paths, folders, patterns or `s3://`.

Owns how input files are found, opened and cut into pieces of work. A piece numbers its own records
from 1; `RecordPositions` turns these numbers into lines of files once all pieces have reported how
many lines they had.
"""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.ingest.files import blocks_of, cut_blocks, packing_of
from omnigraph.ingest.frames import take_table, type_named
from omnigraph.ingest.intake import Intake
from omnigraph.ingest.ndjson import read_blocks
from omnigraph.ingest.problem import Problem, located
from omnigraph.storage.root import s3_options

Form = Literal["ndjson", "parquet", "csv", "frame"]
Names = Mapping[str, Mapping[str, str]]
SHIFT = 40  # bits for the number of a record within its piece
_MASK = (1 << SHIFT) - 1
_SUFFIXES: dict[str, Form] = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".parquet": "parquet",
    ".csv": "csv",
}
_BLOCK = 4 << 20  # bytes read at once
_LOOK = 1 << 16  # bytes read at once while searching for the end of a line
_PACKED = (".gz", ".zst")
_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Input:
    """One file, with the type of its rows if the rows do not name it themselves.

    `store_options` are the settings for reaching it, `base_folder` is where a relative path starts:
    a task on another machine knows neither.
    """

    path: str
    form: Form
    type: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    options: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    folder: str = field(default_factory=os.getcwd, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Piece:
    """The share of a file for one task: bytes of NDJSON, row groups of Parquet, a whole CSV."""

    number: int
    input: Input
    start: int = 0
    end: int | None = None


def find_inputs(data: Any, form: str | None = None, mapping: Names | None = None) -> list[Input]:
    """Find the files of a path, several paths, or a mapping of types to paths, in order."""
    mapping = mapping or {}
    if isinstance(data, Mapping):
        pairs = [(name, one) for name, part in data.items() for one in _several(part)]
    else:
        pairs = [(None, one) for one in _several(data)]
    found = [each for name, one in pairs for each in _found(os.fspath(one), name, form, mapping)]
    if not found:
        raise InputError("there are no files to load", reason="no input")
    return found


def are_files(data: Any) -> bool:
    """Whether an input consists only of paths."""
    parts = list(data.values()) if isinstance(data, Mapping) else [data]
    each = [one for part in parts for one in _several(part)]
    return bool(each) and all(isinstance(one, str | os.PathLike) for one in each)


def _several(data: Any) -> Sequence[Any]:
    return data if isinstance(data, list | tuple) else [data]


def _found(path: str, name: str | None, form: str | None, mapping: Names) -> Iterator[Input]:
    reach = s3_options(os.environ) if path.startswith("s3://") else {}
    files = list(_files(path, form))
    if not files:
        raise InputError(f"cannot read {path}: No such file or directory", reason="unreadable")
    for one, size in files:
        kind = form or form_of(one) or ("ndjson" if name is None else None)
        if kind is None or (kind == "ndjson" and name is not None):
            raise InputError(f"{one}: expected a CSV or Parquet file", reason="unknown format")
        known = name if kind == "ndjson" else name or _named(one, mapping)
        renamed = mapping.get(known or "", {})
        yield Input(one, kind, known, dict(renamed), size, reach)  # type: ignore[arg-type]


def _files(path: str, form: str | None) -> Iterable[tuple[str, int]]:
    if path.startswith("s3://"):
        return _objects(path, form)
    place = Path(path)
    if place.is_dir():
        inside = sorted(one for one in place.rglob("*") if one.is_file())
        kept = [one for one in inside if not one.name.startswith((".", "_"))]
    elif _PATTERN & set(path) and not place.exists():
        kept = sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207 - any root
    else:
        return [(path, place.stat().st_size)] if place.exists() else []
    return [(str(one), one.stat().st_size) for one in kept if form or form_of(str(one))]


def _objects(path: str, form: str | None) -> list[tuple[str, int]]:
    from fnmatch import fnmatchcase

    from pyarrow.fs import FileSelector, FileType

    system, name = s3_system(s3_options(os.environ)), path.removeprefix("s3://")
    base = name
    if _PATTERN & set(name):
        base = name[: min(name.index(mark) for mark in _PATTERN if mark in name)].rpartition("/")[0]
    elif system.get_file_info(name).type == FileType.File:
        return [(path, system.get_file_info(name).size)]
    listed = system.get_file_info(FileSelector(base, recursive=True, allow_not_found=True))
    files = [one for one in listed if one.type == FileType.File]
    if base != name:
        files = [one for one in files if fnmatchcase(one.path, name)]
    kept = [(f"s3://{one.path}", one.size) for one in files]
    return sorted(one for one in kept if form or form_of(one[0]))


def s3_system(options: Mapping[str, str]) -> Any:
    """Return a pyarrow file system for the settings of an S3 client."""
    from pyarrow.fs import S3FileSystem

    endpoint = options.get("aws_endpoint", "")
    scheme, _, host = endpoint.rpartition("://")
    return S3FileSystem(
        access_key=options.get("aws_access_key_id"),
        secret_key=options.get("aws_secret_access_key"),
        session_token=options.get("aws_session_token"),
        region=options.get("aws_region"),
        endpoint_override=host or None,
        scheme=scheme or "https",
    )


def form_of(path: str) -> Form | None:
    """Return the format that a file name implies.

    >>> form_of("a/b.jsonl.gz"), form_of("papers.parquet"), form_of("notes.txt")
    ('ndjson', 'parquet', None)
    """
    name = Path(path)
    if name.suffix in _PACKED:
        name = name.with_suffix("")
    return _SUFFIXES.get(name.suffix)


def _named(path: str, mapping: Names) -> str:
    """Return the type of a file of rows: its stem, or the name of its folder."""
    stem, folder = Path(path).stem, Path(path).parent.name
    if folder in mapping or stem.startswith("part-"):
        return folder
    return stem


def pieces_of(inputs: Sequence[Input], size: int) -> list[Piece]:
    """Cut inputs into pieces of about `piece_bytes` bytes, in input order."""
    spans = [(one, start, end) for one in inputs for start, end in _spans(one, size)]
    return [Piece(number, *span) for number, span in enumerate(spans)]


def _spans(one: Input, size: int) -> list[tuple[int, int | None]]:
    if one.form == "parquet":
        return _row_groups(one, size)
    whole = one.form == "csv" or Path(one.path).suffix in _PACKED or one.size <= size
    if whole or _begins_packed(one):
        return [(0, None)]
    return [(at, min(at + size, one.size)) for at in range(0, one.size, size)]


def _begins_packed(one: Input) -> bool:
    with open_input(one) as file:
        return packing_of(bytes(file.read(4))) is not None


def _row_groups(one: Input, size: int) -> list[tuple[int, int | None]]:
    import pyarrow.parquet as pq

    with open_input(one) as file, reported(one.path):
        meta = pq.read_metadata(file)
    spans: list[tuple[int, int | None]] = []
    start, held = 0, 0
    for at in range(meta.num_row_groups):
        held += meta.row_group(at).total_byte_size
        if held >= size or at == meta.num_row_groups - 1:
            spans.append((start, at + 1))
            start, held = at + 1, 0
    return spans or [(0, 0)]


class reported:
    """Turns read errors into `InputError` that name the file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError | pa.ArrowException) and not isinstance(error, InputError):
            reason = getattr(error, "strerror", None) or str(error)
            text = f"cannot read {self.path}: {reason}"
            raise InputError(text, reason="unreadable") from error


def open_input(one: Input) -> IO[bytes]:
    """Open a file for reading, local or on S3."""
    with reported(one.path):
        if one.path.startswith("s3://"):
            name = one.path.removeprefix("s3://")
            opened: IO[bytes] = s3_system(one.options).open_input_file(name)
            return opened
        return Path(one.folder, one.path).open("rb")


def blocks_of_piece(piece: Piece, longest: int) -> Iterator[bytes]:
    """Yield, in blocks, the lines that begin inside a piece of NDJSON."""
    with open_input(piece.input) as file, reported(piece.input.path):
        if piece.end is None:
            yield from blocks_of(file, longest)
        else:
            yield from cut_blocks(_texts_of(file, piece.start, piece.end), longest)


def _texts_of(file: IO[bytes], start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of all lines that begin in a span of a file, in blocks of bounded size."""
    if start:
        file.seek(start - 1)
        start += sum(map(len, _rest_of_line(file))) - 1
        file.seek(start)
    last = b"\n"
    while start < end and (last := file.read(min(_BLOCK, end - start))):
        start += len(last)
        yield last
    if not last.endswith(b"\n"):
        yield from _rest_of_line(file)


def _rest_of_line(file: IO[bytes]) -> Iterator[bytes]:
    # Not `readline`: object store files lack it, and it has no size limit.
    while part := file.read(_LOOK):
        line, ended, _ = part.partition(b"\n")
        yield line + ended
        if ended:
            return


def tables_of_piece(piece: Piece) -> Iterator[pa.Table]:
    """Yield the rows of a piece of Parquet or CSV, with columns renamed by the mapping."""
    names = piece.input.names
    with reported(piece.input.path):
        for one in _tables(piece):
            if not names:
                yield one
            else:
                yield one.rename_columns([names.get(name, name) for name in one.column_names])


def _tables(piece: Piece) -> Iterator[pa.Table]:
    with open_input(piece.input) as file:
        if piece.input.form == "csv":
            import pyarrow.csv

            yield pyarrow.csv.read_csv(file)
            return
        import pyarrow.parquet as pq

        opened = pq.ParquetFile(file)
        end = opened.num_row_groups if piece.end is None else piece.end
        for batch in opened.iter_batches(65_536, row_groups=list(range(piece.start, end))):
            yield pa.Table.from_batches([batch])


@dataclass(frozen=True, slots=True)
class Spots:
    """Where records are: the path of each piece, and the lines before it in that file."""

    files: Mapping[int, str]
    before: Mapping[int, int]

    def line(self, spot: int) -> int | None:
        """Return the line of a record in its file; None for rows of a DataFrame."""
        number = spot >> SHIFT
        return (spot & _MASK) + self.before[number] if number in self.files else None

    def file(self, spot: int | None) -> str | None:
        """Return the path of a record's file."""
        return None if spot is None else self.files.get(spot >> SHIFT)

    def locate(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return problems in input order, with the lines of their files."""
        ordered = sorted(problems, key=lambda one: (one.line is None, one.line or 0))
        return [located(one, self.line, self.file(one.line)) for one in ordered]


def spots(pieces: Sequence[Piece], lines: Mapping[int, int]) -> Spots:
    """Combine the line counts that pieces reported."""
    before: dict[int, int] = {}
    path, held = None, 0
    for one in pieces:
        held = held if one.input.path == path else 0
        path = one.input.path
        before[one.number] = held
        held += lines.get(one.number, 0)
    return Spots({one.number: one.input.path for one in pieces}, before)


def first_spot(number: int) -> int:
    """Return the position of the first record of a piece."""
    return number << SHIFT | 1


def total_size(inputs: Sequence[Input]) -> int:
    """Return the bytes of all files."""
    return sum(one.size for one in inputs)


class Files:
    """Files as one input of a load in this process; each is one piece."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self.pieces = [Piece(number, one) for number, one in enumerate(inputs)]
        self.spots = Spots({p.number: p.input.path for p in self.pieces}, _NothingBefore())

    def take_into(self, intake: Intake, *, truncating: bool, report: bool) -> None:
        """Pass all records to an intake."""
        for piece in self.pieces:
            first = first_spot(piece.number)
            if piece.input.form == "ndjson":
                blocks = blocks_of_piece(piece, intake.limits.line_bytes)
                for _ in read_blocks(
                    intake, blocks, truncating=truncating, report=report, first=first
                ):
                    pass
                continue
            one = type_named(intake, piece.input.type or "")
            for table in tables_of_piece(replace(piece, end=None)):
                take_table(intake, one, table, first)
                first += table.num_rows


class _NothingBefore(dict[int, int]):
    def __missing__(self, _: int) -> int:
        return 0
