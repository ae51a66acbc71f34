"""The changes between two revisions as JSON documents, in the format of the change feed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .feed import make_change_encoder

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.api.results.diff import Diff


def iter_diff_documents(graph: "Graph", difference: "Diff") -> Iterator[dict[str, Any]]:
    """Yield each change; `changed` lists the properties that an update changed."""
    type_ids: dict[str, int] = {}
    for commit in (difference.from_commit, difference.to_commit):
        ir = graph.at(commit).schema.ir
        type_ids |= {f"{declared.kind}:{declared.name}": declared.type_id for declared in ir.type_identities}
    for table in difference.tables():
        to_document = make_change_encoder(type_ids.get(table.key, 0), table)
        for record in table.records():
            changed = {"changed": list(record.changed)} if record.changed else {}
            yield to_document(record) | changed
