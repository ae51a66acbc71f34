"""Conflicts for people: the first few with the values of each side, and the commands to run next.

Owns the options that resolve conflicts, shared by `branch merge`, `revert` and `cherry-pick`.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from omnigraph.record import record

from . import exits, show
from .options import settings

if TYPE_CHECKING:
    from omnigraph.errors import EntityConflict, MergeConflict
    from omnigraph.merges import MergeResult

Command = TypeVar("Command", bound=Callable[..., Any])
_SHOWN = 3
_LONGEST = 40
_OF_ROWS = {"divergent_insert", "divergent_update", "delete_vs_update"}  # the table explains them


@record
class Next:
    """The command as the user typed it; `strategies` resolve conflicts, `options` are the rest."""

    words: tuple[str, ...]
    uri: str
    how: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()

    @property
    def by_name(self) -> bool:
        """Whether strategies were given per type or conflict kind instead of one for all."""
        return any("=" in one for one in self.sides)

    def with_(self, *more: str) -> str:
        """Return the command with more options; a strategy for all replaces an earlier one."""
        sides = () if "--strategy" in more and not self.by_name else self.sides
        words = ("omnigraph", *self.words, "--uri", self.uri, *self.how, *sides, *more)
        return " ".join(shlex.quote(one) for one in words)


def typed(
    words: tuple[str, ...], uri: str, options: Mapping[str, Any], strategies: Sequence[str] = ()
) -> Next:
    """Return the command as it was typed, without `--dry-run`.

    >>> how = {"granularity": "property", "mainline": 2, "message": None, "dry_run": True}
    >>> typed(("revert", "HEAD"), "g", how).with_("--strategy", "ours")
    'omnigraph revert HEAD --uri g --granularity property --mainline 2 --strategy ours'
    """
    how: list[str] = []
    for name, value in options.items():
        usual = value in (None, False) or (name, value) == ("granularity", "entity")
        if not usual and name != "dry_run":
            flag = f"--{name.replace('_', '-')}"
            how += [flag] if value is True else [flag, str(value)]
    sides = tuple(word for one in strategies for word in ("--strategy", one))
    return Next(words, uri, tuple(how), sides)


def deciding_options(command: Command) -> Command:
    """Add the options of a merge that resolve conflicts to a command."""
    options = (
        click.option("--dry-run", is_flag=True, help="Only show the changes and conflicts"),
        click.option(
            "--strategy",
            "strategies",
            multiple=True,
            metavar="[NAME=]SIDE",
            help="Resolve conflicts with ours (the target) or theirs (the incoming side); NAME="
            " limits it to a conflict kind or a type; may be repeated",
        ),
        click.option(
            "--granularity",
            type=click.Choice(["entity", "property"]),
            default="entity",
            show_default=True,
            help="With property, changes of different properties of one entity are merged",
        ),
        click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit"),
        click.option("--message", "-m", help="Commit message"),
    )
    for option in reversed(options):
        command = option(command)
    return command


def strategy_of(given: Sequence[str]) -> str | dict[str, str] | None:
    """Return one side for all conflicts, or sides by name; mixing both is an error.

    >>> strategy_of(["ours"]), strategy_of(["Person=theirs", "orphan_edge=ours"])
    ('ours', {'Person': 'theirs', 'orphan_edge': 'ours'})
    """
    if not given:
        return None
    named = dict(one.partition("=")[::2] for one in given if "=" in one)
    if not named and len(given) == 1:
        return given[0]
    if len(named) != len(given):
        raise click.UsageError("--strategy takes either one side, or sides by name: Person=theirs")
    return named


def counts(done: "MergeResult") -> str:
    """Describe how much a merge changes."""
    stats = done.stats
    words = zip(("added", "changed", "removed"), ("inserts", "updates", "deletes"), strict=True)
    told = [f"{stats[name]} {word}" for word, name in words]
    if stats["resolved"]:
        told.append(f"{show.count(stats['resolved'], 'conflict')} resolved")
    return ", ".join(told)


def tell_lost(done: "MergeResult", sides: tuple[str, str]) -> None:
    """Warn about edges that were deleted with a node which is kept; only the first few."""
    if not done.lost_edges:
        return
    count = show.count(len(done.lost_edges), "edge")
    told = [f"{count} deleted with nodes that are kept, and not restored:"]
    told += [f"  {one} on {sides[one.side == 'theirs']}" for one in done.lost_edges[:_SHOWN]]
    if len(done.lost_edges) > _SHOWN:
        told.append(f"  and {len(done.lost_edges) - _SHOWN} more")
    show.warnings(["\n".join(told)])


def lost_documents(done: "MergeResult", sides: tuple[str, str]) -> list[dict[str, str]]:
    """Return the same edges as JSON-compatible data."""
    return [
        {
            "type_name": one.key.partition(":")[2],
            "entity_id": one.id,
            "from": one.src,
            "to": one.dst,
            "node": one.node,
            "deleted_on": sides[one.side == "theirs"],
        }
        for one in done.lost_edges
    ]


def told_conflict(error: "MergeConflict", what: str, sides: tuple[str, str], again: Next) -> None:
    """Print the conflicts and exit; with JSON errors, raise them as a document."""
    if settings().json_errors:
        raise error
    count = show.count(len(error.conflicts), "conflict")
    show.problem(f"{count}: {what}", None)
    tell_conflicts(error.conflicts, sides, again, err=True)
    click.echo("nothing was written", err=True)
    click.get_current_context().exit(exits.code_of(error))


def preview_conflicts(
    found: Sequence["EntityConflict"], what: str, sides: tuple[str, str], again: Next
) -> None:
    """Print the conflicts of a dry run."""
    show.result(f"{show.count(len(found), 'conflict')}: {what} as it is")
    tell_conflicts(found, sides, again)


def tell_conflicts(
    found: Sequence["EntityConflict"], sides: tuple[str, str], again: Next, *, err: bool = False
) -> None:
    """Print the first conflicts with the values of each side, and the commands to run next."""
    lines = [line for one in found[:_SHOWN] for line in _lines(one, sides)]
    if len(found) > _SHOWN:
        lines.append(f"  and {len(found) - _SHOWN} more")
    ours, theirs = sides
    lines.append("next commands:")
    ways = {
        f"keep the values of {ours}": _all_of(found, "ours", again),
        f"take the values of {theirs}": _all_of(found, "theirs", again),
        "list all conflicts": ("--dry-run", "--json"),
    }
    if "--granularity" not in again.how and all(_apart(one) for one in found):
        together = {"merge changes of different properties": ("--granularity", "property")}
        ways = together | ways
    lines += [f"  {again.with_(*more)}   # {why}" for why, more in ways.items()]
    click.echo("\n".join(lines), err=err, color=settings().color)


def _all_of(found: Sequence["EntityConflict"], side: str, again: Next) -> tuple[str, ...]:
    """Return one side for all unresolved conflicts; strategies given by name are kept."""
    if not again.by_name:
        return ("--strategy", side)
    names = sorted({one.type_name for one in found})
    return tuple(word for name in names for word in ("--strategy", f"{name}={side}"))


def _lines(one: "EntityConflict", sides: tuple[str, str]) -> Iterable[str]:
    name = f" '{one.entity_id}'" if one.entity_id is not None else ""
    yield f"  {one.entity_kind} {one.type_name}{name}: {click.style(one.kind, fg='red')}"
    images = (one.base, one.ours, one.theirs) != (None, None, None)
    if one.kind not in _OF_ROWS or not one.changed or not images:
        yield f"    {one.message}"
    if one.changed and images:
        yield from _table(one, sides)


def _table(one: "EntityConflict", sides: tuple[str, str]) -> Iterable[str]:
    """Return a table of each conflicting property: its base value, and that of each side."""
    heads = ("", "base", *sides)
    rows: list[tuple[str, ...]] = [heads]
    for name in one.changed:
        values = (one.base, one.ours, one.theirs)
        rows.append((name, *(short_value(image, name) for image in values)))
    widths = [max(len(row[at]) for row in rows) for at in range(len(heads))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"    {'  '.join(cells)}".rstrip()


def _apart(one: "EntityConflict") -> bool:
    """Return whether the sides changed different properties of an entity."""
    base, ours, theirs = one.base, one.ours, one.theirs
    if one.kind != "divergent_update" or base is None or ours is None or theirs is None:
        return False
    return all(base[n] in (ours[n], theirs[n]) for n in one.changed)


def short_value(image: Any, name: str) -> str:
    """Return a value of a row as short text on one line."""
    from omnigraph.formats import one_line

    if image is None:
        return "(absent)"
    value = image.get(name)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    text = "null" if value is None else one_line(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
