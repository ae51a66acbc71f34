"""Command groups that import a command only when it runs.

This module implements lazy loading and suggests corrections for misspelt commands. The help page is
built from the one-line texts in the command list, so `--help` imports no command.
"""

from importlib import import_module
from typing import Any

import click

from omnigraph.records.frozen import record

from .options import SCOPE_FLAGS, Invocation


@record
class LazyCommand:
    """The location of a command, and its line on the help page."""

    module: str
    attribute: str
    help: str


def _reject_unused_flags(ctx: click.Context, command_path: str, command: click.Command) -> None:
    """Reject a flag before a command that does not accept it, so that no flag is silently ignored."""
    invocation = ctx.find_object(Invocation)
    if invocation is None or isinstance(command, click.Group):
        return
    accepted_names = {parameter.name for parameter in command.params}
    for name, flag in SCOPE_FLAGS.items():
        if name in invocation.scope_flags and name not in accepted_names:
            ctx.fail(f"{command_path} does not accept {flag}")


class LazyGroup(click.Group):
    """A click group that imports its commands on demand."""

    def __init__(self, *args: Any, lazy: dict[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy_commands = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in declaration order."""
        return list(self._lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        lazy_command = self._lazy_commands.get(cmd_name)
        if lazy_command is None:
            return None
        command: click.Command = getattr(import_module(lazy_command.module), lazy_command.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does; the error for an unknown command suggests a similar one."""
        is_unknown = bool(args) and not args[0].startswith("-") and args[0] not in self._lazy_commands
        if is_unknown and not ctx.resilient_parsing:
            ctx.fail(f"no such command '{args[0]}'{self._suggest_command(args[0])}")
        name, command, remaining = super().resolve_command(ctx, args)
        asks_for_help = any(argument in ctx.help_option_names for argument in remaining)
        if command is not None and not asks_for_help:
            _reject_unused_flags(ctx, f"{ctx.command_path} {name}", command)
        return name, command, remaining

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy_command.help) for name, lazy_command in self._lazy_commands.items()])

    def _suggest_command(self, typed_name: str) -> str:
        from difflib import get_close_matches

        close_matches = get_close_matches(typed_name, self._lazy_commands, n=1, cutoff=0.5)
        return f"; did you mean '{close_matches[0]}'?" if close_matches else ""
