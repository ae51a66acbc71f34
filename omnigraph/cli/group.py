"""Command groups that import a command only when it runs.

This module implements lazy loading and suggests corrections for misspelled commands. The help page is built from the
one-line descriptions in the command list, so `--help` imports no command.
"""

from importlib import import_module
from typing import Any

import click

from omnigraph.records.frozen import record

from .old_spellings import explain_old_command, explain_old_flag
from .options import SCOPE_FLAGS, Invocation

_NO_CURRENT_BRANCH = "; a graph has no current branch: pass --branch to the command that reads or writes"
_GIT_COMMANDS = {
    "checkout": _NO_CURRENT_BRANCH,
    "clone": "; did you mean 'copy'?",
    "gc": "; did you mean 'cleanup'?",
    "merge": "; did you mean 'branch merge'?",
    "reset": "; did you mean 'branch reset'?",
    "show": "; did you mean 'commit show'?",
    "switch": _NO_CURRENT_BRANCH,
}


@record
class LazyCommand:
    """The location of a command, and its line on the help page."""

    module: str
    attribute: str
    help: str


def _reject_unused_flags(ctx: click.Context, command_path: str, command: click.Command) -> None:
    """Raise an error if a command does not accept a flag given before it, so that no flag is silently ignored."""
    invocation = ctx.find_object(Invocation)
    if invocation is None or isinstance(command, click.Group):
        return
    accepted_names = {parameter.name for parameter in command.params}
    for name, flag in SCOPE_FLAGS.items():
        if name in invocation.scope_flags and name not in accepted_names:
            ctx.fail(f"{command_path} does not accept {flag}")


class LazyGroup(click.Group):
    """A click group that imports its commands on demand."""

    def __init__(
        self, *args: Any, lazy: dict[str, LazyCommand], aliases: dict[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy_commands = lazy
        self._aliases = aliases or {}  # aliases for commands, which the help page does not list

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in declaration order."""
        return list(self._lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        lazy_command = self._lazy_commands.get(self._aliases.get(cmd_name, cmd_name))
        if lazy_command is None:
            return None
        command: click.Command = getattr(import_module(lazy_command.module), lazy_command.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does; the error for an unknown command suggests a similar one."""
        is_unknown = bool(args) and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None
        if is_unknown and not ctx.resilient_parsing:
            new_spelling = explain_old_command(args[0]) if "query" in self._lazy_commands else None  # the root group
            ctx.fail(new_spelling or f"no such command '{args[0]}'{self._suggest_command(ctx, args[0])}")
        name, command, remaining = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group) and not ctx.resilient_parsing:
            accepted_flags = {flag for parameter in command.params for flag in parameter.opts}
            old_flag = explain_old_flag(str(name), remaining, accepted_flags)
            if old_flag is not None:
                ctx.fail(old_flag)
        asks_for_help = any(argument in ctx.help_option_names for argument in remaining)
        if command is not None and not asks_for_help:
            _reject_unused_flags(ctx, f"{ctx.command_path} {name}", command)
        return name, command, remaining

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete an option or a command name. Command names are completed without importing the commands."""
        from click.shell_completion import CompletionItem

        names = [name for name in self._lazy_commands if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self._lazy_commands[name].help) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy_command.help) for name, lazy_command in self._lazy_commands.items()])

    def _suggest_command(self, ctx: click.Context, typed_name: str) -> str:
        if typed_name in _GIT_COMMANDS and ctx.parent is None:
            return _GIT_COMMANDS[typed_name]
        from difflib import get_close_matches

        close_matches = get_close_matches(typed_name, self._lazy_commands, n=1, cutoff=0.5)
        return f"; did you mean '{close_matches[0]}'?" if close_matches else ""
