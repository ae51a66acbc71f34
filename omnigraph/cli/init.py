"""`omnigraph init`: create a graph from a schema."""

import click

from omnigraph.errors.diagnostics import SourceText

from . import files, show
from .address import actor_option, announce_target, parse_storage_uri
from .options import settings, shared_options


@click.command()
@click.argument("uri")
@click.option(
    "--schema", "schema_path", required=True, type=click.Path(allow_dash=True), help="Schema file (.pg) for the graph"
)
@click.option("--force", is_flag=True, help="Take over an interrupted init")
@actor_option
@shared_options
def init(uri: str, schema_path: str, force: bool, actor: str | None) -> None:
    """Create a graph at URI, which is a path or s3://bucket/prefix.

    An existing graph is never replaced, even with --force.
    """
    root = parse_storage_uri(uri)
    source = files.read_source(schema_path)
    announce_target("init", root)
    from omnigraph.api.opening import init as init_graph
    from omnigraph.storage.layout import STAMP

    _print_schema_warnings(source)
    graph = init_graph(root.uri, source, force=force, actor=actor)
    if settings().json:
        members = {
            "uri": graph.uri,
            "graph_commit_id": graph.head.id,
            "internal_schema_version": STAMP,
            "types": sorted(graph.snapshot.tables),
            "actor_id": graph.actor,
        }
        show.document(members)
    else:
        show.confirmation(f"initialized {graph.uri}")


def _print_schema_warnings(source: SourceText) -> None:
    """Print warnings about a schema, but no notes, before the graph is created; `init` itself reports errors."""
    from omnigraph.lang.schema import examine_schema

    catalog, diagnostics = examine_schema(source.text, source.name)
    if catalog is not None and not settings().json and not settings().quiet:
        show.findings((finding for finding in diagnostics if finding.severity != "info"), source, err=True)
