"""The notebook card for a graph on a server, with the same content as an embedded graph's card."""

from typing import Any

from omnigraph.api.results.notebook_cards import facts_card
from omnigraph.values.table_key import TableKey

from .handle import RemoteHandle

_MAX_TYPES = 200


def graph_card(handle: RemoteHandle) -> str:
    """Return a graph's branch, head and row counts as HTML."""
    head = handle.head()
    document = handle.exchange.get("snapshot", **handle.position)
    datasets = {
        TableKey.of(dataset["entity_kind"], dataset["type_name"]): dataset["entity_count"]
        for dataset in document["datasets"]
    }
    when, author = f"{head.published:%Y-%m-%d %H:%M:%S} UTC", head.actor or "unknown actor"
    facts: dict[str, Any] = {"branch": handle.branch_name, "head": f"{head.id} by {author}, {when}"}
    return facts_card(handle.uri, facts | dict(sorted(datasets.items())[:_MAX_TYPES]))
