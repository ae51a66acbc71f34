"""Change the columns of a table: add, rename, retype and drop them, as a detached version.

Data files are only added, and only for columns that get values: a dropped column stays in old files
and is no longer named, an added one that is null everywhere needs no file. Row ids, fragments and
the indexes of remaining columns are kept. Field ids are assigned here, above all that were ever
used.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from lance import FragmentMetadata, LanceOperation

from .blobs import is_blob
from .failures import DamagedError
from .fields import Column, columns_of, new_column, schema_of
from .store import Store
from .table import Staged, Table, commit, data_files, field_digest

_ROWS = 16_384  # rows that are filled together


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column that the table shall have.

    `source` is the name of the column that it continues, None for a new one; a new one has
    `default_value` in all existing rows, or null.
    """

    field: pa.Field
    source: str | None = None
    value: pa.Scalar | None = None

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Return its values for rows of the old version; blobs are bytes here."""
        kind = pa.large_binary() if is_blob(self.field) else self.field.type
        if self.source is not None:
            return batch.column(self.source).cast(kind)
        if self.value is None:
            return pa.nulls(batch.num_rows, kind)
        return pa.repeat(self.value, batch.num_rows)


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A column with a new field id; `temporary_name` avoids clashes until the old one is gone."""

    wanted: Wanted
    column: Column
    passing: str

    @property
    def filled(self) -> bool:
        return self.wanted.source is not None or self.wanted.value is not None


def reshape(
    store: Store, table: Table, wanted: Sequence[Wanted], highest: int
) -> tuple[Table, int]:
    """Return a version of the table with exactly these columns, and the highest field id so far.

    `highest_field_id` is the highest that any earlier version used. Returns the table itself when
    nothing differs.
    """
    old = {column.name: column for column in columns_of(table.dataset.lance_schema)}
    first = max(highest, table.highest_field_id) + 1
    fresh: dict[str, _Fresh] = {}
    for one in wanted:
        if not _continues(table, one):
            made = new_column(one.field, first)
            fresh[one.field.name] = _Fresh(one, made, f"#{first}")
            first += len(made.ids)
    if fresh:
        table = _add(store, table, list(fresh.values()))
    final = [_final(one, old, fresh) for one in wanted]
    return _project(store, table, final), first - 1


def _continues(table: Table, one: Wanted) -> bool:
    """Return whether the column continues another one whose stored values fit unchanged."""
    return one.source is not None and table.schema.field(one.source).type == one.field.type


def _final(one: Wanted, old: dict[str, Column], fresh: dict[str, _Fresh]) -> Column:
    made = fresh.get(one.field.name)
    if made is not None:
        return made.column
    kept = old[one.source or ""].renamed(one.field.name)
    # Never make it non-null: deleted rows in the files may hold nulls.
    return kept.loosened() if one.field.nullable else kept


def _add(store: Store, table: Table, fresh: list[_Fresh]) -> Table:
    """Return the table with more columns after its own, under names that no property has."""
    filled = [one for one in fresh if one.filled]
    fragments = table.dataset.get_fragments()
    if filled:
        fill = partial(_fill, table, filled)
        made: list[Any] = store.effects.run(
            "stage", table.location, lambda: [fill(fragment) for fragment in fragments]
        )
    else:
        made = [fragment.metadata for fragment in fragments]
    passing = [one.column.renamed(one.passing) for one in fresh]
    schema = schema_of(
        table.dataset.lance_schema, [*columns_of(table.dataset.lance_schema), *passing]
    )
    files = data_files(table, made) if filled else ()
    known = set(data_files(table, [fragment.metadata for fragment in fragments]))
    new = tuple(name for name in files if name not in known)
    return _commit(store, table, LanceOperation.Merge(made, schema), new)


def _fill(table: Table, filled: list[_Fresh], fragment: Any) -> Any:
    """Return a fragment with one more data file, whose columns have the field ids we assigned."""

    def values(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([one.wanted.of(batch) for one in filled], names)

    names = [one.passing for one in filled]
    sources = [one.wanted.source for one in filled if one.wanted.source is not None]
    metadata, schema = _merged(table, fragment, values, sources or ["id"])
    given = {column.name: column.ids for column in columns_of(schema)}
    ours = {old: new for one in filled for old, new in _both(given[one.passing], one.column.ids)}
    facts = metadata.to_json()
    facts["files"][-1]["fields"] = [ours[number] for number in facts["files"][-1]["fields"]]
    return FragmentMetadata.from_json(json.dumps(facts))


def _merged(table: Table, fragment: Any, values: Any, columns: list[str]) -> Any:
    try:
        return fragment.merge_columns(values, columns=columns, batch_size=_ROWS)
    except TypeError as error:
        # Lance reads a few rows to infer the result, and raises this for any failure meanwhile.
        raise DamagedError(f"{table.location} cannot be read: {error.__context__}") from error


def _both(given: list[int], ours: list[int]) -> Any:
    return zip(given, ours, strict=True)


def _project(store: Store, table: Table, final: list[Column]) -> Table:
    """Return the table with exactly these columns, each stored in its files or in none."""
    if columns_of(table.dataset.lance_schema) == final:
        return table
    schema = schema_of(table.dataset.lance_schema, final)
    return _commit(store, table, LanceOperation.Project(schema), ())


def _commit(store: Store, table: Table, operation: Any, files: tuple[str, ...]) -> Table:
    checksums = store.read_back(files, blobs=any(is_blob(one) for one in table.schema))
    fields = field_digest(table)
    staged = Staged(table.location, operation, fields, files=files, checksums=checksums)
    return commit(store, table, staged)
