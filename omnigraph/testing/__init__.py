"""Create temporary graphs for tests, load data into them, and remove them afterward.

This module is also a pytest plugin (`pytest_plugins = ["omnigraph.testing"]`) that provides the `make_graph` fixture.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from omnigraph.api.graph import Graph
from omnigraph.api.opening import init
from omnigraph.api.schema import SchemaText


@contextmanager
def graph(schema: SchemaText, data: Any = None, *, actor: str | None = None) -> Iterator[Graph]:
    """Create a graph that exists for the duration of the `with` block.

    `data` can be anything that `Graph.load` accepts, such as NDJSON text, a path, a list of records, or a mapping from
    type names to rows.

    >>> with graph("node Person { name: String @key }", {"Person": [{"name": "Ada"}]}) as people:
    ...     people.nodes("Person").ids()
    ['Ada']
    """
    with tempfile.TemporaryDirectory(prefix="omnigraph-") as temporary_folder:
        temporary_graph = init(Path(temporary_folder, "graph"), schema, actor=actor, durability="os")
        try:
            if data is not None:
                temporary_graph.load(_encode_inline_data(data), mode="append")
            yield temporary_graph
        finally:
            temporary_graph.close()


def _encode_inline_data(data: Any) -> Any:
    """Encode NDJSON text as bytes, because `Graph.load` treats strings as paths. Return other values unchanged."""
    return data.encode() if isinstance(data, str) and data.lstrip().startswith("{") else data


def _make_fixture() -> Any:
    try:
        fixture = import_module("pytest").fixture
    except ImportError:
        return None

    def make_graph() -> Iterator[Callable[..., Graph]]:
        """Yield a function that takes the same arguments as `graph`. Its graphs are removed when the test ends."""
        with ExitStack() as stack:
            yield lambda *graph_arguments, **graph_options: stack.enter_context(
                graph(*graph_arguments, **graph_options)
            )

    return fixture(make_graph)


make_graph = _make_fixture()
