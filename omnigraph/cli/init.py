"""`omnigraph init`: create a graph from a schema."""

import click

from omnigraph.errors.diagnostics import SourceText

from . import files, show
from .address import GraphAddress, actor_option, announce_target, graph_arguments, resolve_root
from .options import settings, shared_options


@click.command()
@click.option(
    "--schema", "schema_path", required=True, type=click.Path(allow_dash=True), help="Schema file (.pg) for the graph"
)
@click.option("--force", is_flag=True, help="Take over an interrupted init")
@graph_arguments(direct=True)
@actor_option
@shared_options
def init(address: GraphAddress, schema_path: str, force: bool, actor: str | None) -> None:
    """Create a graph at GRAPH or --store, which is a path or s3://bucket/prefix.

    An existing graph is never replaced, even with --force.
    """
    root = resolve_root(address)
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
