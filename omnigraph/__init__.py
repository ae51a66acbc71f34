"""Omnigraph, a versioned property-graph database on Lance files.

This package exports the public API. Importing `omnigraph` loads none of its submodules, so a command that only reads a
schema starts quickly. Each submodule is loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph import errors as errors
    from omnigraph import testing
    from omnigraph.api.async_graph import AsyncGraph as AsyncGraph
    from omnigraph.api.blobs import Blob as Blob
    from omnigraph.api.builders.entity_sets import EdgeSet as EdgeSet
    from omnigraph.api.builders.entity_sets import NodeSet as NodeSet
    from omnigraph.api.builders.prepared_queries import Prepared as Prepared
    from omnigraph.api.change_feed.baseline import Baseline as Baseline
    from omnigraph.api.change_feed.feed import ChangeBlock as ChangeBlock
    from omnigraph.api.change_feed.feed import Feed as Feed
    from omnigraph.api.change_feed.pages import ChangePage as ChangePage
    from omnigraph.api.format_upgrade import upgrade as upgrade
    from omnigraph.api.graph import Graph as Graph
    from omnigraph.api.linting import LintReport as LintReport
    from omnigraph.api.linting import lint as lint
    from omnigraph.api.opening import init as init
    from omnigraph.api.results.node import Node as Node
    from omnigraph.api.results.receipt import LoadReport as LoadReport
    from omnigraph.api.results.receipt import Receipt as Receipt
    from omnigraph.api.results.result import Result as Result
    from omnigraph.api.results.result import ResultStream as ResultStream
    from omnigraph.api.results.row import Row as Row
    from omnigraph.api.results.subgraph import Subgraph as Subgraph
    from omnigraph.api.schema import Schema as Schema
    from omnigraph.api.transactions import Transaction as Transaction
    from omnigraph.client.async_opening import open as aopen
    from omnigraph.client.opening import open as open
    from omnigraph.history.commit import Commit as Commit
    from omnigraph.ingest.csv_options import CsvOptions as CsvOptions
    from omnigraph.lang.schema.propose.python_types import key as key

__version__ = "0.1.0"

_EXPORTS = {
    "AsyncGraph": "api.async_graph:AsyncGraph",
    "Baseline": "api.change_feed.baseline:Baseline",
    "Blob": "api.blobs:Blob",
    "ChangeBlock": "api.change_feed.feed:ChangeBlock",
    "ChangePage": "api.change_feed.pages:ChangePage",
    "Commit": "history.commit:Commit",
    "CsvOptions": "ingest.csv_options:CsvOptions",
    "EdgeSet": "api.builders.entity_sets:EdgeSet",
    "Feed": "api.change_feed.feed:Feed",
    "Graph": "api.graph:Graph",
    "LintReport": "api.linting:LintReport",
    "LoadReport": "api.results.receipt:LoadReport",
    "Node": "api.results.node:Node",
    "NodeSet": "api.builders.entity_sets:NodeSet",
    "Prepared": "api.builders.prepared_queries:Prepared",
    "Receipt": "api.results.receipt:Receipt",
    "Result": "api.results.result:Result",
    "ResultStream": "api.results.result:ResultStream",
    "Row": "api.results.row:Row",
    "Schema": "api.schema:Schema",
    "Subgraph": "api.results.subgraph:Subgraph",
    "Transaction": "api.transactions:Transaction",
    "aopen": "client.async_opening:open",
    "errors": "errors:",
    "init": "api.opening:init",
    "key": "lang.schema.propose.python_types:key",
    "lint": "api.linting:lint",
    "open": "client.opening:open",
    "testing": "testing:",
    "upgrade": "api.format_upgrade:upgrade",
}

__all__ = [
    "AsyncGraph",
    "Baseline",
    "Blob",
    "ChangeBlock",
    "ChangePage",
    "Commit",
    "CsvOptions",
    "EdgeSet",
    "Feed",
    "Graph",
    "LintReport",
    "LoadReport",
    "Node",
    "NodeSet",
    "Prepared",
    "Receipt",
    "Result",
    "ResultStream",
    "Row",
    "Schema",
    "Subgraph",
    "Transaction",
    "__version__",
    "aopen",
    "errors",
    "init",
    "key",
    "lint",
    "open",
    "testing",
    "upgrade",
]


def __getattr__(name: str) -> Any:
    """Load a submodule on first access."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    module, _, attribute = _EXPORTS[name].partition(":")
    loaded_module = importlib.import_module(f"omnigraph.{module}")
    return getattr(loaded_module, attribute) if attribute else loaded_module


def __dir__() -> list[str]:
    return sorted(__all__)
