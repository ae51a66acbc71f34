"""The program `omnigraph`: its commands, its error messages and its exit codes.

This module translates errors to messages and exit codes. A traceback is shown only with `--debug`.
"""

import gc
import io
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

import omnigraph

from . import exits
from .group import LazyCommand, LazyGroup
from .options import Invocation, Settings, scope_options, shared_options
from .signals import TerminatedError, end_at_once_on_signals, raise_on_sigterm
from .verbosity import stop_log

_COMMANDS = {
    "init": LazyCommand("omnigraph.cli.init", "init", "Create a graph from a schema"),
    "query": LazyCommand("omnigraph.cli.query", "query", "Run a read query and print its rows"),
    "mutate": LazyCommand("omnigraph.cli.mutate", "mutate", "Run a mutation, as one commit"),
    "load": LazyCommand("omnigraph.cli.load", "load", "Load records, as one commit"),
    "export": LazyCommand("omnigraph.cli.export", "export", "Export a graph as NDJSON"),
    "blob": LazyCommand("omnigraph.cli.blob", "blob", "Read, describe and replace blobs"),
    "explain": LazyCommand("omnigraph.cli.explain", "explain", "Show the plan of a query"),
    "branch": LazyCommand("omnigraph.cli.branch", "branch", "Create, list, merge, rename, reset and delete branches"),
    "diff": LazyCommand("omnigraph.cli.diff", "diff", "Show changes between two revisions"),
    "log": LazyCommand("omnigraph.cli.log", "log", "Draw the history of a graph"),
    "history": LazyCommand("omnigraph.cli.entity", "history", "Show every version of one entity"),
    "blame": LazyCommand("omnigraph.cli.entity", "blame", "Show which commit last changed each property of an entity"),
    "tag": LazyCommand("omnigraph.cli.tag", "tag", "Create, list and delete tags"),
    "revert": LazyCommand("omnigraph.cli.replay", "revert", "Undo a commit or a range with a new commit"),
    "cherry-pick": LazyCommand("omnigraph.cli.replay", "cherry_pick", "Apply the changes of one commit to a branch"),
    "commit": LazyCommand("omnigraph.cli.commit", "commit", "List and show commits"),
    "changes": LazyCommand("omnigraph.cli.changes", "changes", "Follow the commits of a branch"),
    "snapshot": LazyCommand("omnigraph.cli.snapshot", "snapshot", "Show the tables of a branch and their versions"),
    "copy": LazyCommand("omnigraph.cli.copy", "copy", "Copy a graph with all branches and history"),
    "cleanup": LazyCommand("omnigraph.cli.cleanup", "cleanup", "Remove unneeded history"),
    "optimize": LazyCommand("omnigraph.cli.optimize", "optimize", "Compact tables and update indexes"),
    "ensure-indices": LazyCommand(
        "omnigraph.cli.optimize", "ensure_indices", "Build the indexes that the schema declares"
    ),
    "check": LazyCommand("omnigraph.cli.check", "check", "Verify graph integrity"),
    "status": LazyCommand("omnigraph.cli.status", "status", "Show the size and health of a graph"),
    "repair": LazyCommand("omnigraph.cli.repair", "repair", "Report or adopt changes made by external writers"),
    "upgrade": LazyCommand("omnigraph.cli.upgrade", "upgrade", "Upgrade a graph to the current storage format"),
    "doctor": LazyCommand("omnigraph.cli.doctor", "doctor", "Diagnose this machine and a store"),
    "recovery": LazyCommand("omnigraph.cli.recovery", "recovery", "Inspect interrupted operations"),
    "lint": LazyCommand("omnigraph.cli.lint", "lint", "Check queries and their schema"),
    "schema": LazyCommand("omnigraph.cli.schema", "schema", "Check, compare, show and apply schemas"),
    "fmt": LazyCommand("omnigraph.cli.fmt", "fmt", "Format schema and query files"),
    "describe": LazyCommand("omnigraph.cli.describe", "describe", "Show the parameters, results and types of queries"),
    "completion": LazyCommand("omnigraph.cli.completion", "completion", "Print a shell completion script"),
    "version": LazyCommand("omnigraph.cli.version", "version", "Print version information"),
}
# Start-up creates many objects but no garbage, so garbage collection would waste a tenth of the start-up time.
_GC_THRESHOLD = 100_000
_EPILOG = """
A graph is a path or s3://bucket/prefix; S3 access is configured with the AWS_* variables.
lint, fmt, describe, completion, version, schema check and schema diff work without a graph.
Exit codes: 0 success, 1 failure, 2 usage error, 4 --if-commit did not match, 5 --check found
differences or warnings, 130 interrupted, 143 terminated.
"""


@click.group(
    cls=LazyGroup,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EPILOG,
)
@click.version_option(
    omnigraph.__version__, "-V", "--version", message="omnigraph %(version)s", help="Show the version and exit"
)
@scope_options
@shared_options
def cli() -> None:
    """A versioned property-graph database on open file formats, with git-like branches and merges."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit."""
    gc.set_threshold(_GC_THRESHOLD)
    raise_on_sigterm()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names may contain any bytes
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    sys.exit(_run_to_exit(arguments))


def _run_to_exit(arguments: Sequence[str] | None) -> int:
    """Run the program and return its exit code, even if a signal arrives after the command has finished."""
    try:
        code = run(arguments)
        end_at_once_on_signals()
    except KeyboardInterrupt as error:
        end_at_once_on_signals()
        code = _report_interruption(error)
    return code


def _show_warning(message: Warning | str, *_: Any) -> None:
    """Print a warning on one line, without its source location."""
    from . import show

    show.warnings([message])


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return the exit code instead of raising an exception."""
    invocation = Invocation()
    original_streams = sys.stdout, sys.stderr
    # This context outlives the command, so the command's flags also apply to error output.
    with click.Context(cli, obj=invocation):
        try:
            returned: Any = cli.main(args=arguments, prog_name="omnigraph", standalone_mode=False, obj=invocation)
            return returned if isinstance(returned, int) else exits.OK
        except click.ClickException as error:
            return _report_usage_error(error, invocation.settings)
        except (click.Abort, KeyboardInterrupt) as error:
            return _report_interruption(error)
        except SystemExit:
            if (sys.stdout, sys.stderr) == original_streams:
                raise  # shell completion exits like this
            # Click wraps the streams, and exits if the reader has closed the output.
            sys.stdout, sys.stderr = original_streams
            _silence_stdout()
            return exits.BROKEN_PIPE
        except Exception as error:  # a fallback: all expected errors are typed
            return _report_failure(error, invocation)
        finally:
            stop_log()


def _report_interruption(error: BaseException) -> int:
    was_terminated = isinstance(error, TerminatedError) or isinstance(error.__cause__, TerminatedError)
    with suppress(OSError):  # standard error is closed
        cause = "terminated" if was_terminated else "interrupted"
        click.echo(f"{cause}; no partial changes were left behind", err=True)
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
        if settings.json_errors and not isinstance(error, OSError):
            from . import show

            show.document(typed_error.to_json())
        else:
            _print_error(typed_error, is_write=invocation.is_write)
    return exits.error_exit_code(typed_error)


def _to_typed_error(error: Exception) -> Any:
    from omnigraph.errors import InternalError, OmnigraphError, StorageError

    if isinstance(error, OmnigraphError):
        return error
    if isinstance(error, OSError):  # errors from files have already been converted, so this error is from a stream
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


if __name__ == "__main__":
    main()
