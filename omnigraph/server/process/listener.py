"""Open the listening socket, and print its address."""

import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

from omnigraph.errors import ConfigError
from omnigraph.server.settings import ServerSettings, parse_bind

_BACKLOG = 2048
_LISTEN_HINT = "stop the process that uses the address, or choose another one with --bind or --unix-socket"


def open_listener(settings: ServerSettings) -> socket.socket:
    """Return a bound socket; raise `ConfigError` if the address cannot be used."""
    try:
        if settings.unix_socket is not None:
            return _open_unix_socket(Path(settings.unix_socket))
        return _open_tcp_socket(*parse_bind(settings.bind))
    except OSError as error:
        address = settings.unix_socket or settings.bind
        reason = f"cannot listen on {address}: {error.strerror or error}"
        raise ConfigError(reason, reason=reason, hint=_LISTEN_HINT) from None


def _open_tcp_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        stack.pop_all()
    return listener


def _open_unix_socket(path: Path) -> socket.socket:
    """Bind a Unix socket that only its owner can connect to. A socket file that no process listens on is replaced."""
    listener = socket.socket(socket.AF_UNIX)
    if path.is_socket() and not _is_listening(path):
        path.unlink()
    previous_mask = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(previous_mask)
    listener.listen(_BACKLOG)
    return listener


def _is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def announce_listener(listener: socket.socket) -> None:
    """Print the line from which programs read the server's address."""
    address = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        location = f"unix:{address}"
    else:
        host, port = address[:2]
        location = f"[{host}]:{port}" if listener.family == socket.AF_INET6 else f"{host}:{port}"
    sys.stdout.write(f"OMNIGRAPH_LISTEN_ADDR={location}\n")
    sys.stdout.flush()
