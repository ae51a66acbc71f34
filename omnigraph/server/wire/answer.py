"""The return types of handlers: a complete body, or a stream of chunks."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from omnigraph.server.route_model import JSON

_encoder = msgspec.json.Encoder(enc_hook=str)


@dataclass(slots=True)
class Answer:
    """A response with its whole body in memory. Sending it removes the body, so that its memory can be released."""

    body: bytes
    media_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """A response whose chunks a thread produces one at a time. Closing `chunks` releases the resources behind it."""

    chunks: Iterator[bytes]
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventAnswer:
    """A response, such as a stream of server-sent events, whose chunks come from the event loop."""

    chunks: AsyncIterator[bytes]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


AnyAnswer = Answer | StreamAnswer | EventAnswer


def json_answer(document: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return a model or plain data as a JSON response.

    >>> json_answer({"branches": ["main"]}).body
    b'{"branches":["main"]}'
    """
    return Answer(_encoder.encode(document), JSON, status, headers or {})
