"""`omnigraph version`: show the installed version."""

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

    versions = {"omnigraph": omnigraph.__version__, "internal-schema": STAMP, "python": platform.python_version()}
    if settings().json:
        show.document(versions)
    else:
        show.result("\n".join(f"{component} {number}" for component, number in versions.items()))
