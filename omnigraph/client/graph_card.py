"""The notebook card for a graph on a server, with the same content as an embedded graph's card."""

from omnigraph.api.results import notebook_cards
from omnigraph.values.table_key import TableKey

from .handle import RemoteHandle


def graph_card(handle: RemoteHandle) -> str:
    """Return a graph's branch, head and row counts as HTML."""
    head = handle.head()
    document = handle.exchange.get("snapshot", **handle.position)
    row_counts = {
        TableKey.of(dataset["entity_kind"], dataset["type_name"]): dataset["entity_count"]
        for dataset in document["datasets"]
    }
    return notebook_cards.graph_card(handle.uri, handle.branch_name, head, row_counts)
