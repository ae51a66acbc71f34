"""`omnigraph schema plan` and `omnigraph schema apply`: change the schema of a graph."""

from typing import Any

import click

from omnigraph.errors import SchemaViolation

from . import exits, files, show
from .address import (
    actor_option,
    address,
    consent,
    store_option,
    tell_target,
    uri_argument,
    yes_option,
)
from .options import settings, shared_options, will_write
from .schema import show_plan

_schema_option = click.option(
    "--schema",
    "path",
    required=True,
    type=click.Path(allow_dash=True),
    help="New schema file (.pg), or - for standard input",
)
_branch_option = click.option(
    "--branch", default="main", show_default=True, help="Branch to change"
)
_loss_option = click.option(
    "--allow-data-loss", is_flag=True, help="Also delete the history of dropped data"
)


@click.command()
@uri_argument
@_schema_option
@_branch_option
@_loss_option
@click.option("--safe-only", is_flag=True, help="Exit 1 if a step can lose data")
@click.option("--check", "strict", is_flag=True, help="Exit 5 if there is anything to change")
@store_option
@shared_options
@click.pass_context
def plan(
    context: click.Context,
    /,
    uri: str | None,
    path: str,
    branch: str,
    store: str | None,
    allow_data_loss: bool,
    **how: bool,
) -> None:
    """Show the steps that change the schema of a graph.

    No data is read, nothing is changed. Exits 1 if a step is not supported.
    """
    root, source = address(uri, store), files.read_source(path)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, branch=branch, read_only=True)
    found = graph.schema.plan(source, allow_data_loss=allow_data_loss)
    if settings().json:
        show.document({"uri": root.uri, **found.to_json()})
    else:
        show_plan(found)
    lossy = how["safe_only"] and any(step.tier == "destructive" for step in found.steps)
    changes = exits.DIFFERENCES if how["strict"] and found.steps else exits.OK
    context.exit(exits.FAILED if lossy or not found.supported else changes)


@click.command()
@uri_argument
@_schema_option
@_branch_option
@_loss_option
@click.option("--dry-run", is_flag=True, help="Check the steps and the data without changing them")
@click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit")
@click.option("--message", "-m", help="Commit message")
@store_option
@actor_option
@yes_option
@shared_options
def apply(
    uri: str | None,
    path: str,
    branch: str,
    store: str | None,
    actor: str | None,
    yes: bool,
    **how: Any,
) -> None:
    """Change the schema of one branch, as one commit.

    Data that violates a new rule is listed, and nothing is changed. Dropped data stays readable in
    earlier commits unless --allow-data-loss is given.
    """
    root, source = address(uri, store), files.read_source(path)
    if not how["dry_run"]:
        tell_target("schema apply", root)
        will_write()
    if how["allow_data_loss"] and not how["dry_run"]:
        consent("dropping data with its history", root, yes=yes)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, branch=branch, actor=actor, read_only=how["dry_run"])
    try:
        done = graph.schema.apply(source, **how)
    except SchemaViolation as error:
        if not settings().json and len(error.lines) > 1:
            show.note("\n".join(error.lines))
        raise
    if settings().json:
        show.document({"uri": root.uri, **done.to_json()})
    else:
        _tell(done)


def _tell(done: Any) -> None:
    for line in str(done.plan).splitlines() if done.steps else ():
        show.result(f"  {line}")
    for warning in done.plan.warnings:
        show.note(f"warning: {warning.message}")
    steps = show.count(len(done.steps), "step")
    if done.applied:
        show.result(f"applied {steps} to {done.branch}, commit {done.commit_id}")
    elif done.steps:
        show.result(f"{steps} would succeed on {done.branch}; nothing was changed")
    else:
        show.result(f"{done.branch} already has this schema; nothing was changed")
