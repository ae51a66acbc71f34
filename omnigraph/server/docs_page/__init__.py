"""The page that shows the operations of a server. It is one file without references to other hosts."""

from functools import cache
from importlib.resources import files


@cache
def render_docs_page() -> bytes:
    """Return the page; it reads `openapi.json` from the server that it came from."""
    return files(__package__).joinpath("page.html").read_bytes()
