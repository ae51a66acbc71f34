"""Detect a CSV file's delimiter, its quote character, and the columns that its first line names.

The delimiter is the one that yields the most known column names in the first line. In a tie, it is the one that leaves
the fewest records with an unexpected number of cells. The first line is never assumed to contain data, because values
could then silently end up in the wrong columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from omnigraph.errors import InputError
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.names import did_you_mean

from .csv_options import CsvOptions
from .csv_records import CsvDialect, first_records, split_cells
from .edge_endpoints import ENDPOINT_COLUMNS, reject_repeated_endpoints

DELIMITERS = (",", ";", "\t", "|")
_QUOTES = ('"', "'")
_MAX_SHOWN_CHARACTERS = 60
_SAMPLE_RECORDS = 50
_DELIMITER_NAMES = {"\t": "tab"}
Cells = list[tuple[str, bool]]  # the (text, is quoted) pair of each cell


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """A file's dialect, and the names of its columns in the file and in the graph."""

    dialect: CsvDialect
    file_columns: tuple[str, ...]
    stored_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """The columns that a file with records of one type may have: properties, `id` and endpoints, before renaming."""

    entity_type: NodeType | EdgeType
    column_mapping: Mapping[str, str]
    known_names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known_names", frozenset({"id", *self.stored_names}))

    @property
    def stored_names(self) -> tuple[str, ...]:
        """The stored names of the endpoints and properties."""
        endpoint_names = tuple(ENDPOINT_COLUMNS.values()) if isinstance(self.entity_type, EdgeType) else ()
        return (*endpoint_names, *(prop.name for prop in self.entity_type.properties))

    def stored_name(self, column_name: str) -> str:
        """Return the stored name of a column."""
        mapped_name = self.column_mapping.get(column_name, column_name)
        if isinstance(self.entity_type, EdgeType):
            return ENDPOINT_COLUMNS.get(mapped_name, mapped_name)
        return mapped_name

    def is_known(self, column_name: str) -> bool:
        """Return whether the type has a column with this name."""
        return self.stored_name(column_name) in self.known_names

    def count_known(self, column_names: Sequence[str]) -> int:
        """Return how many of the given columns belong to the type."""
        return sum(map(self.is_known, column_names))


def find_layout(sample: bytes, options: CsvOptions, names: ColumnNames) -> CsvLayout:
    """Determine a file's layout from its beginning; raise `InputError` if the layout does not fit the type."""
    dialect, records = _choose_dialect(sample, options, names)
    given_columns = options.columns_of(names.entity_type.name)
    if given_columns is not None:
        return _make_layout(dialect, given_columns, names)
    file_columns = tuple(text.strip() for text, _ in records[0])
    if not names.count_known(file_columns):
        raise _missing_header_error(sample, dialect, options, names)
    return _make_layout(dialect, file_columns, names)


def _choose_dialect(sample: bytes, options: CsvOptions, names: ColumnNames) -> tuple[CsvDialect, list[Cells]]:
    """Return the dialect that fits the sample best, and the records parsed with it; the first dialect wins a tie."""
    delimiters = DELIMITERS if options.delimiter is None else (options.delimiter,)
    quotes = _QUOTES if options.quote is None else (options.quote,)
    dialects = [CsvDialect(delimiter, quote) for quote, delimiter in product(quotes, delimiters) if quote != delimiter]
    samples = [(dialect, _read_sample(sample, dialect)) for dialect in dialects]
    # Without this test, a misplaced double quote would make single quotes seem more likely.
    likely_samples = [
        (dialect, records)
        for dialect, records in samples
        if dialect.quote != "'" or options.quote or _has_quotes(records)
    ]
    return max(likely_samples, key=lambda candidate: _score(candidate[1], options, names))


def _has_quotes(records: Sequence[Cells]) -> bool:
    return any(is_quoted for cells in records for _, is_quoted in cells)


def _score(records: Sequence[Cells], options: CsvOptions, names: ColumnNames) -> tuple[int, ...]:
    """Return how well a dialect fits, judged by known columns, records of unexpected length, and quoted columns."""
    type_name = names.entity_type.name
    given_columns = options.columns_of(type_name)
    column_count = len(records[0]) if given_columns is None else len(given_columns)
    even_records = [cells for cells in records if len(cells) == column_count]
    data_rows = even_records[int(options.has_header(type_name)) :]
    quoted_count = sum(
        all(is_quoted or not text for text, is_quoted in column) for column in zip(*data_rows, strict=True)
    )
    known_count = names.count_known([text.strip() for text, _ in records[0]]) if given_columns is None else 0
    return known_count, len(even_records) - len(records), quoted_count


def _read_sample(sample: bytes, dialect: CsvDialect) -> list[Cells]:
    return [_decode_cells(record, dialect) for record in first_records(sample, dialect, _SAMPLE_RECORDS)] or [[]]


def _decode_cells(record: bytes, dialect: CsvDialect) -> Cells:
    try:
        return [(text.decode("utf-8", "replace"), is_quoted) for text, is_quoted in split_cells(record, dialect)]
    except InputError:
        return []


def _make_layout(dialect: CsvDialect, file_columns: tuple[str, ...], names: ColumnNames) -> CsvLayout:
    for number, column_name in enumerate(file_columns, 1):
        if not column_name:
            raise InputError(reason=f"column {number} has no name", hint="name every column in the first line")
        if not names.is_known(column_name):
            raise _unknown_column_error(column_name, names)
    stored_columns = tuple(map(names.stored_name, file_columns))
    reject_repeated_endpoints(file_columns)
    for column_name, stored_name in zip(file_columns, stored_columns, strict=True):
        if stored_columns.count(stored_name) > 1:
            raise InputError(reason=f"column '{column_name}' appears twice")
    return CsvLayout(dialect, file_columns, stored_columns)


def _unknown_column_error(column_name: str, names: ColumnNames) -> InputError:
    entity_type = names.entity_type
    reason = f"{entity_type.kind}:{entity_type.name} has no property '{column_name}'"
    columns = ", ".join(names.stored_names)
    fallback_hint = f"available columns: {columns}; rename a file column with --mapping or mapping="
    hint = did_you_mean(column_name, names.stored_names, fallback_hint)
    return InputError(reason=reason, property=column_name, hint=hint)


def _missing_header_error(sample: bytes, dialect: CsvDialect, options: CsvOptions, names: ColumnNames) -> InputError:
    first_line = sample.lstrip(b"\r\n").partition(b"\n")[0].decode("utf-8", "replace").rstrip()
    shown_line = first_line[:_MAX_SHOWN_CHARACTERS]
    reason = f"the first line {shown_line!r} does not contain any {names.entity_type.name} column"
    guess, records = _choose_dialect(sample, CsvOptions(quote=options.quote), names)
    if names.count_known([text.strip() for text, _ in records[0]]):
        delimiter = _DELIMITER_NAMES.get(guess.delimiter, guess.delimiter)
        reason = f"{reason} with the delimiter {dialect.delimiter!r}"
        hint = (
            f"the delimiter appears to be {guess.delimiter!r}: pass --csv-delimiter '{delimiter}' "
            f"or CsvOptions(delimiter='{delimiter}')"
        )
    else:
        columns = ", ".join(names.stored_names)
        hint = (
            f"available columns: {columns}; if the file has no header line, "
            "name its columns with --csv-columns or CsvOptions(columns=[…]); "
            "if it has an unusual delimiter, pass --csv-delimiter or CsvOptions(delimiter=…)"
        )
    return InputError(reason=reason, hint=hint)
