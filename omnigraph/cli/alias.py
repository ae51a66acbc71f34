"""`omnigraph alias`: run a stored query under a short name that the operator configuration defines."""

from typing import Any

import click

from .aliases import find_alias
from .opening import open_graph
from .operator_config import load_config
from .options import shared_options
from .profiles import locate_server
from .query import TEXT_FORMATS, TYPED_FORMATS, choose_format, choose_style, print_lines
from .query_input import parameter_options, read_parameters
from .server_target import locate_served_graph


@click.command()
@click.argument("name")
@click.argument("values", nargs=-1, metavar="[ARGS]...")
@parameter_options
@click.option(
    "--format",
    "form",
    type=click.Choice(TEXT_FORMATS),
    help="Output format; jsonl starts with a metadata line  [default: the alias's format, or table]",
)
@shared_options
def alias(name: str, values: tuple[str, ...], params: str | None, params_file: str | None, form: str | None) -> None:
    """Run the stored query that the alias NAME stands for, and print its rows.

    Aliases are defined under `aliases` in the configuration, with a server, a graph and a query. ARGS set the
    parameters that the alias lists under `args`; each is a JSON value, or else a string. They override the alias's own
    `params`, and --params overrides both. An alias never runs a mutation.
    """
    config = load_config()
    chosen = find_alias(config, name, TEXT_FORMATS)
    arguments = chosen.combine_params(values, read_parameters(params, params_file))
    output_format = choose_format(form or chosen.format)
    target = locate_served_graph(config, locate_server(config, chosen.server), chosen.graph)
    graph: Any = open_graph(target, read_only=True)
    if output_format in TYPED_FORMATS:
        result = graph.stored_query_arrow(chosen.query, arguments)
    else:
        result = graph.stored_query(chosen.query, arguments, is_mutation=False)
    print_lines(result.render(output_format, choose_style()))
