"""Complete words on a command line: commands, options, and the values that an option or argument accepts.

This module decides what is valid at each position; the caller supplies the names. Both the shell completion scripts and
`omnigraph shell` use it. It never opens a graph.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, _resolve_context, _resolve_incomplete

from .completion_names import GraphNames
from .options import Invocation
from .positionals import looks_like_graph

FindNames = Callable[[click.Context], GraphNames]
_OPTION_VALUES = {
    "--branch": "branches",
    "--into": "branches",
    "--from": "revisions",
    "--commit": "revisions",
    "--snapshot": "revisions",
    "--type": "types",
    "--profile": "profiles",
    "--store": "graphs",
    "--uri": "graphs",
}
_FILE_METAVARS = ("FILE", "PATH")
# What a positional argument accepts, keyed by command and argument, or by argument alone.
_ARGUMENT_VALUES = {
    "SOURCE": "branches",
    "COMMIT": "revisions",
    "TO": "revisions",
    "A": "revisions",
    "B": "revisions",
    "TYPE": "types",
    "PROPERTY": "properties",
    "FILE": "files",
    "branch delete NAME": "branches",
    "branch rename NAME": "branches",
    "branch reset NAME": "branches",
    "tag delete NAME": "tags",
    "commit show ID": "revisions",
    "commit changes ID": "revisions",
    "query NAME": "queries",
    "mutate NAME": "queries",
    "explain NAME": "queries",
    "profile show NAME": "profiles",
    "alias NAME": "aliases",
}


def complete_words(
    program: click.Group, words: list[str], incomplete: str, find_names: FindNames, *, offers_graphs: bool = True
) -> list[CompletionItem[Any]]:
    """Return the completions for the incomplete last word on a command line."""
    context = _resolve_context(program, {"obj": Invocation()}, "omnigraph", list(words))
    target, incomplete = _resolve_incomplete(context, list(words), incomplete)
    if isinstance(target, click.Option):
        kind = next((_OPTION_VALUES[flag] for flag in target.opts if flag in _OPTION_VALUES), None)
        kinds = [kind] if kind is not None else ["files"] if target.metavar in _FILE_METAVARS else []
    elif isinstance(target, click.Argument):
        kinds = _argument_kinds(context, target, offers_graphs=offers_graphs)
    else:
        kinds = []
    if not kinds:
        return target.shell_complete(context, incomplete)
    if isinstance(target, click.Option):  # click parses no arguments if the last option has no value
        context = _resolve_context(program, {"obj": Invocation()}, "omnigraph", list(words[:-1]))
    items = [item for kind in kinds for item in _complete_kind(kind, context, incomplete, find_names)]
    return [item for item in items if item.type == "plain"] or items


def find_graph_argument(context: click.Context) -> str | None:
    """Return the graph that has been specified so far on the command line, or None."""
    arguments = context.params.get("arguments") or ()
    if arguments and looks_like_graph(arguments[0]):
        return str(arguments[0])
    return context.params.get("store") or context.params.get("uri")


def _argument_kinds(context: click.Context, argument: click.Argument, *, offers_graphs: bool) -> list[str]:
    slots = (argument.metavar or argument.name or "").upper().replace("[", "").replace("]", "").split()
    takes_graph = slots[:1] == ["GRAPH"]
    values = context.params.get(argument.name or "") or ()
    position = len(values) if isinstance(values, tuple) else 0
    if takes_graph:
        del slots[0]
        position -= bool(values and looks_like_graph(values[0]))
    command_words = context.command_path.split()[1:]
    slot = slots[position] if position < len(slots) else ""
    kind = _ARGUMENT_VALUES.get(" ".join([*command_words, slot])) or _ARGUMENT_VALUES.get(slot)
    kinds = [kind] if kind is not None else []
    return [*kinds, "graphs"] if takes_graph and not values and offers_graphs else kinds


def _complete_kind(
    kind: str, context: click.Context, incomplete: str, find_names: FindNames
) -> Iterable[CompletionItem[Any]]:
    if kind == "files":
        return [CompletionItem(incomplete, type="file")]
    if kind == "graphs":
        return _complete_graphs(incomplete)
    values = _list_values(kind, context, find_names)
    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


def _list_values(kind: str, context: click.Context, find_names: FindNames) -> Iterable[str]:
    if kind == "queries":
        return _query_names(context.params.get("query_path"))
    if kind in ("profiles", "aliases"):
        return _configured_names(kind)
    names = find_names(context)
    if kind == "properties":
        return _property_names(context, names)
    return getattr(names, kind)  # type: ignore[no-any-return]


def _property_names(context: click.Context, names: GraphNames) -> Iterable[str]:
    properties = names.properties or {}
    arguments = context.params.get("arguments") or ()
    return next((properties[argument] for argument in arguments if argument in properties), ())


def _query_names(query_path: str | None) -> list[str]:
    from omnigraph.lang.coarse_scan import lexemes

    if not query_path:
        return []
    text = Path(query_path).read_text(encoding="utf-8")
    words = [text[start:end] for kind, start, end in lexemes(text, 0, len(text)) if kind in ("word", "open")]
    return [
        name
        for keyword, name, bracket in zip(words, words[1:], words[2:], strict=False)
        if keyword == "query" and bracket == "("
    ]


def _configured_names(section: str) -> list[str]:
    from .operator_config import config_path, parse_config

    path = config_path()
    return list(getattr(parse_config(path, path.read_bytes()), section))


def _complete_graphs(incomplete: str) -> list[CompletionItem[Any]]:
    """Return the graphs in a directory; if there are none, let the shell complete directories."""
    from omnigraph.storage.layout import MANIFEST

    parent, separator, prefix = incomplete.rpartition("/")
    graphs: list[str] = []
    with suppress(OSError):
        directory = Path(parent + separator).expanduser() if separator else Path()
        names = sorted(entry.name for entry in directory.iterdir() if entry.name.startswith(prefix))
        graphs = [f"{parent}{separator}{name}" for name in names if (directory / name / MANIFEST).is_dir()]
    return [CompletionItem(graph) for graph in graphs] or [CompletionItem(incomplete, type="dir")]
