"""Only a graph on a server has stored queries."""

import pytest

from omnigraph.errors import UsageError
from tests.rig.graph_hosts import GraphHost


def test_stored_queries_are_on_a_server(graphs: GraphHost) -> None:
    graph = graphs.init("node Person { name: String @key }")
    if graph.is_remote:
        assert graph.queries.names() == []
    else:
        with pytest.raises(UsageError, match="stored queries are on a server") as raised:
            graph.queries.names()
        assert dir(graph.queries), "completion does not fail"
        assert "graph.prepare(Path(" in str(raised.value.hint)
