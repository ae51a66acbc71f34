"""Scopes: the servers, clusters and stores that profiles and defaults in the operator configuration refer to.

This module selects the active profile and checks its binding. It never connects to a server or store, so
it can describe profiles whose server or store does not exist.
"""

import os
from typing import Any, Literal

from omnigraph.errors import ConfigError, NotFound, OmnigraphError
from omnigraph.records.frozen import record

from .operator_config import BINDINGS, OperatorConfig

PROFILE_VARIABLE = "OMNIGRAPH_PROFILE"
ScopeKind = Literal["server", "cluster", "store"]


@record
class ProfileScope:
    """A server, cluster or store, and where the configuration names it.

    `origin` is the profile or the key that names the scope, `binding` is the value as written, and `target` is the
    location after server and cluster names have been replaced with their addresses. `token` refers to the token for a
    server, as `env:VARIABLE` or `file:PATH`.
    """

    origin: str
    kind: ScopeKind
    binding: str
    target: str
    default_graph: str | None = None
    token: str | None = None


def active_profile(explicit_profile: str | None = None) -> tuple[str, str] | None:
    """Return the name of the selected profile and the flag or variable that selects it, or None if none is selected."""
    if explicit_profile is not None:
        return explicit_profile, "--profile"
    ambient_profile = os.environ.get(PROFILE_VARIABLE)
    return (ambient_profile, PROFILE_VARIABLE) if ambient_profile else None


def resolve_scope(config: OperatorConfig, explicit_profile: str | None = None) -> ProfileScope | None:
    """Return the scope that the active profile or the defaults name, or None if there is none."""
    selected = active_profile(explicit_profile)
    if selected is not None:
        return profile_scope(config, *selected)
    if config.default_store is not None:
        return ProfileScope("defaults.store", "store", config.default_store, config.default_store)
    if config.default_server is not None:
        server = config.default_server
        return ProfileScope("defaults.server", "server", server, locate_server(config, server), config.default_graph)
    return None


def profile_scope(config: OperatorConfig, name: str, selector: str = "--profile") -> ProfileScope:
    """Return a profile's scope; raise `ConfigError` if its binding is invalid."""
    profile = config.profiles.get(name)
    if profile is None:
        raise _unknown_profile(config, name, selector)
    bindings = [binding for binding in BINDINGS if profile.get(binding) is not None]
    if len(bindings) != 1:
        problem = f"has {' and '.join(bindings)}" if bindings else f"has none of {', '.join(BINDINGS)}"
        raise _invalid_profile(config, name, f"{problem}: set exactly one")
    kind: Any = bindings[0]
    default_graph = profile.get("graph") or profile.get("default_graph")
    for key in (kind, "graph", "default_graph", "token"):
        if profile.get(key) is not None and (not isinstance(profile[key], str) or not profile[key]):
            raise _invalid_profile(config, name, f"'{key}' must be a non-empty string")
    if kind == "store" and default_graph is not None:
        key = "graph" if profile.get("graph") is not None else "default_graph"
        raise _invalid_profile(config, name, f"'{key}' requires a server or a cluster; a store contains only one graph")
    token = profile.get("token")
    if token is not None and (kind != "server" or not token.startswith(("env:", "file:"))):
        problem = "'token' must be env:VARIABLE or file:PATH, and requires a server"
        raise _invalid_profile(config, name, problem)
    binding = profile[kind]
    target = _locate_binding(config, kind, binding)
    return ProfileScope(f"profile '{name}'", kind, binding, target, default_graph, token)


def describe_profile(config: OperatorConfig, name: str) -> dict[str, Any]:
    """Return a profile as JSON-compatible data, with an error instead of a scope if it is invalid."""
    selected = active_profile()
    members: dict[str, Any] = {"name": name, "binding": None, "scope_kind": None, "target": None}
    default_graph = config.profiles[name].get("graph") or config.profiles[name].get("default_graph")
    error_message = None
    try:
        scope = profile_scope(config, name)
        members |= {"binding": scope.binding, "scope_kind": scope.kind, "target": scope.target}
    except OmnigraphError as error:
        error_message = error.message
    state = {"valid": error_message is None, "error": error_message, "default_graph": default_graph}
    return members | state | {"active": selected is not None and selected[0] == name}


def _locate_binding(config: OperatorConfig, kind: ScopeKind, binding: str) -> str:
    if kind == "server":
        return locate_server(config, binding)
    return config.clusters.get(binding, binding) if kind == "cluster" else binding


def locate_server(config: OperatorConfig, server: str) -> str:
    """Return the URL of a server that is given by its URL or by its name in the configuration."""
    if "://" in server:
        return server
    if server not in config.servers:
        known = f"known servers: {', '.join(config.servers)}" if config.servers else "no servers are declared"
        reason = f"unknown server '{server}'; {known}"
        raise ConfigError(f"{config.path}: {reason}", path=str(config.path), reason=reason)
    return config.servers[server]


def _unknown_profile(config: OperatorConfig, name: str, selector: str) -> NotFound:
    known = f"available profiles: {', '.join(config.profiles)}" if config.profiles else "no profiles are defined"
    return NotFound(f"{selector}: unknown profile '{name}'; {known}", hint=f"profiles are defined in {config.path}")


def _invalid_profile(config: OperatorConfig, name: str, problem: str) -> ConfigError:
    reason = f"profile '{name}' {problem}"
    return ConfigError(f"{config.path}: {reason}", path=str(config.path), reason=reason)
