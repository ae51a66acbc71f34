"""`omnigraph profile`: show the profiles in the operator configuration, each of which names a graph."""

from typing import Any

import click

from . import show
from .group import LazyCommand, LazyGroup
from .options import settings, shared_options

_COMMANDS = {
    "list": LazyCommand(__name__, "list_", "List profiles"),
    "show": LazyCommand(__name__, "show_", "Show one profile, by default the active one"),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@shared_options
def profile() -> None:
    """List and show profiles, which are defined in the configuration file."""


@click.command("list")
@shared_options
def list_() -> None:
    """List profiles; `*` marks the one that $OMNIGRAPH_PROFILE selects."""
    from .operator_config import load_config
    from .profiles import describe_profile

    config = load_config()
    profiles = [describe_profile(config, name) for name in config.profiles]
    if settings().json:
        show.document({"profiles": profiles})
        return
    if not profiles:
        show.note(f"no profiles are defined in {config.path}")
    name_width = max((len(described["name"]) for described in profiles), default=0)
    for described in profiles:
        mark = "*" if described["active"] else " "
        target = f"{described['scope_kind']}  {described['target']}" if described["valid"] else described["error"]
        show.result(f"{mark} {described['name']:<{name_width}}  {target}")


@click.command("show")
@click.argument("name", required=False)
@shared_options
def show_(name: str | None) -> None:
    """Show the graph that a profile selects. Without NAME, show the active profile, or else the defaults."""
    from .operator_config import load_config
    from .profiles import active_profile, profile_scope, resolve_scope

    config, selected = load_config(), active_profile()
    scope = profile_scope(config, name, "profile show") if name is not None else resolve_scope(config)
    if name is None:
        name = selected[0] if selected is not None else "(defaults)"
    members: dict[str, Any] = {
        "name": name,
        "scope_kind": scope.kind if scope is not None else None,
        "target": scope.binding if scope is not None else None,
        "endpoint": scope.target if scope is not None else None,
        "default_graph": scope.default_graph if scope is not None else None,
        "output_format": config.output or "table",
    }
    if settings().json:
        show.document(members)
        return
    for key, value in members.items():
        if value is not None:
            show.result(f"{key.replace('_', ' '):<14}{value}")
