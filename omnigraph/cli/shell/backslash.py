r"""The shell's backslash commands: `\q`, `\h`, `\branch`, `\at`, `\d`, `\timing`, `\o`, `\format` and `\i`.

They change the session's state or describe the graph, but never change data.
"""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli import exits, files, show
from omnigraph.cli.address import open_snapshot
from omnigraph.cli.opening import open_graph
from omnigraph.errors import InputError
from omnigraph.records.frozen import record

from .describe_types import describe_schema, describe_type
from .session import Session, print_list, run_arguments, run_statements
from .statements import split_statements

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph

FORMATS = ("table", "csv", "json", "kv")
_MAX_SCRIPT_DEPTH = 16
_HELP = r"""Enter a query, such as match { $p: Person } return { $p.name }, a mutation, such as
insert Person { name: "ada" }, or a command without its graph, such as branch list.
A statement ends when its braces are balanced. A ; ends it immediately; a \ at the end of a line continues it.
"""


@record
class BackslashCommand:
    """A backslash command: its arguments as shown in the help, its help text, and the function to run."""

    usage: str
    help: str
    run: Callable[[Session, list[str]], int | None]
    max_arguments: int = 1


def run_backslash(session: Session, statement: str) -> int:
    """Run a backslash command and return its exit code; raise `click.UsageError` if it is unknown or malformed."""
    lexer = shlex.shlex(statement[1:], posix=True)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
    try:
        name, *arguments = list(lexer) or [""]
    except ValueError:
        raise click.UsageError(f"unclosed quote in: {statement}") from None
    command = COMMANDS.get(_ALIASES.get(name, name))
    if command is None:
        raise click.UsageError(f"unknown command \\{name}: enter \\h for help")
    if len(arguments) > command.max_arguments:
        raise click.UsageError(f"too many arguments: expected \\{command.usage}")
    return command.run(session, arguments) or exits.OK


def open_current(session: Session) -> "Graph":
    """Open the graph at the session's current position: the head of its branch, or its revision."""
    current = session.current
    return open_snapshot(current.uri, None if current.commit_id else current.branch, current.commit_id)


def _quit(session: Session, _: list[str]) -> None:
    session.is_finished = True


def _show_help(session: Session, words: list[str]) -> int | None:
    if words and words[0].startswith("\\") and words[0][1:] in COMMANDS:
        command = COMMANDS[words[0][1:]]
        show.result(f"\\{command.usage}: {command.help}")
        return None
    if words:
        return run_arguments(session, [*words, "--help"])
    width = max(len(command.usage) for command in COMMANDS.values())
    show.result(_HELP)
    print_list(f"  \\{command.usage:<{width}}  {command.help}" for command in COMMANDS.values())
    names = session.program.list_commands(click.Context(session.program))
    show.result(f"\nCommands: {', '.join(names)}")
    return None


def find_branch(uri: str, name: str) -> str:
    """Return the name of a branch; raise `BranchNotFound` if it does not exist."""
    graph = open_graph(uri, branch=name, read_only=True)
    return graph.branch_name if graph.head else name


def _switch_branch(session: Session, arguments: list[str]) -> None:
    if arguments:
        session.move_to(branch=find_branch(session.current.uri, arguments[0]), revision=None, commit_id=None)
        return
    names = open_current(session).branches.names()
    print_list(f"{'*' if name == session.current.branch else ' '} {name}" for name in names)


def _pin_revision(session: Session, arguments: list[str]) -> None:
    if not arguments:
        session.move_to(revision=None, commit_id=None)
        return
    graph = open_graph(session.current.uri, branch=session.current.branch, read_only=True)
    session.move_to(revision=arguments[0], commit_id=graph.at(arguments[0]).head.id)


def _describe(session: Session, arguments: list[str]) -> None:
    graph = open_current(session)
    print_list(describe_type(graph, arguments[0]) if arguments else describe_schema(graph))


def _toggle_timing(session: Session, arguments: list[str]) -> None:
    if arguments and arguments[0] not in ("on", "off"):
        raise click.UsageError(f"\\timing {arguments[0]}: expected on or off")
    session.is_timing = arguments[0] == "on" if arguments else not session.is_timing
    show.note(f"timing is {'on' if session.is_timing else 'off'}")


def _redirect_output(session: Session, arguments: list[str]) -> None:
    try:
        output = Path(arguments[0]).expanduser().open("w", encoding="utf-8") if arguments else None
    except OSError as error:
        raise InputError(f"cannot write {arguments[0]}: {error.strerror}", reason="cannot write") from error
    session.write_to(output)


def _choose_format(session: Session, arguments: list[str]) -> None:
    if not arguments:
        show.result(session.form or "table")
    elif arguments[0] in FORMATS:
        session.form = arguments[0]
    else:
        raise click.UsageError(f"\\format {arguments[0]}: expected one of {', '.join(FORMATS)}")


def _run_script(session: Session, arguments: list[str]) -> int:
    if not arguments:
        raise click.UsageError("\\i requires a file")
    source = files.read_source(str(Path(arguments[0]).expanduser()))
    with _nested_script(session, arguments[0]):
        return run_statements(session, split_statements(iter(source.text.splitlines())))


@contextmanager
def _nested_script(session: Session, path: str) -> Iterator[None]:
    if session.script_depth >= _MAX_SCRIPT_DEPTH:
        raise InputError(f"\\i {path}: scripts are nested more than {_MAX_SCRIPT_DEPTH} levels deep", reason="too deep")
    session.script_depth += 1
    try:
        yield
    finally:
        session.script_depth -= 1


COMMANDS = {
    "q": BackslashCommand("q", "Exit the shell (or press Ctrl-D)", _quit, 0),
    "h": BackslashCommand("h [COMMAND]", "Show this help, or help for a command", _show_help, 3),
    "branch": BackslashCommand("branch [NAME]", "Switch to a branch, or list branches", _switch_branch),
    "at": BackslashCommand("at [REVISION]", "Read a past revision; without one, return to the head", _pin_revision),
    "d": BackslashCommand("d [TYPE]", "Describe all types, or one type", _describe),
    "format": BackslashCommand(f"format [{'|'.join(FORMATS)}]", "Set the format for query results", _choose_format),
    "timing": BackslashCommand("timing [on|off]", "Show the duration of each statement", _toggle_timing),
    "o": BackslashCommand("o [FILE]", "Write results to a file; without FILE, to standard output", _redirect_output),
    "i": BackslashCommand("i FILE", "Run the statements in a file", _run_script),
}
_ALIASES = {"?": "h", "help": "h", "quit": "q"}
