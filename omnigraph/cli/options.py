"""The flags that every command takes, before or after its name.

Owns `Settings`, the answer to how results and errors are shown. A flag given to the command wins
over the same flag given to the program.
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
    """How to speak to the caller."""

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
    """The settings of one run, filled in as its flags are read; outlives the click context.

    `scope` are flags that were given before the command and that not every command takes. `writes`
    is set by a command that changes data, so that its failure says what became of it.
    """

    settings: Settings = field(default_factory=_from_environment)
    scope: dict[str, Any] = field(default_factory=dict)
    writes: bool = False


def settings() -> Settings:
    """The settings of the running command."""
    context = click.get_current_context(silent=True)
    chosen = context.find_object(Chosen) if context is not None else None
    return chosen.settings if chosen is not None else _from_environment()


def will_write() -> None:
    """The running command changes data."""
    context = click.get_current_context(silent=True)
    chosen = context.find_object(Chosen) if context is not None else None
    if chosen is not None:
        chosen.writes = True


def shared_options(command: Command) -> Command:
    """Give a command the shared flags."""
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
    _flag("--json", "json", "Print one JSON document for programs."),
    _flag("--json-errors", "json_errors", "Print errors as JSON on standard output."),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        is_eager=True,
        callback=_set("color"),
        help="Colours; by default only on a terminal.",
    ),
    _flag("--quiet", "quiet", "Print results and errors only."),
    click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        is_eager=True,
        callback=_log,
        help="Tell what is done on standard error; twice for more.",
    ),
    _flag("--debug", "debug", "Show the Python traceback of an error."),
)

# Flags that may stand before a command, by the name of the parameter of a command that takes them.
SCOPE = {"store": "--store", "actor": "--as", "yes": "--yes"}


def scope_option(declaration: str, name: str, **how: Any) -> Callable[[Command], Command]:
    """A flag of a command that may also stand before it; after it, it wins."""

    def fallen_back(context: click.Context, _: click.Parameter, value: Any) -> Any:
        chosen = context.find_object(Chosen)
        given = chosen.scope.get(name) if chosen is not None else None
        return given if value in (None, False) and given is not None else value

    return click.option(declaration, name, callback=fallen_back, **how)


def scope_options(command: Command) -> Command:
    """Let a group of commands take the flags of its commands before their names."""
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
    ("--store", "store", {"metavar": "URI", "help": "The graph, for commands that need one."}),
    ("--as", "actor", {"metavar": "ACTOR", "help": "Who writes, for commands that write."}),
    (
        "--yes",
        "yes",
        {"is_flag": True, "help": "Do not ask, for commands that destroy something."},
    ),
)

snapshot_option = click.option(
    "--snapshot",
    "--at",
    "snapshot",
    metavar="POINT",
    help="A commit, a tag, a version, a moment, or main~3; not the newest.",
)
schema_option = click.option(
    "--schema",
    "schema_path",
    required=True,
    type=click.Path(allow_dash=True),
    help="The schema (.pg) that the queries are for.",
)
