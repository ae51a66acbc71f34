"""Write plain Lance datasets outside any graph, for programs that do not use Omnigraph.

Many processes can write fragments in parallel. One process then commits all of these fragments together. The result is
an ordinary dataset whose newest version contains all rows.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import lance
import pyarrow as pa
from lance import FragmentMetadata, LanceOperation
from lance.fragment import write_fragments

from .failures import to_storage_error


def write_plain_fragments(
    uri: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], storage_options: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Write batches as fragments for a dataset that is not committed yet."""
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    try:
        fragments = write_fragments(reader, uri, schema, storage_options=dict(storage_options or {}) or None)
    except OSError as error:
        raise to_storage_error(error, effect="none") from error
    return [fragment.to_json() for fragment in fragments]


def commit_plain_dataset(
    uri: str,
    schema: pa.Schema,
    fragment_entries: Sequence[Mapping[str, Any]],
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Commit fragments from any number of writers as one dataset."""
    fragment_metadata = [FragmentMetadata.from_json(json.dumps(fragment_entry)) for fragment_entry in fragment_entries]
    try:
        lance.LanceDataset.commit(
            uri,
            LanceOperation.Overwrite(schema, fragment_metadata),
            storage_options=dict(storage_options or {}) or None,
        )
    except OSError as error:
        raise to_storage_error(error, effect="none") from error
