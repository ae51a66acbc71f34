"""`omnigraph token`: create tokens for a server."""

import json
from base64 import urlsafe_b64encode

import click

from omnigraph.values import clock_and_ids

from . import show
from .group import LazyCommand, LazyGroup
from .options import settings, shared_options

_COMMANDS = {"new": LazyCommand(__name__, "new", "Create a token and its entry for the token file")}
_TOKEN_BYTES = 32


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@shared_options
def token() -> None:
    """Create tokens for a server."""


@click.command()
@click.argument("actor")
@click.option(
    "--permission",
    type=click.Choice(["read", "write", "admin"]),
    default="read",
    show_default=True,
    help="Permission that the token grants",
)
@shared_options
def new(actor: str, permission: str) -> None:
    """Create a token for ACTOR.

    The token is shown only once; pass it to its owner. Add the printed entry, which contains only a hash of
    the token, to the server's token file.
    """
    from omnigraph.api.actors import reject_reserved_actor
    from omnigraph.errors import InputError

    if not actor.strip():
        raise InputError("the actor must not be blank", reason="blank actor")
    reject_reserved_actor(actor.strip())
    secret = "og_" + urlsafe_b64encode(clock_and_ids.random_bytes(_TOKEN_BYTES)).decode().rstrip("=")
    entry = {actor.strip(): {"token": _hash(secret), "permission": permission}}
    if settings().json:
        show.document({"actor": actor.strip(), "token": secret, "entry": entry})
        return
    show.result(f"token: {secret}")
    show.result(f"entry: {json.dumps(entry)}")
    show.note(
        "hint: add the entry to the token file ($OMNIGRAPH_SERVER_BEARER_TOKENS_FILE), then send SIGHUP to the server"
    )


def _hash(secret: str) -> str:
    from hashlib import sha256

    return f"sha256:{sha256(secret.encode()).hexdigest()}"
