"""The program `omnigraph`: its commands, and how every one of them ends.

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
    "init": Lazy("omnigraph.cli.init", "init", "Make a new graph from a schema."),
    "query": Lazy("omnigraph.cli.query", "query", "Run a read query and print its rows."),
    "mutate": Lazy("omnigraph.cli.mutate", "mutate", "Run a mutation, as one commit."),
    "load": Lazy("omnigraph.cli.load", "load", "Load records from NDJSON, as one commit."),
    "export": Lazy("omnigraph.cli.export", "export", "Write a graph as NDJSON."),
    "explain": Lazy("omnigraph.cli.explain", "explain", "Show how a query runs."),
    "branch": Lazy("omnigraph.cli.branch", "branch", "Create, merge and delete branches."),
    "diff": Lazy("omnigraph.cli.diff", "diff", "Show what differs between two states."),
    "log": Lazy("omnigraph.cli.log", "log", "Draw the history of a graph."),
    "history": Lazy("omnigraph.cli.entity", "history", "Show every version of one entity."),
    "blame": Lazy("omnigraph.cli.entity", "blame", "Show who gave an entity its values."),
    "tag": Lazy("omnigraph.cli.tag", "tag", "Name single commits."),
    "revert": Lazy("omnigraph.cli.again", "revert", "Take a commit back, as a new commit."),
    "cherry-pick": Lazy("omnigraph.cli.again", "cherry_pick", "Make one commit again elsewhere."),
    "commit": Lazy("omnigraph.cli.commit", "commit", "Look at the history of a graph."),
    "changes": Lazy("omnigraph.cli.changes", "changes", "Follow what is committed to a branch."),
    "snapshot": Lazy(
        "omnigraph.cli.snapshot", "snapshot", "Show which tables a branch has, at which versions."
    ),
    "copy": Lazy("omnigraph.cli.copy", "copy", "Copy a graph with all branches and history."),
    "cleanup": Lazy("omnigraph.cli.cleanup", "cleanup", "Remove history that nothing needs."),
    "optimize": Lazy("omnigraph.cli.optimize", "optimize", "Put small pieces of tables together."),
    "ensure-indices": Lazy(
        "omnigraph.cli.optimize", "ensure_indices", "Build the indexes that a schema asks for."
    ),
    "check": Lazy("omnigraph.cli.check", "check", "Look whether a graph is as it should be."),
    "status": Lazy("omnigraph.cli.status", "status", "Show what a graph consists of."),
    "repair": Lazy("omnigraph.cli.repair", "repair", "Tell what other programs did to a graph."),
    "doctor": Lazy("omnigraph.cli.doctor", "doctor", "Look at this machine and a store."),
    "recovery": Lazy("omnigraph.cli.recovery", "recovery", "Look at operations that were cut off."),
    "lint": Lazy("omnigraph.cli.lint", "lint", "Check queries, and the schema they are for."),
    "schema": Lazy("omnigraph.cli.schema", "schema", "Check, compare and show schemas."),
    "fmt": Lazy("omnigraph.cli.fmt", "fmt", "Format schema and query files."),
    "describe": Lazy(
        "omnigraph.cli.describe", "describe", "Tell what queries take, give and touch."
    ),
    "completion": Lazy(
        "omnigraph.cli.completion", "completion", "Print a shell completion script."
    ),
    "version": Lazy("omnigraph.cli.version", "version", "Print the version."),
}
# Start-up makes many objects and no garbage: looking for it would take a tenth of the time.
_GC_THRESHOLD = 100_000
_LEGEND = """
A graph is a path or s3://bucket/prefix; S3 is reached by the AWS_* variables.
lint, fmt, describe, completion, version, schema check and diff work on files: they need no graph.
Exit codes: 0 done, 1 failed, 2 wrong usage, 4 --if-commit lost, 5 --check found something,
130 interrupted, 143 terminated.
"""


@click.group(
    cls=LazyGroup,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_LEGEND,
)
@click.version_option(omnigraph.__version__, "-V", "--version", message="omnigraph %(version)s")
@scope_options
@shared_options
def cli() -> None:
    """A property graph in open files, versioned like git."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit."""
    gc.set_threshold(_GC_THRESHOLD)
    raise_on_sigterm()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name of a file may hold any bytes
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _warned  # type: ignore[assignment]
    sys.exit(_run_to_exit(arguments))


def _run_to_exit(arguments: Sequence[str] | None) -> int:
    """Run the program and return its exit code, also when a signal arrives behind the command."""
    try:
        code = run(arguments)
        end_at_once_on_signals()
    except KeyboardInterrupt as error:
        end_at_once_on_signals()
        code = _interrupted(error)
    return code


def _warned(message: Warning | str, *_: Any) -> None:
    """A warning as a line for people, without the place in the code that gave it."""
    from . import show

    show.warnings([message])


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program; gives the exit code instead of raising."""
    chosen = Chosen()
    streams = sys.stdout, sys.stderr
    # This context outlives the command, so that errors too are shown as its flags ask.
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
                raise  # a shell was helped to complete a line
            # Click wraps the streams and exits when whoever read the output has gone.
            sys.stdout, sys.stderr = streams
            _silence_stdout()
            return exits.BROKEN_PIPE
        except Exception as error:  # the last resort: every other path is typed
            return _failed(error, chosen)
        finally:
            stop_log()


def _interrupted(error: BaseException) -> int:
    told = isinstance(error, TerminatedError) or isinstance(error.__cause__, TerminatedError)
    with suppress(OSError):  # nobody is left to be told
        word = "terminated" if told else "interrupted"
        click.echo(f"{word}; nothing was left half-written", err=True)
    return exits.TERMINATED if told else exits.INTERRUPTED


def _misused(error: click.ClickException, settings: Settings) -> int:
    with suppress(OSError):  # nobody is left to be told
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
    with suppress(OSError):  # nobody is left to be told
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
    if isinstance(error, OSError):  # files are read and written elsewhere: this is a stream
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
