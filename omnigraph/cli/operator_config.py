"""The operator configuration: `config.yaml` in `~/.omnigraph`, or in the directory given by `OMNIGRAPH_HOME`.

This module reads and validates the file but never writes it. A missing file counts as an empty configuration, and a
YAML parser is imported only if the file exists. The members of profiles, and all of an alias, are checked when they are
used, so an invalid one does not affect the others.
"""

import os
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

from omnigraph.errors import ConfigError
from omnigraph.records.frozen import record

HOME_VARIABLE = "OMNIGRAPH_HOME"
_FILE_NAME = "config.yaml"
OUTPUT_FORMATS = ("table", "kv", "csv", "jsonl", "json")
CELL_LAYOUTS = ("truncate", "wrap")
BINDINGS = ("server", "cluster", "store")
_SECTIONS: dict[str, frozenset[str] | None] = {
    "operator": frozenset({"actor"}),
    "defaults": frozenset(
        {"output", "table_max_column_width", "table_cell_layout", "server", "store", "default_graph"}
    ),
    # Users choose the names in these sections.
    "servers": None,
    "clusters": None,
    "profiles": None,
    "aliases": None,
}
_ENTRY_KEYS = {
    "servers": frozenset({"url"}),
    "clusters": frozenset({"root"}),
    "profiles": frozenset({*BINDINGS, "default_graph", "graph", "token"}),
    "aliases": frozenset({"server", "graph", "query", "args", "params", "format"}),
}
_MIN_COLUMN_WIDTH = 8


@record
class OperatorConfig:
    """The content of the configuration file; a member is None or empty if the file does not set it."""

    path: Path
    exists: bool = False
    actor: str | None = None
    output: str | None = None
    table_max_column_width: int | None = None
    table_cell_layout: str | None = None
    default_server: str | None = None
    default_store: str | None = None
    default_graph: str | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    aliases: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def config_path() -> Path:
    """Return the path of the configuration file; the file may not exist."""
    home = os.environ.get(HOME_VARIABLE) or "~/.omnigraph"
    return Path(home).expanduser() / _FILE_NAME


def load_config() -> OperatorConfig:
    """Read the configuration; the first call in a process warns about unknown keys."""
    path = config_path()
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return OperatorConfig(path)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", path=str(path)) from error
    return _parse_once(path, text)


@lru_cache(maxsize=1)
def _parse_once(path: Path, text: bytes) -> OperatorConfig:
    from . import show

    config = parse_config(path, text)
    show.warnings(config.warnings)
    return config


def parse_config(path: Path, text: bytes) -> OperatorConfig:
    r"""Parse and validate the text of a configuration file.

    >>> config = parse_config(Path("config.yaml"), b"operator: {actor: ann}\ncolor: red")
    >>> config.actor, config.warnings
    ('ann', ("config.yaml: unknown key 'color' is ignored",))
    """
    document = _parse_yaml(path, text)
    unknown_keys: list[str] = []
    sections = {name: _read_section(path, document, name, unknown_keys) for name in _SECTIONS}
    unknown_keys[:0] = [str(key) for key in document if key not in _SECTIONS]
    defaults = sections["defaults"]
    config = OperatorConfig(
        path,
        exists=True,
        actor=_read_text(path, "operator.actor", sections["operator"].get("actor")),
        output=_read_choice(path, "defaults.output", defaults.get("output"), OUTPUT_FORMATS),
        table_max_column_width=_read_width(path, defaults.get("table_max_column_width")),
        table_cell_layout=_read_choice(
            path, "defaults.table_cell_layout", defaults.get("table_cell_layout"), CELL_LAYOUTS
        ),
        default_server=_read_text(path, "defaults.server", defaults.get("server")),
        default_store=_read_text(path, "defaults.store", defaults.get("store")),
        default_graph=_read_text(path, "defaults.default_graph", defaults.get("default_graph")),
        servers=_read_locations(path, "servers", "url", sections["servers"]),
        clusters=_read_locations(path, "clusters", "root", sections["clusters"]),
        profiles=sections["profiles"],
        aliases=sections["aliases"],
        warnings=tuple(f"{path}: unknown key '{key}' is ignored" for key in unknown_keys),
    )
    _reject_contradictions(config)
    return config


def _parse_yaml(path: Path, text: bytes) -> dict[Any, Any]:
    import yaml

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _syntax_error(path, error) from None
    except RecursionError:
        raise _config_error(path, "it is nested too deeply") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise _config_error(path, "expected a mapping of sections such as `defaults:`")
    return document


def _syntax_error(path: Path, error: Any) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not valid YAML"
    position = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
    return ConfigError(f"{path}{position}: {problem}", path=str(path), reason="not valid YAML")


def _config_error(path: Path, reason: str) -> ConfigError:
    return ConfigError(f"{path}: {reason}", path=str(path), reason=reason)


def _read_section(path: Path, document: dict[Any, Any], section: str, unknown_keys: list[str]) -> dict[str, Any]:
    members = document.get(section) or {}
    if not isinstance(members, dict):
        raise _config_error(path, f"'{section}' must be a mapping")
    allowed_keys = _SECTIONS[section]
    if allowed_keys is not None:
        unknown_keys += [f"{section}.{key}" for key in members if key not in allowed_keys]
        return members
    entries = {str(name): entry for name, entry in members.items()}
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            if section == "aliases":
                continue
            raise _config_error(path, f"'{section}.{name}' must be a mapping")
        unknown_keys += [f"{section}.{name}.{key}" for key in entry if key not in _ENTRY_KEYS[section]]
    return entries


def _read_text(path: Path, key: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    raise _config_error(path, f"'{key}' must be a non-empty string, not {value!r}")


def _read_choice(path: Path, key: str, value: Any, choices: tuple[str, ...]) -> str | None:
    if value is None or value in choices:
        return value  # type: ignore[no-any-return]
    raise _config_error(path, f"'{key}' must be one of {', '.join(choices)}, not {value!r}")


def _read_width(path: Path, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= _MIN_COLUMN_WIDTH):
        return value
    key = "defaults.table_max_column_width"
    raise _config_error(path, f"'{key}' must be an integer of at least {_MIN_COLUMN_WIDTH}, not {value!r}")


def _read_locations(path: Path, section: str, key: str, entries: Mapping[str, Any]) -> dict[str, str]:
    locations = {}
    for name, entry in entries.items():
        location = _read_text(path, f"{section}.{name}.{key}", entry.get(key))
        if location is None:
            raise _config_error(path, f"'{section}.{name}' has no '{key}'")
        locations[name] = location
    return locations


def _reject_contradictions(config: OperatorConfig) -> None:
    if config.default_store is not None and config.default_server is not None:
        raise _config_error(config.path, "'defaults.store' and 'defaults.server' are mutually exclusive: set only one")
    if config.default_store is not None and config.default_graph is not None:
        raise _config_error(
            config.path,
            "'defaults.default_graph' requires 'defaults.server'; 'defaults.store' already selects one graph",
        )
