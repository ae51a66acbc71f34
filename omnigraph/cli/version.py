"""`omnigraph version`."""

import platform

import click

import omnigraph

from . import show
from .options import settings, shared_options


@click.command()
@shared_options
def version() -> None:
    """Print the version of omnigraph and of the Python it runs on."""
    if settings().json:
        show.document({"omnigraph": omnigraph.__version__, "python": platform.python_version()})
    else:
        show.result(f"omnigraph {omnigraph.__version__}\npython {platform.python_version()}")
