"""The page that documents the operations of a server. It is a single file without references to other hosts."""

from functools import cache
from importlib.resources import files


@cache
def render_docs_page() -> bytes:
    """Return the page, which loads `openapi.json` from its own server."""
    return files(__package__).joinpath("page.html").read_bytes()
