"""`omnigraph shell`: start the shell, which reads statements from a terminal or from a pipe."""

import sys
from collections.abc import Iterator

import click

from omnigraph.cli.address import GraphAddress, actor_option, graph_arguments, resolve_target, yes_option
from omnigraph.cli.options import CurrentGraph, settings, shared_options


@click.command()
@click.option("--branch", default="main", show_default=True, help="Branch to start on")
@click.option("--keep-going", is_flag=True, help="Continue after an error if the input is not a terminal")
@graph_arguments()
@actor_option
@yes_option
@shared_options
@click.pass_context
def shell(
    context: click.Context, /, address: GraphAddress, branch: str, keep_going: bool, actor: str | None, yes: bool
) -> None:
    r"""Run queries, mutations and commands on a graph, in one process.

    Enter a query such as `match { $p: Person } return { $p.name }`, a mutation, or any other command without its graph,
    such as `branch list`. Commands use the current branch by default. `\h` lists the shell commands, and Ctrl-D exits
    the shell. If the input is not a terminal, the shell exits at the first error, with the exit code of that error.
    """
    from omnigraph.cli.main import cli

    from .backslash import find_branch
    from .session import Session, open_session, run_statements

    root = resolve_target(address)
    scope_flags = {name: value for name, value in (("actor", actor), ("yes", yes)) if value}
    session = Session(cli, CurrentGraph(root.uri, branch), settings(), scope_flags, keep_going)
    with open_session(session):
        session.move_to(branch=find_branch(root.uri, branch))
        if sys.stdin.isatty() and sys.stdout.isatty():
            from .terminal import run_terminal

            context.exit(run_terminal(session))
        from .statements import split_statements

        context.exit(run_statements(session, split_statements(_read_lines())))


def _read_lines() -> Iterator[str]:
    while line := sys.stdin.readline():
        yield line.rstrip("\r\n")
