"""Count the records of a load by type, for its receipt if an earlier call already completed the load."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .load_parts import LoadPart
from .load_pieces import find_type, iter_csv, iter_lines, iter_tables

if TYPE_CHECKING:
    from omnigraph.ingest.csv_options import CsvOptions
    from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType


def count_records(
    parts: Iterable[LoadPart], catalog: "Catalog", csv_options: "CsvOptions"
) -> Iterator[tuple["NodeType | EdgeType", int]]:
    """Yield pairs of a type and a number of records. A type may occur in several pairs."""
    for part in parts:
        if part.type_name is None:
            for line in filter(bytes.strip, iter_lines(part)):
                document = json.loads(line)
                yield find_type(catalog, document["edge"] if "edge" in document else document["type"]), 1
            continue
        entity_type = find_type(catalog, part.type_name)
        if part.file_format == "ndjson":
            yield entity_type, sum(1 for _ in filter(bytes.strip, iter_lines(part)))
        elif part.file_format == "csv":
            yield entity_type, sum(len(records.block.starts) for records in iter_csv(part, entity_type, csv_options))
        else:
            yield entity_type, sum(table.num_rows for table in iter_tables(part))
