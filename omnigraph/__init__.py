"""Omnigraph, a versioned property-graph database on Lance files.

Owns the public surface. It stays tiny: importing `omnigraph` loads none of its parts, so that a
command that only reads a schema starts at once. Parts are loaded when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph import errors as errors
    from omnigraph.graph import Graph as Graph
    from omnigraph.graph import init as init
    from omnigraph.graph import open as open

__version__ = "0.1.0"

__all__ = ["Graph", "__version__", "errors", "init", "open"]


def __getattr__(name: str) -> Any:
    """Load a part when it is first asked for."""
    if name == "errors":
        return importlib.import_module("omnigraph.errors")
    if name in ("Graph", "init", "open"):
        return getattr(importlib.import_module("omnigraph.graph"), name)
    raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
