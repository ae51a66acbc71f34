"""Start a server: check its settings, open the listening socket, and supervise the workers until it is stopped."""

import os
from contextlib import closing
from pathlib import Path

from .access.authentication import load_authenticator
from .process.listener import open_listener
from .process.supervisor import Supervisor
from .process.tls import make_tls_context
from .settings import ServerSettings


def run_server(settings: ServerSettings) -> int:
    """Run a server until a signal stops it, and return the exit code of the program.

    Raises `ConfigError` if the settings, the tokens, the certificate or the address cannot be used, or if no graph can
    be opened.
    """
    load_authenticator(settings, os.environ)
    if settings.tls is not None:
        make_tls_context(settings.tls)
    with closing(open_listener(settings)) as listener:
        try:
            return Supervisor(settings, listener).run()
        finally:
            if settings.unix_socket is not None:
                Path(settings.unix_socket).unlink(missing_ok=True)
