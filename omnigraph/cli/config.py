"""`omnigraph config`: show where the operator configuration is and what it contains."""

from typing import TYPE_CHECKING, Any

import click

from . import show
from .group import LazyCommand, LazyGroup
from .options import settings, shared_options

if TYPE_CHECKING:
    from .operator_config import OperatorConfig

_COMMANDS = {
    "path": LazyCommand(__name__, "path", "Print the path of the configuration file"),
    "show": LazyCommand(__name__, "show_", "Show the configuration"),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@shared_options
def config() -> None:
    """Show the user configuration: config.yaml in ~/.omnigraph or $OMNIGRAPH_HOME."""


@click.command()
@shared_options
def path() -> None:
    """Print the path of the configuration file, even if it does not exist."""
    from .operator_config import config_path

    file_path = config_path()
    if settings().json:
        show.document({"path": str(file_path), "exists": file_path.is_file()})
    else:
        show.result(str(file_path))


@click.command("show")
@shared_options
def show_() -> None:
    """Show the configuration: actor, defaults, servers, clusters and profiles."""
    from .operator_config import load_config
    from .profiles import describe_profile

    loaded = load_config()
    profiles = [describe_profile(loaded, name) for name in loaded.profiles]
    if settings().json:
        show.document(_config_document(loaded) | {"profiles": profiles})
        return
    if not loaded.exists:
        show.note(f"{loaded.path} does not exist")
    for key, value in _configured_values(loaded):
        show.result(f"{key:<33} {value}")
    for profile in profiles:
        target = profile["error"] or f"{profile['scope_kind']} {profile['target']}"
        show.result(f"{'profiles.' + profile['name']:<33} {target}")


def _config_document(loaded: "OperatorConfig") -> dict[str, Any]:
    return {
        "path": str(loaded.path),
        "exists": loaded.exists,
        "operator": {"actor": loaded.actor},
        "defaults": {
            "output": loaded.output,
            "table_max_column_width": loaded.table_max_column_width,
            "table_cell_layout": loaded.table_cell_layout,
            "server": loaded.default_server,
            "store": loaded.default_store,
            "default_graph": loaded.default_graph,
        },
        "servers": [{"name": name, "url": url} for name, url in loaded.servers.items()],
        "clusters": [{"name": name, "root": root} for name, root in loaded.clusters.items()],
    }


def _configured_values(loaded: "OperatorConfig") -> list[tuple[str, object]]:
    values = {
        "operator.actor": loaded.actor,
        "defaults.output": loaded.output,
        "defaults.table_max_column_width": loaded.table_max_column_width,
        "defaults.table_cell_layout": loaded.table_cell_layout,
        "defaults.server": loaded.default_server,
        "defaults.store": loaded.default_store,
        "defaults.default_graph": loaded.default_graph,
        **{f"servers.{name}.url": url for name, url in loaded.servers.items()},
        **{f"clusters.{name}.root": root for name, root in loaded.clusters.items()},
    }
    return [(key, value) for key, value in values.items() if value is not None]
