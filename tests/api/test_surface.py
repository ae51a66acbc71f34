"""`Graph`, its protocol and `AsyncGraph` have the same methods and parameters."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any, get_overloads

import pytest

from omnigraph import AsyncGraph, Graph
from omnigraph.api import async_facets, facet_surfaces, surface
from omnigraph.api.async_results import AsyncEntitySet, AsyncNodeSet, AsyncTransaction
from omnigraph.api.branches import Branches
from omnigraph.api.builders.entity_sets import EdgeSet, NodeSet
from omnigraph.api.changes import Changes
from omnigraph.api.graph_schema import GraphSchema
from omnigraph.api.maintenance import Maintenance
from omnigraph.api.operations import Operations
from omnigraph.api.revisions import Revisions
from omnigraph.api.spark import Spark
from omnigraph.api.stored_queries import StoredQueries
from omnigraph.api.surface import GraphSurface
from omnigraph.api.tags import Tags
from omnigraph.api.transactions import Transaction

FACETS = (Branches, Tags, Revisions, GraphSchema, Changes, Maintenance, Operations, Spark)
LOCAL_ONLY = {"Graph.snapshot", "Graph.table", "Graph.scan", "Graph.duckdb", "Graph.pool", "GraphSchema.contract"}
# Building a set, a stream, a transaction or a block on a branch reads nothing; they are awaited or iterated later.
DEFERRED = {"branch", "nodes", "edges", "stream", "transaction", "export"}
PAIRS: list[tuple[type[Any], type[Any]]] = [
    (Graph, AsyncGraph),
    *((facet, getattr(async_facets, f"Async{facet.__name__}")) for facet in FACETS),
    (StoredQueries, async_facets.AsyncStoredQueries),
    (Transaction, AsyncTransaction),
]


def public_names(cls: type[Any]) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def parameters(method: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    """The names, kinds and defaults of what a method takes."""
    taken = list(inspect.signature(method).parameters.values())[1:]
    return [(one.name, one.kind, one.default) for one in taken]


def named(method: Callable[..., Any]) -> list[tuple[str, Any]]:
    return [(name, kind) for name, kind, _ in parameters(method)]


def differences(sync: type[Any], other: type[Any]) -> list[str]:
    """What one class has and another one lacks, or takes otherwise."""
    found = []
    for name in sorted(public_names(sync)):
        here, there = getattr(sync, name), getattr(other, name, None)
        if there is None:
            found.append(f"{other.__name__}.{name} is missing")
        elif callable(here) and parameters(here) != parameters(there):
            found.append(f"{other.__name__}.{name} takes {inspect.signature(there)}")
        elif callable(here) and not is_asynchronous(there) and name not in DEFERRED:
            found.append(f"{other.__name__}.{name} blocks")
    return found


def is_asynchronous(method: Callable[..., Any]) -> bool:
    inner = inspect.unwrap(method)
    return any(inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one) for one in (method, inner))


@pytest.mark.parametrize(("sync", "asynchronous"), PAIRS)
def test_async_graph_has_every_method_of_graph(sync: type[Any], asynchronous: type[Any]) -> None:
    assert differences(sync, asynchronous) == []


def test_a_missing_or_different_coroutine_is_reported() -> None:
    class Blocking:
        def gone(self) -> None: ...
        def other(self, a: int, *, b: int = 1) -> None: ...
        def slow(self) -> None: ...

    class Incomplete:
        async def other(self, a: int, *, b: int = 2) -> None: ...
        def slow(self) -> None: ...

    reported = differences(Blocking, Incomplete)
    assert [text.split(" ")[1] for text in reported] == ["is", "takes", "blocks"]


@pytest.mark.parametrize("entities", [NodeSet, EdgeSet])
def test_async_sets_have_every_method_of_the_sets(entities: type[Any]) -> None:
    fields = {*NodeSet.__dataclass_fields__, "params"}
    there = AsyncNodeSet if entities is NodeSet else AsyncEntitySet
    names = public_names(entities) - fields
    assert {name for name in names if not hasattr(there, name)} == set()
    methods = {name: (getattr(entities, name), getattr(there, name)) for name in names}
    assert [n for n, (a, b) in methods.items() if parameters(a) != parameters(b)] == []


@pytest.mark.parametrize("cls", [Graph, *FACETS])
def test_protocol_declares_every_public_method(cls: type[Any]) -> None:
    stated = getattr(surface if cls is Graph else facet_surfaces, f"{cls.__name__}Surface")
    names = {name for name in public_names(cls) if f"{cls.__name__}.{name}" not in LOCAL_ONLY}
    assert names == public_names(stated)
    # Of a protocol mypy compares types, but not the names of parameters.
    both = {name: (getattr(cls, name), getattr(stated, name)) for name in names}
    calls = {n: pair for n, pair in both.items() if callable(pair[0]) and not get_overloads(pair[0])}
    assert [n for n, (a, b) in calls.items() if named(a) != named(b)] == []


def test_graph_implements_its_protocol(graph: Graph) -> None:
    stated: GraphSurface = graph  # mypy compares the signatures
    assert stated.branches.names() == ["main"]


def test_importing_the_graph_loads_neither_async_facade_nor_spark() -> None:
    code = (
        "import sys, omnigraph.api.graph; loaded = set(sys.modules);"
        "assert not {'asyncio', 'pyspark', 'pandas', 'omnigraph.api.async_graph'} & loaded;"
        "assert not {'omnigraph.api.transactions', 'omnigraph.engine.writes.mutate'} & loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
