"""Messages from a worker to the supervisor, sent over a socket.

A worker reports that it is ready, that it is alive, or why it cannot start. If the supervisor dies, the worker detects
the end of the stream and stops. Each message is one line of JSON.
"""

import socket
from typing import Literal

import msgspec

MessageKind = Literal["ready", "alive", "failed"]


class WorkerMessage(msgspec.Struct, frozen=True):
    """A message from a worker."""

    kind: MessageKind
    reason: str | None = None


_decoder = msgspec.json.Decoder(WorkerMessage)


def send_message(channel: socket.socket, message: WorkerMessage) -> None:
    """Send a message. If the supervisor is no longer listening, do nothing."""
    try:
        channel.sendall(msgspec.json.encode(message) + b"\n")
    except OSError:
        return


def split_messages(buffer: bytes) -> tuple[list[WorkerMessage], bytes]:
    r"""Return the complete messages in a buffer, and the remaining bytes.

    >>> split_messages(b'{"kind":"ready"}\n{"ki')
    ([WorkerMessage(kind='ready', reason=None)], b'{"ki')
    """
    *lines, remaining = buffer.split(b"\n")
    return [_decoder.decode(line) for line in lines], remaining
