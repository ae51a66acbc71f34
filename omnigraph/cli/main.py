"""The program `omnigraph`: its commands, and how each of them ends.

Owns the translation of errors to messages and exit codes. A traceback is shown only with
`--debug`.
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
from .group import Lazy, LazyGroup
from .options import Chosen, Settings, scope_options, shared_options
from .signals import TerminatedError, end_at_once_on_signals, raise_on_sigterm
from .verbosity import stop_log

_COMMANDS = {
    "init": Lazy("omnigraph.cli.init", "init", "Create a graph from a schema"),
    "query": Lazy("omnigraph.cli.query", "query", "Run a read query and print its rows"),
    "mutate": Lazy("omnigraph.cli.mutate", "mutate", "Run a mutation, as one commit"),
    "load": Lazy("omnigraph.cli.load", "load", "Load records, as one commit"),
    "export": Lazy("omnigraph.cli.export", "export", "Export a graph as NDJSON"),
    "explain": Lazy("omnigraph.cli.explain", "explain", "Show the plan of a query"),
    "branch": Lazy(
        "omnigraph.cli.branch", "branch", "Create, list, merge, rename and delete branches"
    ),
    "diff": Lazy("omnigraph.cli.diff", "diff", "Show changes between two revisions"),
    "log": Lazy("omnigraph.cli.log", "log", "Draw the history of a graph"),
    "history": Lazy("omnigraph.cli.entity", "history", "Show every version of one entity"),
    "blame": Lazy(
        "omnigraph.cli.entity", "blame", "Show who last changed each property of an entity"
    ),
    "tag": Lazy("omnigraph.cli.tag", "tag", "Create, list and delete tags"),
    "revert": Lazy("omnigraph.cli.again", "revert", "Undo a commit with a new commit"),
    "cherry-pick": Lazy(
        "omnigraph.cli.again", "cherry_pick", "Apply the changes of one commit to a branch"
    ),
    "commit": Lazy("omnigraph.cli.commit", "commit", "List and show commits"),
    "changes": Lazy("omnigraph.cli.changes", "changes", "Follow the commits of a branch"),
    "snapshot": Lazy(
        "omnigraph.cli.snapshot", "snapshot", "Show the tables of a branch and their versions"
    ),
    "copy": Lazy("omnigraph.cli.copy", "copy", "Copy a graph with all branches and history"),
    "cleanup": Lazy("omnigraph.cli.cleanup", "cleanup", "Remove unneeded history"),
    "optimize": Lazy("omnigraph.cli.optimize", "optimize", "Compact tables and update indexes"),
    "ensure-indices": Lazy(
        "omnigraph.cli.optimize", "ensure_indices", "Build the indexes that the schema declares"
    ),
    "check": Lazy("omnigraph.cli.check", "check", "Verify graph integrity"),
    "status": Lazy("omnigraph.cli.status", "status", "Show the size and health of a graph"),
    "repair": Lazy(
        "omnigraph.cli.repair", "repair", "Report or adopt changes made by external writers"
    ),
    "doctor": Lazy("omnigraph.cli.doctor", "doctor", "Diagnose this machine and a store"),
    "recovery": Lazy("omnigraph.cli.recovery", "recovery", "Inspect interrupted operations"),
    "lint": Lazy("omnigraph.cli.lint", "lint", "Check queries and their schema"),
    "schema": Lazy("omnigraph.cli.schema", "schema", "Check, compare, show and apply schemas"),
    "fmt": Lazy("omnigraph.cli.fmt", "fmt", "Format schema and query files"),
    "describe": Lazy(
        "omnigraph.cli.describe", "describe", "Show what queries take, return and touch"
    ),
    "completion": Lazy("omnigraph.cli.completion", "completion", "Print a shell completion script"),
    "version": Lazy("omnigraph.cli.version", "version", "Print version information"),
}
# Start-up creates many objects and no garbage: collections would take a tenth of its time.
_GC_THRESHOLD = 100_000
_LEGEND = """
A graph is a path or s3://bucket/prefix; S3 access is configured with the AWS_* variables.
lint, fmt, describe, completion, version, schema check and schema diff work without a graph.
Exit codes: 0 success, 1 failure, 2 usage error, 4 --if-commit did not match, 5 --check found
something, 130 interrupted, 143 terminated.
"""


@click.group(
    cls=LazyGroup,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_LEGEND,
)
@click.version_option(
    omnigraph.__version__,
    "-V",
    "--version",
    message="omnigraph %(version)s",
    help="Show the version and exit",
)
@scope_options
@shared_options
def cli() -> None:
    """A versioned property-graph database on open files, with branches and merges like git."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit."""
    gc.set_threshold(_GC_THRESHOLD)
    raise_on_sigterm()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names may contain any bytes
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _warned  # type: ignore[assignment]
    sys.exit(_run_to_exit(arguments))


def _run_to_exit(arguments: Sequence[str] | None) -> int:
    """Run the program and return its exit code, even if a signal arrives after the command."""
    try:
        code = run(arguments)
        end_at_once_on_signals()
    except KeyboardInterrupt as error:
        end_at_once_on_signals()
        code = _interrupted(error)
    return code


def _warned(message: Warning | str, *_: Any) -> None:
    """Print a warning as one line for people, without its source location."""
    from . import show

    show.warnings([message])


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return the exit code instead of raising."""
    chosen = Chosen()
    streams = sys.stdout, sys.stderr
    # This context outlives the command, so that errors are shown according to its flags, too.
    with click.Context(cli, obj=chosen):
        try:
            ended: Any = cli.main(
                args=arguments, prog_name="omnigraph", standalone_mode=False, obj=chosen
            )
            return ended if isinstance(ended, int) else exits.OK
        except click.ClickException as error:
            return _misused(error, chosen.settings)
        except (click.Abort, KeyboardInterrupt) as error:
            return _interrupted(error)
        except SystemExit:
            if (sys.stdout, sys.stderr) == streams:
                raise  # shell completion exits like this
            # Click wraps the streams and exits when the reader of the output has closed it.
            sys.stdout, sys.stderr = streams
            _silence_stdout()
            return exits.BROKEN_PIPE
        except Exception as error:  # the last resort: every other path is typed
            return _failed(error, chosen)
        finally:
            stop_log()


def _interrupted(error: BaseException) -> int:
    told = isinstance(error, TerminatedError) or isinstance(error.__cause__, TerminatedError)
    with suppress(OSError):  # standard error is closed
        word = "terminated" if told else "interrupted"
        click.echo(f"{word}; nothing was left half-written", err=True)
    return exits.TERMINATED if told else exits.INTERRUPTED


def _misused(error: click.ClickException, settings: Settings) -> int:
    with suppress(OSError):  # the output is closed
        if settings.json_errors:
            from omnigraph.errors import UsageError

            from . import show

            show.document(UsageError(reason=error.format_message()).to_json())
        else:
            error.show()
    return error.exit_code


def _failed(error: Exception, chosen: Chosen) -> int:
    settings = chosen.settings
    if settings.debug:
        import traceback

        traceback.print_exception(error)
    typed = _typed(error)
    with suppress(OSError):  # the output is closed
        if settings.json_errors and not isinstance(error, OSError):
            from . import show

            show.document(typed.to_json())
        else:
            _tell(typed, writes=chosen.writes)
    return exits.code_of(typed)


def _typed(error: Exception) -> Any:
    from omnigraph.errors import InternalError, OmnigraphError, StorageError

    if isinstance(error, OmnigraphError):
        return error
    if isinstance(error, OSError):  # file errors are typed where files are used: this is a stream
        return StorageError(f"cannot write the result: {error.strerror}")
    return InternalError(f"unexpected {type(error).__name__}: {error}")


def _tell(error: Any, *, writes: bool) -> None:
    from omnigraph.errors import LanguageError

    from . import show

    if isinstance(error, LanguageError) and error.source is not None and error.diagnostics:
        show.findings(error.diagnostics, error.source, err=True)
    else:
        show.problem(getattr(error, "explained", error.message), error.advice)
    if writes and error.effect == "none":
        click.echo("nothing was written", err=True)


def _silence_stdout() -> None:
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
