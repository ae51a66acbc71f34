"""Start a server: check its settings, open the listening socket, and supervise the workers until it is stopped."""

import os
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from omnigraph.errors import ConfigError

from .access.authentication import Authenticator, load_authenticator
from .cross_origin import ANY_ORIGIN
from .log_output import configure_logging
from .process.listener import open_listener
from .process.supervisor import Supervisor
from .process.tls import make_tls_context
from .settings import ServerSettings


def run_server(settings: ServerSettings) -> int:
    """Run a server until a signal stops it, and return the exit code of the program.

    Raises `ConfigError` if the settings, the tokens, the certificate or the address cannot be used, or if no graph can
    be opened.
    """
    configure_logging(settings)
    _check_settings(settings, load_authenticator(settings, os.environ))
    if settings.tracing:
        _check_tracing_is_installed()
    if settings.tls is not None:
        make_tls_context(settings.tls)
    with closing(open_listener(settings)) as listener:
        try:
            return Supervisor(settings, listener).run()
        finally:
            if settings.unix_socket is not None:
                Path(settings.unix_socket).unlink(missing_ok=True)


def _check_settings(settings: ServerSettings, authenticator: Authenticator) -> None:
    """Raise `ConfigError` for settings that contradict each other."""
    graph_ids = [location.graph_id for location in settings.graphs]
    if settings.default_graph is not None and settings.default_graph not in graph_ids:
        raise ConfigError(
            reason=f"--default-graph does not match any graph on this server; expected {' or '.join(graph_ids)}"
        )
    if ANY_ORIGIN in settings.cors_origins and not authenticator.is_open:
        raise ConfigError(
            reason="--cors-origin '*' would let any website use its visitors' tokens; list the allowed origins instead"
        )


def _check_tracing_is_installed() -> None:
    """Raise `ConfigError` if OpenTelemetry, which tracing requires, is not installed."""
    try:
        is_installed = find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        is_installed = False
    if not is_installed:
        raise ConfigError(reason="--tracing requires the extra 'otel' (pip install 'omnigraph[otel]')")
