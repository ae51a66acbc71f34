"""Aliases: short names for stored queries, defined under `aliases` in the operator configuration.

This module checks an alias when it is used, and combines its parameters with those on the command line. It never
connects to a server.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from omnigraph.errors import ConfigError, NotFound
from omnigraph.lang.schema.names import did_you_mean
from omnigraph.records.frozen import record

from .operator_config import OperatorConfig
from .query_input import parse_json_value


@record
class QueryAlias:
    """A stored read query on a server, with default parameters.

    `args` contains the names of the parameters that the command's arguments set, in order.
    """

    name: str
    query: str
    server: str
    graph: str | None
    args: tuple[str, ...]
    params: Mapping[str, Any]
    format: str | None

    def combine_params(self, arguments: Sequence[str], params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the alias's parameters, overridden by the arguments, and both overridden by `params`.

        An argument is a JSON value, or else a string.
        """
        if len(arguments) > len(self.args):
            accepted = f"accepts {' '.join(self.args).upper()}" if self.args else "accepts no arguments"
            raise click.UsageError(f"alias '{self.name}' {accepted}; unexpected argument '{arguments[len(self.args)]}'")
        values = map(parse_json_value, arguments)
        return {**self.params, **dict(zip(self.args, values, strict=False)), **params}


def find_alias(config: OperatorConfig, name: str, formats: Sequence[str]) -> QueryAlias:
    """Return an alias; raise `NotFound` if it is not defined, and `ConfigError` if it is invalid."""
    if name not in config.aliases:
        known = f"available aliases: {', '.join(config.aliases)}" if config.aliases else "no aliases are defined"
        hint = did_you_mean(name, config.aliases, f"aliases are defined in {config.path}")
        raise NotFound(f"unknown alias '{name}'; {known}", hint=hint)
    entry = config.aliases[name]
    if not isinstance(entry, dict):
        raise _invalid_alias(config, name, "must be a mapping")
    for key in ("server", "graph", "query", "format"):
        if entry.get(key) is not None and (not isinstance(entry[key], str) or not entry[key]):
            raise _invalid_alias(config, name, f"'{key}' must be a non-empty string")
    server = entry.get("server") or config.default_server
    graph = entry.get("graph") or (None if entry.get("server") else config.default_graph)
    if entry.get("query") is None or server is None:
        missing = "query" if entry.get("query") is None else "server"
        raise _invalid_alias(config, name, f"has no '{missing}'")
    if entry.get("format") not in (None, *formats):
        raise _invalid_alias(config, name, f"'format' must be one of {', '.join(formats)}")
    args, params = _read_args(config, name, entry), entry.get("params") or {}
    if not isinstance(params, dict) or not all(isinstance(key, str) for key in params):
        raise _invalid_alias(config, name, "'params' must be a mapping from parameter names to values")
    return QueryAlias(
        name, entry["query"], server, graph, args, _as_json_values(config, name, params), entry.get("format")
    )


def _read_args(config: OperatorConfig, name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    args = entry.get("args") or []
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args) or len(set(args)) != len(args):
        raise _invalid_alias(config, name, "'args' must be a list of different parameter names")
    return tuple(args)


def _as_json_values(config: OperatorConfig, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON values. Unquoted YAML dates and times are converted to text."""
    try:
        values: dict[str, Any] = json.loads(json.dumps(params, default=lambda value: value.isoformat()))
    except (AttributeError, TypeError, ValueError):
        raise _invalid_alias(config, name, "'params' must contain only values that JSON can express") from None
    return values


def _invalid_alias(config: OperatorConfig, name: str, problem: str) -> ConfigError:
    reason = f"alias '{name}': {problem}" if problem.startswith("'") else f"alias '{name}' {problem}"
    return ConfigError(f"{config.path}: {reason}", path=str(config.path), reason=reason)
