"""Options for reading CSV input.

This module defines and validates the options. `csv_dialect` detects the delimiter and the quote character if the caller
does not set them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.errors import UsageError

from .text_encoding import check_encoding

DECIMAL_SIGNS = (".", ",")
_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


@dataclass(frozen=True, slots=True)
class CsvOptions:
    r"""Options for reading CSV files; `delimiter` and `quote` are detected for each file if they are None.

    `delimiter` and `quote` must be single ASCII characters; use `quote=""` for files without quoting. `delimiter` can
    also be a name: `tab`, `comma`, `semicolon` or `pipe`. `null` is the string, or the strings, that represent a
    missing value; a quoted cell in a String column is never null. `columns` names the columns in files without a header
    line, for all types or by type; with `header=True`, it replaces the names in the header line. `encoding` is a Python
    codec name; a byte order mark takes precedence. `decimal` is the decimal separator in numbers, either "." or ",".

    >>> CsvOptions(delimiter="tab", null=["", "NA"]).delimiter
    '\t'
    >>> CsvOptions(columns={"Person": ["name", "age"]}).columns_of("Person")
    ('name', 'age')
    """

    delimiter: str | None = None
    quote: str | None = None
    null: str | Sequence[str] = ""
    header: bool | None = None
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None
    encoding: str | None = None
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            delimiter = _NAMED_DELIMITERS.get(self.delimiter, self.delimiter)
            object.__setattr__(self, "delimiter", _check_character(delimiter, "delimiter"))
        if self.quote:
            _check_character(self.quote, "quote")
        if self.quote and self.quote == self.delimiter:
            raise UsageError(reason=f"`delimiter` and `quote` must differ, but both are {self.quote!r}")
        if isinstance(self.columns, str):
            raise UsageError(reason="`columns` must be a list of names, not a string")
        if self.header is False and self.columns is None:
            raise UsageError(reason="header=False requires `columns`, because column names are never guessed")
        if self.decimal not in DECIMAL_SIGNS:
            raise UsageError(reason=f"`decimal` must be '.' or ',', not {self.decimal!r}")
        if self.encoding is not None:
            check_encoding(self.encoding)

    @property
    def null_texts(self) -> tuple[str, ...]:
        """The strings that mark a cell without a value."""
        return (self.null,) if isinstance(self.null, str) else tuple(self.null)

    def columns_of(self, type_name: str) -> tuple[str, ...] | None:
        """Return the columns that the caller named for a type's files, or None if the header line names the columns."""
        type_columns = self.columns.get(type_name) if isinstance(self.columns, Mapping) else self.columns
        return None if type_columns is None else tuple(type_columns)

    def has_header(self, type_name: str) -> bool:
        """Return whether the first line of a type's files is a header line."""
        return self.header or self.columns_of(type_name) is None


def _check_character(text: str, option_name: str) -> str:
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise UsageError(reason=f"`{option_name}` must be one ASCII character, not {text!r}")
    return text
