"""Positional arguments for commands that operate on a graph: the graph first, then the command's own arguments.

This module decides whether the first argument is the graph. It never opens a graph; at most, it checks whether a
directory exists.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

GRAPH_METAVAR = "GRAPH"
_PATH_PREFIXES = ("/", "./", "../", "~/")


def usage_metavar(slots: Mapping[str, str]) -> str:
    """Return the positional arguments as shown in the usage line.

    >>> usage_metavar({"name": "NAME", "point": "[COMMIT]"})
    '[GRAPH] NAME [COMMIT]'
    """
    return " ".join((f"[{GRAPH_METAVAR}]", *slots.values()))


def split_arguments(
    arguments: Sequence[str], slots: Mapping[str, str], *, graph_is_given: bool
) -> tuple[str | None, dict[str, str | None]]:
    """Separate the graph, if it is given, from a command's other positional arguments.

    `slots` maps parameter names to metavars, with brackets around optional ones. The number of arguments usually
    determines whether the first one is the graph. If it does not, the first argument is taken as the graph only if it
    looks like one and no option names a graph.

    >>> split_arguments(["g", "review"], {"name": "NAME"}, graph_is_given=False)
    ('g', {'name': 'review'})
    >>> split_arguments(["review"], {"name": "NAME"}, graph_is_given=False)
    (None, {'name': 'review'})
    """
    required = [metavar for metavar in slots.values() if not metavar.startswith("[")]
    if len(arguments) < len(required):
        raise click.UsageError(f"Missing argument '{required[len(arguments)]}'.")
    if len(arguments) > len(slots) + 1:
        extra_arguments = arguments[len(slots) + 1 :]
        noun = "argument" if len(extra_arguments) == 1 else "arguments"
        raise click.UsageError(f"Got unexpected extra {noun} ({' '.join(extra_arguments)})")
    has_graph = len(arguments) > len(slots) or (
        len(arguments) > len(required) and looks_like_graph(arguments[0], by_name_only=graph_is_given)
    )
    graph, values = (arguments[0], arguments[1:]) if has_graph else (None, arguments)
    missing_values = [None] * (len(slots) - len(values))
    return graph, dict(zip(slots, (*values, *missing_values), strict=True))


def looks_like_graph(argument: str, *, by_name_only: bool = False) -> bool:
    """Return whether an argument is a URI, a path that begins with `/`, `./`, `../` or `~/`, or a graph directory.

    >>> looks_like_graph("s3://lake/people"), looks_like_graph("./people"), looks_like_graph("review/a")
    (True, True, False)
    """
    if "://" in argument or argument in (".", "..", "~") or argument.startswith(_PATH_PREFIXES):
        return True
    if by_name_only:
        return False
    from omnigraph.storage.layout import MANIFEST

    return Path(argument, MANIFEST).is_dir()
