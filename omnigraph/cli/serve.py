"""`omnigraph serve`: serve graphs over HTTP until the program is stopped."""

from typing import Any

import click

from .options import shared_options


@click.command()
@click.argument("graphs", metavar="[NAME=]GRAPH...", nargs=-1, required=True)
@click.option(
    "--bind",
    envvar="OMNIGRAPH_BIND",
    default="127.0.0.1:8080",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on; without HOST, all interfaces; port 0 selects a free port",
)
@click.option("--unix-socket", metavar="PATH", type=click.Path(), help="Listen on a Unix socket instead of --bind")
@click.option(
    "--workers", type=click.IntRange(min=1, max=64), default=1, show_default=True, help="Number of worker processes"
)
@click.option("--unauthenticated", is_flag=True, help="Let anyone read and write if no tokens are configured")
@click.option(
    "--token-permission",
    type=click.Choice(["read", "write", "admin"]),
    default="read",
    show_default=True,
    help="Permission for tokens that do not specify one",
)
@click.option("--oidc-issuer", metavar="URL", help="Also accept tokens from this OpenID Connect identity provider")
@click.option("--oidc-audience", metavar="NAME", help="Required audience (`aud`) of the provider's tokens")
@click.option(
    "--oidc-jwks-url", metavar="URL", help="URL of the provider's keys  [default: discovered from the provider]"
)
@click.option(
    "--oidc-refresh",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=300,
    show_default=True,
    help="Refresh the provider's keys after this many seconds",
)
@click.option("--tls-cert", metavar="FILE", type=click.Path(), help="TLS certificate chain (PEM)")
@click.option("--tls-key", metavar="FILE", type=click.Path(), help="TLS private key (PEM)")
@click.option("--tls-client-ca", metavar="FILE", type=click.Path(), help="CA for verifying client certificates")
@click.option("--queries", metavar="DIR", type=click.Path(), help="Folder with stored queries (.gq)")
@click.option(
    "--query-timeout", type=click.FloatRange(min=0), default=0, help="Query timeout in seconds; 0 disables it"
)
@click.option(
    "--export-slots",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    help="Maximum number of concurrent exports per graph",
)
@click.option(
    "--max-query-bytes",
    type=click.IntRange(min=1),
    envvar="OMNIGRAPH_MAX_QUERY_BYTES",
    default=32 << 20,
    help="Maximum size in bytes of a query or mutation, including its parameters",
)
@click.option("--max-load-bytes", type=click.IntRange(min=1), default=32 << 20, help="Maximum load size in bytes")
@click.option(
    "--max-rows", type=click.IntRange(min=0), default=0, help="Maximum number of rows in a result; 0 means unlimited"
)
@click.option(
    "--max-result-bytes", type=click.IntRange(min=0), default=0, help="Maximum result size in bytes; 0 means unlimited"
)
@click.option(
    "--query-memory",
    metavar="BYTES",
    type=click.IntRange(min=1),
    envvar="OMNIGRAPH_QUERY_MEMORY",
    help="Memory that a query may use  [default: 4 GiB divided by the number of workers]",
)
@click.option("--default-graph", metavar="NAME", help="Graph that is also served without the /graphs/NAME prefix")
@click.option("--no-flat-routes", is_flag=True, help="Serve graphs only under /graphs/NAME")
@click.option("--require-all-graphs", is_flag=True, help="Fail to start if any graph cannot be opened")
@click.option("--hide-uris", is_flag=True, help="Omit storage locations from responses")
@click.option(
    "--cors-origin", "cors_origins", multiple=True, metavar="ORIGIN", help="Allowed CORS origin; may be repeated"
)
@click.option("--forwarded-allow-ips", metavar="IPS", help="Proxies whose X-Forwarded headers are trusted")
@click.option(
    "--shutdown-grace",
    type=click.FloatRange(min=0),
    default=30,
    show_default=True,
    help="Seconds to wait for running requests at shutdown",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Log format")
@click.option(
    "--log-level",
    envvar="OMNIGRAPH_LOG",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    help="Minimum log level",
)
@click.option(
    "--tracing",
    is_flag=True,
    help="Export OpenTelemetry spans over OTLP; the OTEL_* environment variables configure the exporter",
)
@shared_options
@click.pass_context
def serve(context: click.Context, /, graphs: tuple[str, ...], **options: Any) -> None:
    """Serve one or more graphs over HTTP.

    A single graph is served under `/graphs/default`, and also without this prefix. Several graphs require names, as in
    people=URI docs=URI. When the server is ready, it prints one line, OMNIGRAPH_LISTEN_ADDR=HOST:PORT. Tokens are read
    from OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, OMNIGRAPH_SERVER_BEARER_TOKENS_JSON or OMNIGRAPH_SERVER_BEARER_TOKEN.
    SIGHUP replaces the workers one by one. On SIGTERM, the server finishes running requests and exits.
    """
    from omnigraph.errors import ConfigError

    try:
        from omnigraph.server.boot import run_server
    except ModuleNotFoundError as error:
        raise ConfigError(reason=f"the server requires the 'server' extra ({error.name} is not installed)") from None
    context.exit(run_server(_make_settings(graphs, options)))


def _make_settings(graphs: tuple[str, ...], options: dict[str, Any]) -> Any:
    from omnigraph.server.settings import (
        DEFAULT_QUERY_MEMORY,
        RequestLimits,
        ServerSettings,
        parse_graph_locations,
        read_boolean_variable,
        read_number_variable,
    )

    defaults = RequestLimits()
    return ServerSettings(
        graphs=parse_graph_locations(graphs),
        bind=options["bind"],
        unix_socket=options["unix_socket"],
        workers=options["workers"],
        unauthenticated=options["unauthenticated"] or read_boolean_variable("OMNIGRAPH_UNAUTHENTICATED"),
        token_permission=options["token_permission"],
        oidc_issuer=options["oidc_issuer"],
        oidc_audience=options["oidc_audience"],
        oidc_jwks_url=options["oidc_jwks_url"],
        oidc_refresh_seconds=options["oidc_refresh"],
        tls=_tls_files(options),
        queries_directory=options["queries"],
        default_graph=options["default_graph"],
        requires_all_graphs=options["require_all_graphs"] or read_boolean_variable("OMNIGRAPH_REQUIRE_ALL_GRAPHS"),
        flat_routes=not options["no_flat_routes"],
        hide_uris=options["hide_uris"],
        cors_origins=options["cors_origins"],
        forwarded_allow_ips=options["forwarded_allow_ips"],
        shutdown_grace=options["shutdown_grace"],
        log_format=options["log_format"],
        log_level=options["log_level"],
        tracing=options["tracing"] or read_boolean_variable("OMNIGRAPH_TRACING"),
        limits=RequestLimits(
            query_seconds=options["query_timeout"],
            export_slots=options["export_slots"],
            query_bytes=options["max_query_bytes"],
            load_bytes=options["max_load_bytes"],
            result_rows=options["max_rows"],
            result_bytes=options["max_result_bytes"],
            query_memory_bytes=options["query_memory"] or DEFAULT_QUERY_MEMORY // options["workers"],
            actor_requests=read_number_variable("OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX", defaults.actor_requests),
            actor_bytes=read_number_variable("OMNIGRAPH_PER_ACTOR_BYTES_MAX", defaults.actor_bytes),
        ),
    )


def _tls_files(options: dict[str, Any]) -> Any:
    from omnigraph.server.settings import TlsFiles

    certificate, key, client_ca = options["tls_cert"], options["tls_key"], options["tls_client_ca"]
    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("TLS requires both --tls-cert and --tls-key")
    return TlsFiles(certificate, key, client_ca)
