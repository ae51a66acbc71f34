"""The process that reads the names in a graph for completion and caches them.

It exits after a few seconds even if the store does not respond, and it prints nothing.
"""

import signal
import sys

from .completion_names import read_names, save_names

_MAX_SECONDS = 10


def refresh_names(uri: str) -> None:
    """Read the names in a graph and cache them."""
    from omnigraph.api.opening import open as open_graph

    save_names(uri, read_names(open_graph(uri, read_only=True)))


if __name__ == "__main__":
    if hasattr(signal, "alarm"):
        signal.alarm(_MAX_SECONDS)
    refresh_names(sys.argv[1])
