"""Names for completion: a graph's branches, tags, types and properties, cached in the home directory.

Cached names are valid for 30 seconds. For a local graph, a separate process refreshes older names. Completion waits
only briefly for this process, so that a slow graph does not delay the shell. For remote graphs, names come only from
the cache, which `omnigraph shell` fills.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.records.frozen import record
from omnigraph.values import clock_and_ids

from .operator_config import config_path

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.lang.schema.ir import CatalogType

_MAX_AGE_MS = 30_000
_REFRESH_WAIT = 0.15  # in seconds; including Python's start-up time, completion takes less than 300 ms
_MAX_CACHED_GRAPHS = 50


@record
class GraphNames:
    """The names in a graph; `properties` contains the property names for each type."""

    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    properties: Mapping[str, tuple[str, ...]] | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The type names."""
        return tuple(self.properties or ())

    @property
    def revisions(self) -> tuple[str, ...]:
        """The names that select a state of the graph: branches, tags and `HEAD`."""
        return (*self.branches, *self.tags, "HEAD")


def read_names(graph: "Graph") -> GraphNames:
    """Read the names from a graph."""
    catalog = graph.schema.ir.catalog
    declared_types: tuple[CatalogType, ...] = (*catalog.nodes, *catalog.edges, *catalog.interfaces)
    properties = {
        declared.name: tuple(definition.name for definition in declared.properties) for declared in declared_types
    }
    return GraphNames(tuple(graph.branches.names()), tuple(graph.tags), properties)


def find_names(uri: str, *, is_local: bool) -> GraphNames:
    """Return the cached names in a graph; refresh the cache first if it is old and the graph is local."""
    names, saved_at = load_names(uri)
    is_current = saved_at is not None and 0 <= clock_and_ids.now_millis() - saved_at < _MAX_AGE_MS
    if not is_current and is_local:
        _refresh_names(uri)
        names, _ = load_names(uri)
    return names or GraphNames()


def load_names(uri: str) -> tuple[GraphNames | None, int | None]:
    """Return a graph's cached names and the time at which they were saved (in milliseconds), or None for both."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        document = json.loads(_cache_path(uri).read_bytes())
        properties = {type_name: tuple(names) for type_name, names in document["properties"].items()}
        names = GraphNames(tuple(document["branches"]), tuple(document["tags"]), properties)
        return names, int(document["saved_at"])
    return None, None


def save_names(uri: str, names: GraphNames) -> None:
    """Cache a graph's names; an unwritable home directory is ignored."""
    path = _cache_path(uri)
    document: dict[str, Any] = {"uri": uri, "saved_at": clock_and_ids.now_millis()}
    document |= {"branches": names.branches, "tags": names.tags, "properties": dict(names.properties or {})}
    with suppress(OSError):
        write_private_file(path, json.dumps(document))
        cached = sorted(path.parent.glob("*.json"), key=lambda entry: entry.stat().st_mtime)
        for outdated in cached[:-_MAX_CACHED_GRAPHS]:
            outdated.unlink(missing_ok=True)


def write_private_file(path: Path, text: str) -> None:
    """Write a file that only its owner can read, atomically replacing any existing one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
    temporary.replace(path)


def _cache_path(uri: str) -> Path:
    return config_path().parent / "completion" / f"{sha256(uri.encode()).hexdigest()[:32]}.json"


def _refresh_names(uri: str) -> None:
    """Start a process that caches the names, and wait briefly.

    If the process is slow, the names are available to the next call.
    """
    environment = {name: value for name, value in os.environ.items() if name != "_OMNIGRAPH_COMPLETE"}
    process = subprocess.Popen(  # noqa: S603 - the program itself
        [sys.executable, "-m", "omnigraph.cli.completion_refresh", uri],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=environment,
    )
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REFRESH_WAIT)
