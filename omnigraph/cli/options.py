"""The flags that every command accepts, before or after its name.

This module defines `Settings`, which determines how results and errors are shown. A flag given after the command
overrides the same flag given before it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import click

from omnigraph.records.frozen import record

from .verbosity import start_log

Command = TypeVar("Command", bound=Callable[..., Any])


@record
class Settings:
    """Settings for displaying results and errors."""

    json: bool = False
    json_errors: bool = False
    color: bool | None = None
    quiet: bool = False
    debug: bool = False


def _settings_from_environment() -> Settings:
    return Settings(json_errors=os.environ.get("OMNIGRAPH_JSON_ERRORS", "") not in ("", "0"), color=_ambient_color())


def _ambient_color() -> bool | None:
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("CLICOLOR_FORCE", "0") != "0" else None


@record
class CurrentGraph:
    """The graph, branch and revision that are current in the shell; its commands use them as defaults.

    `revision` is the revision as it was entered, and `commit_id` is its commit; both are None at the branch head.
    """

    uri: str
    branch: str = "main"
    revision: str | None = None
    commit_id: str | None = None


@dataclass(slots=True)
class Invocation:
    """The state of one program run, filled in as flags are read. It outlives the click context.

    `scope_flags` holds those flags given before the command that only some commands accept. Commands that change data
    set `is_write`, and their error messages say whether anything was written. The shell sets `current_graph`.
    """

    settings: Settings = field(default_factory=_settings_from_environment)
    scope_flags: dict[str, Any] = field(default_factory=dict)
    is_write: bool = False
    current_graph: CurrentGraph | None = None


def _current_invocation() -> Invocation | None:
    context = click.get_current_context(silent=True)
    return context.find_object(Invocation) if context is not None else None


def settings() -> Settings:
    """Return the settings for the running command."""
    invocation = _current_invocation()
    return invocation.settings if invocation is not None else _settings_from_environment()


def current_graph() -> CurrentGraph | None:
    """Return the shell's current graph, or None outside the shell."""
    invocation = _current_invocation()
    return invocation.current_graph if invocation is not None else None


def mark_as_write() -> None:
    """Record that the running command changes data."""
    invocation = _current_invocation()
    if invocation is not None:
        invocation.is_write = True


def shared_options(command: Command) -> Command:
    """Add the shared flags to a command."""
    for option in reversed(_SHARED_OPTIONS):
        command = option(command)
    return command


def _store_setting(setting_name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def store_value(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value in (None, False):
            return
        if setting_name == "color":
            value = {"always": True, "never": False, "auto": None}[value]
        invocation = context.ensure_object(Invocation)
        invocation.settings = replace(invocation.settings, **{setting_name: value})

    return store_value


def _flag_option(declaration: str, setting_name: str, help_text: str) -> Callable[[Any], Any]:
    return click.option(
        declaration,
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_store_setting(setting_name),
        help=help_text,
    )


def _start_log(context: click.Context, _: click.Parameter, verbosity: int) -> None:
    if not context.resilient_parsing:
        start_log(verbosity)


_SHARED_OPTIONS = (
    _flag_option("--json", "json", "Print the result as one JSON document"),
    _flag_option("--json-errors", "json_errors", "Print errors as JSON to standard output"),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        is_eager=True,
        callback=_store_setting("color"),
        help="When to use colors; auto uses them on a terminal  [default: auto]",
    ),
    _flag_option("--quiet", "quiet", "Hide confirmations, notes, warnings and progress"),
    click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        is_eager=True,
        callback=_start_log,
        help="Log operations to standard error; -vv logs more",
    ),
    _flag_option("--debug", "debug", "Show the Python traceback for errors"),
)

# Flags that may precede a command, by their parameter name in the commands that accept them.
SCOPE_FLAGS = {
    "store": "--store",
    "profile": "--profile",
    "server": "--server",
    "cluster": "--cluster",
    "graph_id": "--graph",
    "actor": "--as",
    "yes": "--yes",
}


def scope_option(
    declaration: str, parameter_name: str, *, load_default: Callable[[], Any] | None = None, **attributes: Any
) -> Callable[[Command], Command]:
    """Declare a flag that may also precede the command; a value given after the command takes precedence.

    `load_default` is called only if the flag is not given at all.
    """

    def use_group_value(context: click.Context, _: click.Parameter, value: Any) -> Any:
        invocation = context.find_object(Invocation)
        group_value = invocation.scope_flags.get(parameter_name) if invocation is not None else None
        if value in (None, False) and group_value is not None:
            return group_value
        return load_default() if value is None and load_default is not None and not context.resilient_parsing else value

    return click.option(declaration, parameter_name, callback=use_group_value, **attributes)


def scope_options(command: Command) -> Command:
    """Let a group accept its commands' flags before the command name."""
    for declaration, parameter_name, attributes in reversed(_SCOPE_OPTIONS):
        option = click.option(
            declaration, parameter_name, expose_value=False, callback=_remember_scope(parameter_name), **attributes
        )
        command = option(command)
    return command


def _remember_scope(parameter_name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def store_flag(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value not in (None, False):
            context.ensure_object(Invocation).scope_flags[parameter_name] = value

    return store_flag


_SCOPE_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--store", "store", {"metavar": "URI", "help": "Graph location, for commands that need one"}),
    ("--profile", "profile", {"metavar": "NAME", "help": "Configuration profile that selects the graph"}),
    ("--server", "server", {"metavar": "NAME|URL", "help": "Server that hosts the graph"}),
    ("--cluster", "cluster", {"metavar": "URI", "hidden": True}),
    ("--graph", "graph_id", {"metavar": "ID", "help": "Graph on the server"}),
    ("--as", "actor", {"metavar": "ACTOR", "help": "Actor to record (write commands only)"}),
    ("--yes", "yes", {"is_flag": True, "help": "Skip confirmation prompts for destructive commands"}),
)

snapshot_option = click.option(
    "--snapshot",
    "--at",
    "snapshot",
    metavar="REVISION",
    help="Commit, tag, branch, version, time or other revision, such as '2 hours ago' or main~3;"
    " defaults to the newest state",
)
schema_option = click.option(
    "--schema", "schema_path", required=True, type=click.Path(allow_dash=True), help="Schema file (.pg)"
)
idempotency_key_option = click.option(
    "--idempotency-key",
    metavar="KEY",
    help="Idempotency key; repeating a command with the same key has no further effect",
)
