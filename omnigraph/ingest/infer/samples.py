"""Read samples for a schema proposal: tables, frames, records, and CSV, NDJSON or Parquet files.

A sample is a table with one type's first rows. Cells in a CSV file stay text, because the proposal chooses the types.
Samples use the same readers as loads, so everything that can be loaded can be sampled.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from itertools import islice
from os import PathLike, fspath
from typing import Any, Literal

import orjson
import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.ingest.files import iter_lines
from omnigraph.ingest.frames import is_frame, to_arrow_table
from omnigraph.ingest.input_files import FileOptions, InputFile, ReadErrorContext, open_input_file, resolve_path
from omnigraph.ingest.load_limits import check_limit, load_limits
from omnigraph.ingest.table_files import iter_tables
from omnigraph.lang.schema.propose.proposal import type_name
from omnigraph.values.table_key import EntityKind

from .csv_samples import read_csv_sample

SampleOrigin = Literal["typed", "json", "csv"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One type's first rows; `origin` determines which types are inferred from a text column.

    `is_complete` is false if the data contains more rows. `kind` is set if the records themselves specify whether they
    are nodes or edges. `mixed_columns` contain values of different types, which are shown as text.
    """

    type_name: str
    table: pa.Table
    origin: SampleOrigin
    is_complete: bool = True
    kind: EntityKind | None = None
    mixed_columns: frozenset[str] = frozenset()


def read_samples(data: Any, max_rows: int) -> list[Sample]:
    """Return a sample for each type in the data; `data` can be anything that `Schema.infer` accepts."""
    if isinstance(data, Mapping):
        return [_read_typed(name, type_data, max_rows) for name, type_data in data.items()]
    paths = [data] if isinstance(data, str | PathLike) else data
    if is_frame(paths) or not isinstance(paths, Iterable):
        raise InputError("a table must be passed with its type name", reason='pass {"Type": table}')
    samples: dict[str, Sample] = {}
    for path in paths:
        if not isinstance(path, str | PathLike):
            raise InputError(f"expected a path, got {type(path).__name__}", reason='pass {"Type": records}')
        for sample in _read_untyped(fspath(path), max_rows):
            earlier = samples.get(sample.type_name)
            samples[sample.type_name] = sample if earlier is None else _join_samples([earlier, sample], max_rows)
    return list(samples.values())


def _read_typed(name: str, type_data: Any, max_rows: int) -> Sample:
    if is_frame(type_data):
        table = to_arrow_table(type_data)
        return Sample(name, table.slice(0, max_rows), "typed", table.num_rows <= max_rows)
    if isinstance(type_data, str | PathLike):
        files = resolve_path(fspath(type_data), name, FileOptions())
        return _join_samples([_read_file(file, name, max_rows) for file in files], max_rows)
    records = list(islice(map(_record_members, type_data), max_rows + 1))
    return _sample_records(name, records, max_rows, "json")


def _record_members(record: Any) -> Mapping[str, Any]:
    if is_dataclass(record) and not isinstance(record, type):
        return asdict(record)
    if not isinstance(record, Mapping):
        raise InputError(reason=f"expected a dict or a dataclass, got {type(record).__name__}")
    return record


def _read_untyped(path: str, max_rows: int) -> Iterator[Sample]:
    """Read files that name their types, either in their records or in their file names."""
    for file in resolve_path(path, None, FileOptions()):
        if file.file_format == "ndjson":
            records = list(islice(_read_json_lines(file), max_rows + 1))
            if any("type" in record or "edge" in record for record in records[:1]):
                yield from _split_envelopes(records, max_rows)
                continue
        named_file = next(iter(resolve_path(file.path, "", FileOptions(file.file_format))))
        yield _read_file(named_file, type_name(_stem(file)), max_rows)


def _stem(file: InputFile) -> str:
    return file.type_name or file.path.replace("\\", "/").rpartition("/")[2].partition(".")[0]


def _read_file(file: InputFile, name: str, max_rows: int) -> Sample:
    if file.file_format == "ndjson":
        return _sample_records(name, list(islice(_read_json_lines(file), max_rows + 1)), max_rows, "json")
    if file.file_format == "csv":
        with open_input_file(file) as opened:
            columns = read_csv_sample(opened, file.path, max_rows + 1)
        table = pa.table({column: pa.array(cells, pa.string()) for column, cells in columns.items()})
        return Sample(name, table.slice(0, max_rows), "csv", table.num_rows <= max_rows)
    with ReadErrorContext(file.path), open_input_file(file) as opened:
        table = pa.concat_tables(_first_tables(iter_tables(opened, {}), max_rows + 1))
    return Sample(name, table.slice(0, max_rows), "typed", table.num_rows <= max_rows)


def _first_tables(tables: Iterator[pa.Table], row_count: int) -> Iterator[pa.Table]:
    for table in tables:
        yield table
        row_count -= table.num_rows
        if row_count <= 0:
            return


def _read_json_lines(file: InputFile) -> Iterator[Mapping[str, Any]]:
    max_line_bytes = load_limits().line_bytes
    with open_input_file(file) as opened:
        for line_number, line in enumerate(iter_lines(opened, max_line_bytes), 1):
            check_limit("graph_batch_line_bytes", len(line), max_line_bytes, "set OMNIGRAPH_MAX_ROW_BYTES")
            if not line.strip():
                continue
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise InputError(f"{file.path}: line {line_number}: {error.msg}", reason="malformed") from None
            if not isinstance(record, dict):
                raise InputError(f"{file.path}: line {line_number}: expected a JSON object", reason="malformed")
            yield record


def _split_envelopes(records: Sequence[Mapping[str, Any]], max_rows: int) -> Iterator[Sample]:
    """Yield one sample per type for records in the form `{"type": ...}` or `{"edge": ...}`."""
    groups: dict[tuple[EntityKind, str], list[Mapping[str, Any]]] = {}
    for record in records[:max_rows]:
        properties = record.get("data") if isinstance(record.get("data"), Mapping) else {}
        if isinstance(record.get("edge"), str):
            endpoints = {name: record[name] for name in ("from", "to", "src", "dst") if name in record}
            groups.setdefault(("edge", record["edge"]), []).append({**endpoints, **(properties or {})})
        elif isinstance(record.get("type"), str):
            groups.setdefault(("node", record["type"]), []).append(properties or {})
    for (kind, name), members in groups.items():
        sample = _sample_records(name, members, max_rows, "json")
        is_complete = len(records) <= max_rows
        yield Sample(name, sample.table, "json", is_complete, kind, sample.mixed_columns)


def _sample_records(name: str, records: Sequence[Mapping[str, Any]], max_rows: int, origin: SampleOrigin) -> Sample:
    columns = dict.fromkeys(member for record in records for member in record)
    arrays, mixed_columns = {}, set()
    for column in columns:
        arrays[column], is_mixed = _to_array([record.get(column) for record in records[:max_rows]])
        mixed_columns |= {column} if is_mixed else set()
    return Sample(name, pa.table(arrays), origin, len(records) <= max_rows, None, frozenset(mixed_columns))


def _to_array(values: Sequence[Any]) -> tuple[pa.Array, bool]:
    """Convert values to a column, as text if their types differ; return the column and whether they differ."""
    try:
        return pa.array(values), False
    except (pa.ArrowException, OverflowError, TypeError):
        return pa.array([None if value is None else str(value) for value in values], pa.string()), True


def _join_samples(samples: Sequence[Sample], max_rows: int) -> Sample:
    if len(samples) == 1:
        return samples[0]
    try:
        table = pa.concat_tables([sample.table for sample in samples], promote_options="permissive")
    except pa.ArrowException as error:
        reason = f"the files for {samples[0].type_name} have different columns: {error}"
        raise InputError(reason=reason) from error
    is_complete = all(sample.is_complete for sample in samples) and table.num_rows <= max_rows
    mixed_columns = frozenset().union(*(sample.mixed_columns for sample in samples))
    first = samples[0]
    return Sample(first.type_name, table.slice(0, max_rows), first.origin, is_complete, first.kind, mixed_columns)
