"""Omnigraph, a versioned property-graph database on Lance files.

Owns the public surface. It stays tiny: importing `omnigraph` loads none of its parts, so that a
command that only reads a schema starts at once. Parts are loaded when they are first used.
"""

import importlib
from types import ModuleType

__version__ = "0.1.0"

__all__ = ["__version__", "errors"]


def __getattr__(name: str) -> ModuleType:
    """Load `omnigraph.errors` when it is first asked for."""
    if name == "errors":
        return importlib.import_module("omnigraph.errors")
    raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
