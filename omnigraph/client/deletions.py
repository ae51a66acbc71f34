"""Delete branches and tags, and determine the outcome if the response is lost.

A deletion is never repeated automatically, because another client may have created a new branch with the same name.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from omnigraph.errors import GraphNotFound, NotFound, OmnigraphError

from .exchange import Exchange


def delete_ref(exchange: Exchange, segments: tuple[str, str], parameters: Mapping[str, Any]) -> None:
    """Delete a branch or a tag. If the response is lost and the name no longer exists, the deletion has succeeded."""
    try:
        exchange.call("DELETE", segments, parameters)
    except OmnigraphError as lost:
        if lost.effect != "unknown" or not _is_missing(exchange, segments):
            raise


def _is_missing(exchange: Exchange, segments: tuple[str, str]) -> bool:
    with suppress(OmnigraphError):
        try:
            exchange.get(*segments)
        except NotFound as error:
            return not isinstance(error, GraphNotFound)
    return False
