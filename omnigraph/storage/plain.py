"""Plain Lance datasets outside of any graph, for programs that know nothing of graphs.

Many processes write fragments at once, then one of them commits all fragments together. The result
is an ordinary dataset whose newest version holds everything.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import lance
import pyarrow as pa
from lance import FragmentMetadata, LanceOperation
from lance.fragment import write_fragments

from .failures import storage_failure


def write_plain(
    uri: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    options: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Write batches as fragments of a dataset that is not committed yet."""
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    try:
        made = write_fragments(reader, uri, schema, storage_options=dict(options or {}) or None)
    except OSError as error:
        raise storage_failure(error, effect="none") from error
    return [one.to_json() for one in made]


def finish_plain(
    uri: str,
    schema: pa.Schema,
    fragments: Sequence[Mapping[str, Any]],
    options: Mapping[str, str] | None = None,
) -> None:
    """Commit fragments of any writers as one dataset."""
    revived = [FragmentMetadata.from_json(json.dumps(one)) for one in fragments]
    try:
        lance.LanceDataset.commit(
            uri,
            LanceOperation.Overwrite(schema, revived),
            storage_options=dict(options or {}) or None,
        )
    except OSError as error:
        raise storage_failure(error, effect="none") from error
