"""Messages between the supervisor and a worker, over a socket that both hold.

A worker reports that it is ready, that it is alive, or why it cannot start. If the supervisor dies, the worker reads
the end of the stream and stops. Messages are single lines of JSON.
"""

import socket
from typing import Literal

import msgspec

MessageKind = Literal["ready", "alive", "failed"]


class WorkerMessage(msgspec.Struct, frozen=True):
    """A message of a worker."""

    kind: MessageKind
    reason: str | None = None


_decoder = msgspec.json.Decoder(WorkerMessage)


def send_message(channel: socket.socket, message: WorkerMessage) -> None:
    """Send a message; a supervisor that no longer listens is not an error."""
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
