"""The shell on a terminal: prompt, multi-line input, history and completion with readline.

Ctrl-C cancels the current input or the running statement, and Ctrl-D exits the shell. If Python was built without
readline, the shell works without history and completion.
"""

from contextlib import suppress
from typing import Any

import click

from omnigraph.cli import exits, show
from omnigraph.cli.signals import TerminatedError

from .history import History
from .input_completion import InputCompleter
from .session import Session, run_statement
from .statements import StatementBuffer, split_statements

_DELIMITERS = " \t\n(){}[],:'\"=<>;"


def run_terminal(session: Session) -> int:
    r"""Read statements from the terminal and run them until \q or Ctrl-D; return the exit code."""
    readline = _load_readline()
    history = History(readline)
    buffer = StatementBuffer()
    _install_completer(readline, session, buffer)
    show.note("enter \\h for help, \\q to exit")
    code = exits.OK
    try:
        while not session.is_finished:
            code = _run_next_statements(session, buffer, history)
    finally:
        history.save()
    return code if code == exits.TERMINATED else exits.OK


def _run_next_statements(session: Session, buffer: StatementBuffer, history: History) -> int:
    """Read one statement, or several that were pasted together, and run them."""
    try:
        text = _read_statement(session, buffer)
    except KeyboardInterrupt as error:
        if isinstance(error, TerminatedError):
            raise
        click.echo()
        buffer.take()
        return exits.OK
    if text is None:
        session.is_finished = True
        click.echo()
        return exits.OK
    history.add(text)
    code = exits.OK
    for statement in split_statements(iter(text.split("\n"))):
        code = run_statement(session, statement)
        if session.is_finished or code != exits.OK:
            break
    return code


def _read_statement(session: Session, buffer: StatementBuffer) -> str | None:
    """Return the next statement, or None at the end of input."""
    prompt = session.prompt
    lines = []
    while True:
        try:
            entered = input(prompt)
        except EOFError:
            return None
        lines.append(entered)
        for line in entered.split("\n"):  # a paste may contain several lines
            buffer.add_line(line)
        if buffer.is_ready:
            buffer.take()
            return "\n".join(lines)
        if not buffer.text:
            lines.clear()
        prompt = "...> ".rjust(len(session.prompt)) if buffer.text else session.prompt


def _load_readline() -> Any:
    try:
        import readline
    except ImportError:  # not available on every platform
        return None
    return readline


def _install_completer(readline: Any, session: Session, buffer: StatementBuffer) -> None:
    if readline is None:
        return
    completer = InputCompleter(session)

    def complete(word: str, index: int) -> str | None:
        with suppress(Exception):  # completion must never interrupt the input
            before = readline.get_line_buffer()[: readline.get_begidx()]
            return completer.match(f"{buffer.text}\n{before}" if buffer.text else before, word, index)
        return None

    readline.set_completer(complete)
    readline.set_completer_delims(_DELIMITERS)
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
