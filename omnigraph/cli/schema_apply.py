"""`omnigraph schema plan` and `omnigraph schema apply`: change a graph's schema."""

from typing import Any

import click

from omnigraph.errors import SchemaViolation

from . import exits, files, show
from .address import (
    GraphAddress,
    actor_option,
    announce_target,
    graph_arguments,
    require_consent,
    resolve_target,
    yes_option,
)
from .opening import open_graph
from .options import idempotency_key_option, mark_as_write, settings, shared_options
from .schema import print_plan

_schema_option = click.option(
    "--schema",
    "path",
    required=True,
    type=click.Path(allow_dash=True),
    help="New schema file (.pg), or - for standard input",
)
_branch_option = click.option("--branch", default="main", show_default=True, help="Branch to change")
_data_loss_option = click.option("--allow-data-loss", is_flag=True, help="Also delete the history of dropped data")


@click.command()
@_schema_option
@_branch_option
@_data_loss_option
@click.option("--safe-only", is_flag=True, help="Exit with code 1 if any step could lose data")
@click.option("--check", "strict", is_flag=True, help="Exit with code 5 if there is anything to migrate")
@graph_arguments()
@shared_options
@click.pass_context
def plan(
    context: click.Context,
    /,
    address: GraphAddress,
    path: str,
    branch: str,
    allow_data_loss: bool,
    **options: bool,
) -> None:
    """Show the steps that would change the schema of a graph.

    No data is read and nothing is changed. Exits with code 1 if a step is not supported.
    """
    root, source = resolve_target(address), files.read_source(path)
    graph = open_graph(root, branch=branch, read_only=True)
    schema_plan = graph.schema.plan(source, allow_data_loss=allow_data_loss)
    if settings().json:
        show.document({"uri": root.uri, **schema_plan.to_json()})
    else:
        print_plan(schema_plan)
    is_lossy = options["safe_only"] and any(step.tier == "destructive" for step in schema_plan.steps)
    success_code = exits.DIFFERENCES if options["strict"] and schema_plan.steps else exits.OK
    context.exit(exits.FAILED if is_lossy or not schema_plan.supported else success_code)


@click.command()
@_schema_option
@_branch_option
@_data_loss_option
@click.option("--dry-run", is_flag=True, help="Check the steps against the data without applying them")
@click.option("--if-commit", metavar="ID", help="Fail unless the branch is at this commit")
@click.option("--message", "-m", help="Commit message")
@idempotency_key_option
@graph_arguments()
@actor_option
@yes_option
@shared_options
def apply(address: GraphAddress, path: str, branch: str, actor: str | None, yes: bool, **options: Any) -> None:
    """Change the schema on one branch in one commit.

    If existing data violates a new rule, the violations are listed and nothing is changed. Dropped data stays readable
    in earlier commits unless --allow-data-loss is given.
    """
    root, source = resolve_target(address), files.read_source(path)
    if not options["dry_run"]:
        announce_target("schema apply", root)
        mark_as_write()
    if options["allow_data_loss"] and not options["dry_run"]:
        require_consent("schema apply --allow-data-loss", root, yes=yes)
    graph = open_graph(root, branch=branch, actor=actor, read_only=options["dry_run"])
    try:
        applied = graph.schema.apply(source, **options)
    except SchemaViolation as error:
        if not settings().json and len(error.lines) > 1:
            show.note("\n".join(error.lines))
        raise
    if settings().json:
        show.document({"uri": root.uri, **applied.to_json()})
    else:
        _print_outcome(applied)


def _print_outcome(applied: Any) -> None:
    for line in str(applied.plan).splitlines() if applied.steps else ():
        show.confirmation(f"  {line}", preview=not applied.applied)
    for warning in applied.plan.warnings:
        show.note(f"warning: {warning.message}")
    step_count = show.count(len(applied.steps), "step")
    if applied.applied:
        show.confirmation(f"applied {step_count} to {applied.branch}, commit {applied.commit_id}")
    elif applied.steps:
        show.result(f"{step_count} would succeed on {applied.branch}; nothing was changed")
    else:
        show.confirmation(f"{applied.branch} already has this schema; nothing was changed")
