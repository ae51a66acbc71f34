"""`omnigraph recovery`: what became of operations whose process was gone."""

import click

from . import show
from .address import address, store_option, uri_argument
from .group import Lazy, LazyGroup
from .options import scope_options, settings, shared_options

_COMMANDS = {"list": Lazy(__name__, "list_", "List the operations that were settled by others.")}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def recovery() -> None:
    """Look at operations that were cut off and settled later."""


@click.command("list")
@uri_argument
@store_option
@shared_options
def list_(uri: str | None, store: str | None) -> None:
    """List them, oldest first: finished, refused, discarded or set aside."""
    root = address(uri, store)
    from omnigraph.graph import open as open_graph

    found = open_graph(root.uri, read_only=True).recoveries()
    if settings().json:
        show.document({"recoveries": [one.to_json() for one in found]})
        return
    for one in found:
        parts = (one.operation_id, one.kind, one.operation, one.branch, one.for_actor or "-")
        show.result("  ".join(parts))
    if not found:
        show.note("nothing was ever recovered")
