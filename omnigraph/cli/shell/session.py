"""A shell session: its state, and how it runs statements.

Every statement runs as one of the program's commands, with the current graph and branch as defaults. Errors are printed
as they are for commands, and they never end the shell. This module does not read input.
"""

import shlex
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field, replace
from typing import Any, TextIO

import click

from omnigraph.cli import exits, show
from omnigraph.cli.options import CurrentGraph, Invocation, Settings
from omnigraph.cli.run_command import report_errors, run_command
from omnigraph.cli.server_target import is_server_url
from omnigraph.values import clock_and_ids

from .statements import explained_query, is_mutation, is_query_text

_LAST_CODES = (exits.BROKEN_PIPE, exits.TERMINATED)  # after these exit codes, no further statement runs
_LEAVING_WORDS = ("exit", "quit")


@dataclass(slots=True)
class Session:
    r"""A running shell: its graph, its output settings, and whether it continues after an error.

    `form` is the format for query results, `output` is the file set with `\o`, and `script_depth` is the number of
    nested `\i` scripts.
    """

    program: click.Group
    current: CurrentGraph
    settings: Settings
    scope_flags: dict[str, Any] = field(default_factory=dict)
    keep_going: bool = False
    form: str | None = None
    is_timing: bool = False
    is_finished: bool = False
    output: TextIO | None = None
    script_depth: int = 0

    @property
    def prompt(self) -> str:
        """The prompt, such as `people:main> ` or `people:main@v1> `."""
        name = self.current.uri.rstrip("/").rpartition("/")[2] or self.current.uri
        pin = f"@{self.current.revision}" if self.current.revision is not None else ""
        return f"{name}:{self.current.branch}{pin}> "

    def move_to(self, **position: Any) -> None:
        """Change the branch or the revision."""
        self.current = replace(self.current, **position)

    def new_invocation(self) -> Invocation:
        """Return a fresh state for one command, with the shell's flags."""
        return Invocation(self.settings, dict(self.scope_flags), current_graph=self.current)

    def write_to(self, output: TextIO | None) -> None:
        """Redirect results to a file, or back to standard output."""
        if self.output is not None:
            self.output.close()
        self.output = output


def run_statements(session: Session, statements: Iterable[str]) -> int:
    """Run statements until one fails (or all with `keep_going`), and return the first nonzero exit code, or 0."""
    first_failure = exits.OK
    for statement in statements:
        code = run_statement(session, statement)
        first_failure = first_failure or code
        if session.is_finished or (code != exits.OK and not session.keep_going):
            break
    return first_failure


def run_statement(session: Session, statement: str) -> int:
    """Run one statement and return its exit code."""
    started_at = clock_and_ids.monotonic()
    with redirect_stdout(session.output) if session.output is not None else nullcontext():
        code = _dispatch_statement(session, statement)
    if session.output is not None:
        session.output.flush()
    if session.is_timing:
        click.echo(f"time: {(clock_and_ids.monotonic() - started_at) * 1000:.1f} ms", err=True)
    session.is_finished = session.is_finished or code in _LAST_CODES
    return code


def _dispatch_statement(session: Session, statement: str) -> int:
    if statement.startswith("\\"):
        from .backslash import run_backslash

        invocation = session.new_invocation()
        return report_errors(session.program, invocation, lambda: run_backslash(session, statement))
    if statement.strip() in _LEAVING_WORDS:
        session.is_finished = True
        return exits.OK
    arguments = _query_arguments(session, statement)
    if arguments is not None:
        return run_arguments(session, arguments)
    return _run_command_line(session, statement)


def _query_arguments(session: Session, statement: str) -> list[str] | None:
    """Return the command that runs a statement in the query language, or None if it is another kind of statement."""
    query = explained_query(statement)
    if query is not None:
        return ["explain", "-e", query]
    if not is_query_text(statement):
        return None
    if is_mutation(statement):
        return ["mutate", "-e", statement]
    return ["query", "-e", statement, *(("--format", session.form) if session.form is not None else ())]


def _run_command_line(session: Session, statement: str) -> int:
    invocation = session.new_invocation()
    words: list[str] = []

    def split_words() -> None:
        try:
            words[:] = shlex.split(statement)
        except ValueError as error:
            raise click.UsageError(f"{str(error)[:1].lower()}{str(error)[1:]} in: {statement}") from None
        if words[0] == "omnigraph":
            del words[0]
        if words and words[0] == "shell":
            raise click.UsageError("the shell is already running")

    return report_errors(session.program, invocation, split_words) or run_arguments(session, words)


def run_arguments(session: Session, arguments: list[str]) -> int:
    """Run one of the program's commands in this session."""
    words, command = _find_command(session.program, arguments)
    invocation = session.new_invocation()
    accepted_names = {parameter.name for parameter in command.params}
    invocation.scope_flags = {name: value for name, value in session.scope_flags.items() if name in accepted_names}
    defaults: dict[str, Any] = _branch_defaults(session, command)
    for word in reversed(words):
        defaults = {word: defaults}
    return run_command(session.program, arguments, invocation, default_map=defaults, prog_name="")


def _find_command(program: click.Group, arguments: list[str]) -> tuple[list[str], click.Command]:
    """Return the command that the arguments name, and the words that name it."""
    words: list[str] = []
    command: click.Command = program
    for word in arguments:
        subcommand = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if subcommand is None:
            break
        words.append(word)
        command = subcommand
    return words, command


def _branch_defaults(session: Session, command: click.Command) -> dict[str, Any]:
    """Return the current branch as the default for every option whose default is main."""
    return {
        str(parameter.name): session.current.branch
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.default == "main"
    }


@contextmanager
def open_session(session: Session) -> Iterator[Session]:
    """Share open graphs between a session's commands, and close its output file at the end."""
    with _share_graphs(session.current.uri):
        try:
            yield session
        finally:
            session.write_to(None)


def _share_graphs(uri: str) -> AbstractContextManager[None]:
    if is_server_url(uri):
        return nullcontext()
    from omnigraph.api.shared_handles import share_handles

    return share_handles()


def print_list(lines: Iterable[str]) -> None:
    """Print lines as one result."""
    text = "\n".join(lines)
    if text:
        show.result(text)
