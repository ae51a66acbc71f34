"""Print conflicts as text: the first few, with the values on each side, and the commands to run next.

This module also defines the options for resolving conflicts, which `branch merge`, `revert` and `cherry-pick` share.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from omnigraph.records.frozen import record

from . import exits, show
from .options import idempotency_key_option, settings

if TYPE_CHECKING:
    from omnigraph.api.merge_sessions import MergeResult
    from omnigraph.errors import EntityConflict, MergeConflict

Command = TypeVar("Command", bound=Callable[..., Any])
_MAX_SHOWN = 3
_MAX_VALUE_LENGTH = 40
_ROW_CONFLICTS = {"divergent_insert", "divergent_update", "delete_vs_update"}  # kinds shown in the table of values


@record
class TypedCommand:
    """The command as the user typed it. `strategies` are its conflict strategies, and `options` its other options."""

    words: tuple[str, ...]
    uri: str
    options: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()

    @property
    def has_named_strategies(self) -> bool:
        """Whether the user chose a side per type or conflict kind instead of one side for all conflicts."""
        return any("=" in strategy for strategy in self.strategies)

    def by_property(self) -> "TypedCommand":
        """Return the command with the default granularity.

        >>> build_typed_command(("revert", "HEAD"), "g", {"granularity": "entity"}).by_property().with_options()
        'omnigraph revert HEAD --store g'
        """
        at = self.options.index("--granularity") if "--granularity" in self.options else len(self.options)
        return replace(self, options=self.options[:at] + self.options[at + 2 :])

    def with_options(self, *extra_options: str) -> str:
        """Return the command with more options. A new `--strategy` replaces one that applies to all conflicts."""
        strategies = () if "--strategy" in extra_options and not self.has_named_strategies else self.strategies
        location = ("--store", self.uri) if self.uri else ()  # otherwise the environment names the graph
        command_words = ("omnigraph", *self.words, *location, *self.options, *strategies, *extra_options)
        return " ".join(shlex.quote(argument) for argument in command_words)


def build_typed_command(
    words: tuple[str, ...], uri: str, options: Mapping[str, Any], strategies: Sequence[str] = ()
) -> TypedCommand:
    """Return the command as the user typed it, without `--dry-run`.

    >>> how = {"granularity": "entity", "mainline": 2, "message": None, "dry_run": True}
    >>> build_typed_command(("revert", "HEAD"), "g", how).with_options("--strategy", "ours")
    'omnigraph revert HEAD --store g --granularity entity --mainline 2 --strategy ours'
    """
    arguments: list[str] = []
    for option_name, value in options.items():
        is_default = value in (None, False) or (option_name, value) == ("granularity", "property")
        if not is_default and option_name != "dry_run":
            flag = f"--{option_name.replace('_', '-')}"
            arguments += [flag] if value is True else [flag, str(value)]
    strategy_arguments = tuple(argument for strategy in strategies for argument in ("--strategy", strategy))
    return TypedCommand(words, uri, tuple(arguments), strategy_arguments)


def conflict_options(command: Command) -> Command:
    """Add the options for resolving merge conflicts to a command."""
    options = (
        click.option("--dry-run", is_flag=True, help="Show the changes and conflicts without applying the changes"),
        click.option(
            "--strategy",
            "strategies",
            multiple=True,
            metavar="[NAME=]SIDE",
            help="Resolve conflicts in favor of ours (the target) or theirs (the incoming side); NAME=SIDE"
            " applies only to the conflict kind or type NAME and overrides a SIDE without NAME; may be repeated",
        ),
        click.option(
            "--granularity",
            type=click.Choice(["entity", "property"]),
            default="property",
            show_default=True,
            help="Unit of comparison; with 'entity', changes to different properties of the same entity also conflict",
        ),
        click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit"),
        click.option("--message", "-m", help="Commit message"),
        idempotency_key_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def parse_strategies(strategies: Sequence[str]) -> str | dict[str, str] | None:
    """Return the side for all conflicts, the sides by type or conflict kind (`*` for all others), or None.

    >>> parse_strategies(["ours"]), parse_strategies(["Person=theirs", "ours"])
    ('ours', {'Person': 'theirs', '*': 'ours'})
    """
    if not strategies:
        return None
    if len(strategies) == 1 and "=" not in strategies[0]:
        return strategies[0]
    named_strategies = (strategy if "=" in strategy else f"*={strategy}" for strategy in strategies)
    sides_by_name = dict(strategy.partition("=")[::2] for strategy in named_strategies)
    if len(sides_by_name) != len(strategies):
        raise click.UsageError(
            "--strategy: pass ours or theirs at most once, and at most one NAME=SIDE per name, such as Person=theirs"
        )
    return sides_by_name


def describe_counts(merge_result: "MergeResult") -> str:
    """Describe how many changes a merge makes."""
    stats = merge_result.stats
    labels = zip(("added", "changed", "removed"), ("inserts", "updates", "deletes"), strict=True)
    phrases = [f"{stats[stat_name]} {label}" for label, stat_name in labels if stat_name in stats]
    if stats["resolved"]:
        phrases.append(f"{show.count(stats['resolved'], 'conflict')} resolved")
    return ", ".join(phrases)


def print_lost_edges(merge_result: "MergeResult", sides: tuple[str, str]) -> None:
    """Warn that edges deleted along with a node stay deleted although the merge keeps the node; list the first few."""
    if not merge_result.lost_edges:
        return
    edge_count = show.count(len(merge_result.lost_edges), "edge")
    lines = [f"{edge_count} deleted along with a node will not be restored, although the merge keeps the node:"]
    lines += [
        f"  {lost_edge} on {sides[lost_edge.side == 'theirs']}" for lost_edge in merge_result.lost_edges[:_MAX_SHOWN]
    ]
    if len(merge_result.lost_edges) > _MAX_SHOWN:
        lines.append(f"  and {len(merge_result.lost_edges) - _MAX_SHOWN} more")
    show.warnings(["\n".join(lines)])


def lost_edge_documents(merge_result: "MergeResult", sides: tuple[str, str]) -> list[dict[str, str]]:
    """Return the edges that stay deleted although the merge keeps their node, as JSON-compatible data."""
    return [
        {
            "type_name": lost_edge.key.type_name,
            "entity_id": lost_edge.id,
            "from": lost_edge.src,
            "to": lost_edge.dst,
            "node": lost_edge.node,
            "deleted_on": sides[lost_edge.side == "theirs"],
        }
        for lost_edge in merge_result.lost_edges
    ]


def exit_with_conflicts(
    error: "MergeConflict", failure: str, sides: tuple[str, str], typed_command: TypedCommand
) -> None:
    """Print the conflicts and exit; if errors are printed as JSON, raise an error with the conflicts instead."""
    if settings().json_errors:
        raise error
    conflict_count = show.count(len(error.conflicts), "conflict")
    show.problem(f"{conflict_count}: {failure}", None)
    print_conflicts(error.conflicts, sides, typed_command, err=True)
    click.echo("nothing was written", err=True)
    click.get_current_context().exit(exits.error_exit_code(error))


def preview_conflicts(
    conflicts: Sequence["EntityConflict"], failure: str, sides: tuple[str, str], typed_command: TypedCommand
) -> None:
    """Print the conflicts that a dry run found."""
    show.result(f"{show.count(len(conflicts), 'conflict')}: {failure} as is")
    print_conflicts(conflicts, sides, typed_command)


def print_conflicts(
    conflicts: Sequence["EntityConflict"], sides: tuple[str, str], typed_command: TypedCommand, *, err: bool = False
) -> None:
    """Print the first few conflicts with the values on each side, and the commands to run next."""
    lines = [line for conflict in conflicts[:_MAX_SHOWN] for line in _conflict_lines(conflict, sides)]
    if len(conflicts) > _MAX_SHOWN:
        lines.append(f"  and {len(conflicts) - _MAX_SHOWN} more")
    our_name, their_name = sides
    lines.append("next commands:")
    suggestions = {
        f"keep the values from {our_name}": _remaining_strategies(conflicts, "ours", typed_command),
        f"take the values from {their_name}": _remaining_strategies(conflicts, "theirs", typed_command),
        "list all conflicts": ("--dry-run", "--json"),
    }
    if all(_has_disjoint_changes(conflict) for conflict in conflicts):  # only with --granularity entity
        lines.append(f"  {typed_command.by_property().with_options()}   # merge changes to different properties")
    lines += [
        f"  {typed_command.with_options(*extra_options)}   # {purpose}"
        for purpose, extra_options in suggestions.items()
    ]
    click.echo("\n".join(lines), err=err, color=settings().color)


def _remaining_strategies(
    conflicts: Sequence["EntityConflict"], side: str, typed_command: TypedCommand
) -> tuple[str, ...]:
    """Return `--strategy` options that resolve all remaining conflicts in favor of one side.

    Strategies that the user gave for a type or a conflict kind stay in effect.
    """
    if not typed_command.has_named_strategies:
        return ("--strategy", side)
    type_names = sorted({conflict.type_name for conflict in conflicts})
    return tuple(argument for type_name in type_names for argument in ("--strategy", f"{type_name}={side}"))


def _conflict_lines(conflict: "EntityConflict", sides: tuple[str, str]) -> Iterable[str]:
    entity_name = f" '{conflict.entity_id}'" if conflict.entity_id is not None else ""
    entity = f"{conflict.entity_kind} {conflict.type_name}{entity_name}"
    yield f"  {entity}: {click.style(conflict.kind, fg='red')}"
    has_images = (conflict.base, conflict.ours, conflict.theirs) != (None, None, None)
    if conflict.kind not in _ROW_CONFLICTS or not conflict.changed or not has_images:
        yield f"    {conflict.message}"
    if conflict.changed and has_images:
        yield from _property_table(conflict, sides)


def _property_table(conflict: "EntityConflict", sides: tuple[str, str]) -> Iterable[str]:
    """Return a table of the conflicting properties, each with its base value and the value on each side."""
    header = ("", "base", *sides)
    rows: list[tuple[str, ...]] = [header]
    for property_name in conflict.changed:
        images = (conflict.base, conflict.ours, conflict.theirs)
        rows.append((property_name, *(format_value(image, property_name) for image in images)))
    widths = [max(len(row[column_index]) for row in rows) for column_index in range(len(header))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"    {'  '.join(cells)}".rstrip()


def _has_disjoint_changes(conflict: "EntityConflict") -> bool:
    """Return whether the two sides changed different properties of an entity."""
    base_values, our_values, their_values = conflict.base, conflict.ours, conflict.theirs
    if conflict.kind != "divergent_update" or base_values is None or our_values is None or their_values is None:
        return False
    return all(
        base_values[property_name] in (our_values[property_name], their_values[property_name])
        for property_name in conflict.changed
    )


def format_value(row_values: Any, property_name: str) -> str:
    """Format a value from a row as short text on one line."""
    from omnigraph.api.results.formats import format_cell

    if row_values is None:
        return "(absent)"
    value = row_values.get(property_name)
    if isinstance(value, bytes):
        return show.count(len(value), "byte")
    has_json_form = value is None or isinstance(value, str | bool)
    text = format_cell(value) if has_json_form else str(value)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"
