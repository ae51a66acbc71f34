"""Command groups that import a command only when it runs.

Owns lazy loading and the suggestion for a misspelt command. The help page is built from the
one-line texts given here, so that `--help` imports no command.
"""

from importlib import import_module
from typing import Any

import click

from omnigraph.record import record

from .options import SCOPE, Chosen


@record
class Lazy:
    """The location of a command, and its line on the help page."""

    module: str
    attribute: str
    help: str


def _refuse_useless(ctx: click.Context, path: str, command: click.Command) -> None:
    """Reject a flag before a command that does not take it: no flag is ever ignored."""
    chosen = ctx.find_object(Chosen)
    if chosen is None or isinstance(command, click.Group):
        return
    taken = {one.name for one in command.params}
    for name, flag in SCOPE.items():
        if name in chosen.scope and name not in taken:
            ctx.fail(f"{path} does not take {flag}")


class LazyGroup(click.Group):
    """A click group that imports its commands on demand."""

    def __init__(self, *args: Any, lazy: dict[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order they were given."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        found = self._lazy.get(cmd_name)
        if found is None:
            return None
        command: click.Command = getattr(import_module(found.module), found.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does, with a suggestion for a misspelt one."""
        wrong = bool(args) and not args[0].startswith("-") and args[0] not in self._lazy
        if wrong and not ctx.resilient_parsing:
            ctx.fail(f"no such command '{args[0]}'{self._guess(args[0])}")
        name, command, rest = super().resolve_command(ctx, args)
        asks_for_help = any(one in ctx.help_option_names for one in rest)
        if command is not None and not asks_for_help:
            _refuse_useless(ctx, f"{ctx.command_path} {name}", command)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.help) for name, one in self._lazy.items()])

    def _guess(self, word: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(word, self._lazy, n=1, cutoff=0.5)
        return f"; did you mean '{near[0]}'?" if near else ""
