"""`omnigraph version`."""

import platform

import click

import omnigraph

from . import show
from .options import settings, shared_options


@click.command()
@shared_options
def version() -> None:
    """Print the versions of omnigraph, its storage format, and Python."""
    from omnigraph.storage.layout import STAMP

    told = {
        "omnigraph": omnigraph.__version__,
        "internal-schema": STAMP,
        "python": platform.python_version(),
    }
    if settings().json:
        show.document(told)
    else:
        show.result("\n".join(f"{name} {number}" for name, number in told.items()))
