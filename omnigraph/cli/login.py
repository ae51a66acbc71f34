"""`omnigraph login` and `omnigraph logout`: store and remove the token for a server."""

import sys

import click

from omnigraph.errors import InputError

from . import show
from .options import settings, shared_options


@click.command()
@click.argument("server")
@shared_options
def login(server: str) -> None:
    """Store the token for SERVER, which is a name under `servers` in the configuration, or a URL.

    The token is read from a prompt or from standard input, so that it does not appear in the shell history. It is
    stored in the file `credentials` in the configuration directory; only you can read this file.
    """
    from .credentials import store_token

    section, is_declared = _section_of(server)
    token = _read_token(section)
    path = store_token(section, token)
    if not is_declared:
        show.note(f"note: the configuration declares no server named '{section}'")
    if settings().json:
        show.document({"server": section, "credentials_path": str(path), "declared": is_declared})
    else:
        show.confirmation(f"stored the token for {section} in {path}")


@click.command()
@click.argument("server")
@shared_options
def logout(server: str) -> None:
    """Remove the stored token for SERVER; a missing token is not an error."""
    from .credentials import credentials_path, remove_token

    section, _ = _section_of(server)
    was_removed = remove_token(section)
    if settings().json:
        show.document({"server": section, "credentials_path": str(credentials_path()), "removed": was_removed})
    else:
        outcome = "removed the token for" if was_removed else "no token is stored for"
        show.confirmation(f"{outcome} {section}")


def _section_of(server: str) -> tuple[str, bool]:
    """Return a server's section in the credentials file, and whether the configuration declares the server."""
    from .operator_config import load_config

    servers = load_config().servers
    if "://" not in server:
        if not server.strip() or "]" in server:
            raise click.UsageError(f"invalid server name '{server}'")
        return server, server in servers
    from omnigraph.client.locations import parse_server_address

    url = str(parse_server_address(server.partition("/graphs/")[0]))
    return next(((name, True) for name, known_url in servers.items() if known_url.rstrip("/") == url), (url, True))


def _read_token(section: str) -> str:
    if sys.stdin is not None and sys.stdin.isatty():
        token = click.prompt(f"Token for {section}", hide_input=True, default="", show_default=False, err=True)
    else:
        token = sys.stdin.readline() if sys.stdin is not None else ""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        problem = "contains a space, a control character or a non-ASCII character" if token else "is empty"
        raise InputError(f"the token {problem}; nothing was stored", reason="no token")
    return token
