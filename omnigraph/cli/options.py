"""The flags that every command takes, before or after its name.

Owns `Settings`: how results and errors are shown. A flag given to the command overrides the same
flag given to the program.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import click

from omnigraph.record import record

from .verbosity import start_log

Command = TypeVar("Command", bound=Callable[..., Any])


@record
class Settings:
    """How to show results and errors."""

    json: bool = False
    json_errors: bool = False
    color: bool | None = None
    quiet: bool = False
    debug: bool = False


def _from_environment() -> Settings:
    return Settings(
        json_errors=os.environ.get("OMNIGRAPH_JSON_ERRORS", "") not in ("", "0"),
        color=_ambient_color(),
    )


def _ambient_color() -> bool | None:
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("CLICOLOR_FORCE", "0") != "0" else None


@dataclass(slots=True)
class Chosen:
    """The state of one run, filled in as its flags are read; outlives the click context.

    `scope_flags` were given before the command, and not every command takes them. `is_write` is set
    by a command that changes data, so that its failure says whether anything was written.
    """

    settings: Settings = field(default_factory=_from_environment)
    scope: dict[str, Any] = field(default_factory=dict)
    writes: bool = False


def settings() -> Settings:
    """Return the settings of the running command."""
    context = click.get_current_context(silent=True)
    chosen = context.find_object(Chosen) if context is not None else None
    return chosen.settings if chosen is not None else _from_environment()


def will_write() -> None:
    """Record that the running command changes data."""
    context = click.get_current_context(silent=True)
    chosen = context.find_object(Chosen) if context is not None else None
    if chosen is not None:
        chosen.writes = True


def shared_options(command: Command) -> Command:
    """Add the shared flags to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _set(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def remember(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value in (None, False):
            return
        if name == "color":
            value = {"always": True, "never": False, "auto": None}[value]
        chosen = context.ensure_object(Chosen)
        chosen.settings = replace(chosen.settings, **{name: value})

    return remember


def _flag(declaration: str, name: str, text: str) -> Callable[[Any], Any]:
    return click.option(
        declaration, is_flag=True, expose_value=False, is_eager=True, callback=_set(name), help=text
    )


def _log(context: click.Context, _: click.Parameter, times: int) -> None:
    if not context.resilient_parsing:
        start_log(times)


_OPTIONS = (
    _flag("--json", "json", "Print one JSON document"),
    _flag("--json-errors", "json_errors", "Print errors as JSON to standard output"),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        is_eager=True,
        callback=_set("color"),
        help="When to use colors; auto uses them on a terminal  [default: auto]",
    ),
    _flag("--quiet", "quiet", "Print only results and errors"),
    click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        is_eager=True,
        callback=_log,
        help="Log operations to standard error; -vv logs more",
    ),
    _flag("--debug", "debug", "Show the Python traceback of an error"),
)

# Flags that may come before a command, by the parameter name of the commands that take them.
SCOPE = {"store": "--store", "actor": "--as", "yes": "--yes"}


def scope_option(declaration: str, name: str, **how: Any) -> Callable[[Command], Command]:
    """Declare a flag that may also come before the command; the value after it wins."""

    def fallen_back(context: click.Context, _: click.Parameter, value: Any) -> Any:
        chosen = context.find_object(Chosen)
        given = chosen.scope.get(name) if chosen is not None else None
        return given if value in (None, False) and given is not None else value

    return click.option(declaration, name, callback=fallen_back, **how)


def scope_options(command: Command) -> Command:
    """Let a group accept the flags of its commands before their names."""
    for declaration, name, how in reversed(_SCOPE):
        option = click.option(
            declaration, name, expose_value=False, callback=_remember_scope(name), **how
        )
        command = option(command)
    return command


def _remember_scope(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def remember(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value not in (None, False):
            context.ensure_object(Chosen).scope[name] = value

    return remember


_SCOPE: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--store", "store", {"metavar": "URI", "help": "Graph, for commands that need one"}),
    ("--as", "actor", {"metavar": "ACTOR", "help": "Actor to record, for commands that write"}),
    (
        "--yes",
        "yes",
        {"is_flag": True, "help": "Skip confirmation prompts, for destructive commands"},
    ),
)

snapshot_option = click.option(
    "--snapshot",
    "--at",
    "snapshot",
    metavar="REVISION",
    help="Commit, tag, version, timestamp, or main~3; the default is the newest state",
)
schema_option = click.option(
    "--schema",
    "schema_path",
    required=True,
    type=click.Path(allow_dash=True),
    help="Schema file (.pg)",
)
