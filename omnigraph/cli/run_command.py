"""Run one of the program's commands in this process, and report its errors.

This module translates errors into messages and exit codes; a traceback is shown only with `--debug`. Nothing that it
sets up outlives the command.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click

from . import exits
from .options import Invocation, Settings
from .signals import TerminatedError


def run_command(
    group: click.Group, arguments: Sequence[str] | None, invocation: Invocation, **context_options: Any
) -> int:
    """Run one of a group's commands with its arguments; return the exit code instead of raising an exception."""
    options = {"prog_name": "omnigraph", "standalone_mode": False, "obj": invocation, **context_options}
    return report_errors(group, invocation, lambda: group.main(args=arguments, **options))


def report_errors(group: click.Group, invocation: Invocation, call: Callable[[], Any]) -> int:
    """Call a function, report errors as for a command, and return the exit code."""
    original_streams = sys.stdout, sys.stderr
    # This context outlives the command, so the command's flags also apply to error output.
    with click.Context(group, obj=invocation):
        try:
            returned: Any = call()
            return returned if isinstance(returned, int) else exits.OK
        except click.ClickException as error:
            return _report_usage_error(error, invocation.settings)
        except (click.Abort, KeyboardInterrupt) as error:
            return report_interruption(error)
        except SystemExit:
            if (sys.stdout, sys.stderr) == original_streams:
                raise
            # Click wraps the streams, and exits if the reader has closed the output.
            sys.stdout, sys.stderr = original_streams
            _silence_stdout()
            return exits.BROKEN_PIPE
        except Exception as error:  # a last resort, because all expected errors are typed
            return _report_failure(error, invocation)


def report_interruption(error: BaseException) -> int:
    """Report Ctrl-C or SIGTERM and return the exit code."""
    was_terminated = isinstance(error, TerminatedError) or isinstance(error.__cause__, TerminatedError)
    notes = [*getattr(error, "__notes__", ()), *getattr(error.__cause__, "__notes__", ())]
    with suppress(OSError):  # standard error is closed
        cause = "terminated" if was_terminated else "interrupted"
        click.echo(f"{cause}; {notes[0] if notes else 'no partial changes were left behind'}", err=True)
    return exits.TERMINATED if was_terminated else exits.INTERRUPTED


def _report_usage_error(error: click.ClickException, settings: Settings) -> int:
    with suppress(OSError):  # the output is closed
        if settings.json_errors:
            from omnigraph.errors import UsageError

            from . import show

            show.document(UsageError(reason=error.format_message()).to_json())
        else:
            error.show()
    return error.exit_code


def _report_failure(error: Exception, invocation: Invocation) -> int:
    settings = invocation.settings
    if settings.debug:
        import traceback

        traceback.print_exception(error)
    typed_error = _to_typed_error(error)
    with suppress(OSError):  # the output is closed
        is_stream_error = isinstance(error, OSError) and typed_error is not error
        if settings.json_errors and not is_stream_error:
            from . import show

            show.document(typed_error.to_json())
        else:
            _print_error(typed_error, is_write=invocation.is_write)
    return exits.error_exit_code(typed_error)


def _to_typed_error(error: Exception) -> Any:
    from omnigraph.errors import InternalError, OmnigraphError, StorageError

    if isinstance(error, OmnigraphError):
        return error
    if isinstance(error, OSError):  # file errors are converted where files are used, so this error comes from a stream
        return StorageError(f"cannot write the result: {error.strerror}")
    return InternalError(f"unexpected {type(error).__name__}: {error}")


def _print_error(error: Any, *, is_write: bool) -> None:
    from omnigraph.errors import LanguageError

    from . import show

    if isinstance(error, LanguageError) and error.source is not None and error.diagnostics:
        show.findings(error.diagnostics, error.source, err=True)
    else:
        show.problem(getattr(error, "explained", error.message), error.advice)
    if is_write and error.effect == "none":
        click.echo("nothing was written", err=True)


def _silence_stdout() -> None:
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
