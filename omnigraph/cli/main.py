"""The `omnigraph` program: its command list, and how its process starts and exits.

This module lists the commands without importing them. `run_command.py` turns errors into messages and exit codes.
"""

import gc
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import click

import omnigraph

from .group import LazyCommand, LazyGroup
from .options import Invocation, scope_options, shared_options
from .run_command import report_interruption, run_command
from .signals import end_at_once_on_signals, raise_on_sigterm
from .verbosity import stop_log

_COMMANDS = {
    "init": LazyCommand("omnigraph.cli.init", "init", "Create a graph from a schema"),
    "query": LazyCommand("omnigraph.cli.query", "query", "Run a read query and print its rows"),
    "alias": LazyCommand("omnigraph.cli.alias", "alias", "Run a stored query under a short name"),
    "mutate": LazyCommand("omnigraph.cli.mutate", "mutate", "Run a mutation in one commit"),
    "load": LazyCommand("omnigraph.cli.load", "load", "Load records in one commit"),
    "export": LazyCommand("omnigraph.cli.export", "export", "Export a graph as NDJSON"),
    "blob": LazyCommand("omnigraph.cli.blob", "blob", "Read, inspect and replace blobs"),
    "queries": LazyCommand("omnigraph.cli.queries", "queries", "List and show the queries stored on a server"),
    "explain": LazyCommand("omnigraph.cli.explain", "explain", "Show the plan for a query"),
    "branch": LazyCommand("omnigraph.cli.branch", "branch", "Create, list, merge, rename, reset and delete branches"),
    "diff": LazyCommand("omnigraph.cli.diff", "diff", "Show changes between two revisions"),
    "log": LazyCommand("omnigraph.cli.log", "log", "Draw the history of a graph"),
    "history": LazyCommand("omnigraph.cli.entity", "history", "Show every version of one entity"),
    "blame": LazyCommand("omnigraph.cli.entity", "blame", "Show which commit last changed each property of an entity"),
    "tag": LazyCommand("omnigraph.cli.tag", "tag", "Create, list and delete tags"),
    "revert": LazyCommand("omnigraph.cli.replay", "revert", "Undo a commit or a range of commits with a new commit"),
    "undo": LazyCommand("omnigraph.cli.replay", "undo", "Undo the last commit with a new commit"),
    "cherry-pick": LazyCommand("omnigraph.cli.replay", "cherry_pick", "Apply the changes from one commit to a branch"),
    "commit": LazyCommand("omnigraph.cli.commit", "commit", "List and show commits"),
    "changes": LazyCommand("omnigraph.cli.changes", "changes", "Follow commits on a branch"),
    "snapshot": LazyCommand("omnigraph.cli.snapshot", "snapshot", "Show the tables on a branch and their versions"),
    "copy": LazyCommand("omnigraph.cli.copy", "copy", "Copy a graph with all branches and history"),
    "cleanup": LazyCommand("omnigraph.cli.cleanup", "cleanup", "Remove history that is no longer needed"),
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
    "job": LazyCommand("omnigraph.cli.job", "job", "List and wait for the maintenance jobs of a server"),
    "graphs": LazyCommand("omnigraph.cli.graphs", "graphs", "List the graphs on a server"),
    "lint": LazyCommand("omnigraph.cli.lint", "lint", "Check queries and their schema"),
    "schema": LazyCommand("omnigraph.cli.schema", "schema", "Check, compare, show and apply schemas"),
    "fmt": LazyCommand("omnigraph.cli.fmt", "fmt", "Format schema and query files"),
    "describe": LazyCommand("omnigraph.cli.describe", "describe", "Show what queries take, return, read and write"),
    "profile": LazyCommand("omnigraph.cli.profile", "profile", "List and show profiles"),
    "config": LazyCommand("omnigraph.cli.config", "config", "Show the configuration"),
    "login": LazyCommand("omnigraph.cli.login", "login", "Store the token for a server"),
    "logout": LazyCommand("omnigraph.cli.login", "logout", "Remove the stored token for a server"),
    "serve": LazyCommand("omnigraph.cli.serve", "serve", "Serve graphs over HTTP"),
    "token": LazyCommand("omnigraph.cli.token", "token", "Create tokens for a server"),
    "shell": LazyCommand("omnigraph.cli.shell.command", "shell", "Run queries and commands interactively"),
    "completion": LazyCommand("omnigraph.cli.completion", "completion", "Print a shell completion script"),
    "version": LazyCommand("omnigraph.cli.version", "version", "Print version information"),
}
COMPLETE_VARIABLE = "_OMNIGRAPH_COMPLETE"  # set by the shell completion scripts
# Start-up creates many objects but no garbage, and garbage collection would take a tenth of the start-up time.
_GC_THRESHOLD = 300_000
_EPILOG = """
A graph is a path, s3://bucket/prefix, or https://host/graphs/id on a server. Commands that need one take it as
their first argument, or from --store, --server and --graph, $OMNIGRAPH_STORE, a profile, or the configuration.
S3 access is configured with the AWS_* variables and the shared AWS configuration files.
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
    exit_code = _run_to_exit(arguments)
    gc.freeze()  # otherwise, the interpreter would search all objects for garbage before it exits
    sys.exit(exit_code)


def _run_to_exit(arguments: Sequence[str] | None) -> int:
    """Run the program and return its exit code, even if a signal arrives after the command has finished."""
    try:
        code = run(arguments)
        end_at_once_on_signals()
    except KeyboardInterrupt as error:
        end_at_once_on_signals()
        code = report_interruption(error)
    return code


def _show_warning(message: Warning | str, *_: Any) -> None:
    """Print a warning on one line, without its source location."""
    from . import show

    show.warnings([message])


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return the exit code instead of raising an exception."""
    if COMPLETE_VARIABLE in os.environ:
        from .completion import answer_shell

        return answer_shell(os.environ[COMPLETE_VARIABLE])
    invocation = Invocation()
    try:
        return run_command(cli, arguments, invocation)
    finally:
        stop_log()


if __name__ == "__main__":
    main()
