"""`omnigraph recovery`: list interrupted operations, and retry or drop those that were set aside."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from omnigraph.errors import NotFound

from . import show
from .address import (
    GraphAddress,
    actor_option,
    announce_target,
    graph_arguments,
    require_consent,
    resolve_target,
    yes_option,
)
from .group import LazyCommand, LazyGroup
from .opening import open_graph
from .options import scope_options, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.cli.server_target import ServerTarget
    from omnigraph.history.recovery_records import RecoveryRecord
    from omnigraph.publish.intent import PendingIntent, SetAsideIntent
    from omnigraph.storage.root import GraphRoot

_COMMANDS = {
    "list": LazyCommand(__name__, "list_", "List recovered, pending and set-aside operations"),
    "retry": LazyCommand(__name__, "retry", "Retry an operation that was set aside"),
    "drop": LazyCommand(__name__, "drop", "Drop an operation that was set aside"),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def recovery() -> None:
    """Inspect interrupted operations, and retry or drop those that were set aside."""


@click.command("list")
@graph_arguments()
@shared_options
def list_(address: GraphAddress) -> None:
    """List recovered operations (oldest first), pending operations, and operations that were set aside.

    A pending operation is still running, or its process crashed. In the latter case, the next write recovers it. An
    operation that recovery cannot resolve is set aside: it does not block other operations, and its data is kept. Fix
    the cause and retry the operation, or drop it.
    """
    root = resolve_target(address)
    graph = open_graph(root, read_only=True)
    outcomes = graph.maintenance.operations.recoveries()
    pending = graph.maintenance.operations.pending()
    set_aside = graph.maintenance.operations.set_aside()
    if settings().json:
        documents = {
            "recoveries": [outcome.to_json() for outcome in outcomes],
            "pending": [_pending_members(operation) for operation in pending],
            "set_aside": [operation.to_json() for operation in set_aside],
        }
        show.document(documents)
        return
    for outcome in outcomes:
        show.result(_outcome_line(outcome))
    for pending_operation in pending:
        show.result(_operation_line(pending_operation.id, "pending", _pending_members(pending_operation)))
    for operation in set_aside:
        show.result(_set_aside_line(operation))
    if pending:
        show.note("pending operations are still running or will be recovered by the next write")
    if set_aside:
        show.note(
            "to resolve a set-aside operation, run `omnigraph recovery retry ID`"
            " or `omnigraph recovery drop ID --confirm`"
        )
    if not outcomes and not pending and not set_aside:
        show.note("there are no recovered, pending or set-aside operations")


@click.command()
@graph_arguments(operation_id="ID")
@actor_option
@shared_options
def retry(operation_id: str, address: GraphAddress, actor: str | None) -> None:
    """Retry the recovery of operation ID. Fix the cause of the failure first.

    If recovery fails again, the error is reported and the operation stays set aside.
    """
    root = resolve_target(address)
    announce_target("recovery retry", root)
    outcome = open_graph(root, actor=actor).maintenance.operations.retry(operation_id)
    if settings().json:
        show.document({"uri": root.uri, "outcome": outcome.to_json() if outcome else None})
        return
    show.result(_outcome_line(outcome) if outcome else f"{operation_id}  was already resolved")


@click.command()
@click.option("--confirm", is_flag=True, help="Drop the operation; the default is a preview")
@graph_arguments(operation_id="ID")
@actor_option
@yes_option
@shared_options
def drop(operation_id: str, confirm: bool, address: GraphAddress, actor: str | None, yes: bool) -> None:
    """Abandon operation ID: recovery ignores it, and cleanup may remove its staged data.

    The drop is recorded. Without --confirm, nothing changes.
    """
    root = resolve_target(address)
    if not confirm:
        _preview_drop(root, operation_id)
        return
    require_consent("recovery drop", root, yes=yes)
    announce_target("recovery drop", root)
    outcome = open_graph(root, actor=actor).maintenance.operations.drop(operation_id)
    if settings().json:
        show.document({"uri": root.uri, "outcome": outcome.to_json()})
        return
    show.result(_outcome_line(outcome))


def _preview_drop(root: "GraphRoot | ServerTarget", operation_id: str) -> None:
    set_aside = open_graph(root, read_only=True).maintenance.operations.set_aside()
    operation = next((operation for operation in set_aside if operation.id == operation_id), None)
    if operation is None:
        raise NotFound(
            f"no set-aside operation '{operation_id}'",
            what=f"operation '{operation_id}'",
            hint="run `omnigraph recovery list` to list set-aside operations",
        )
    if settings().json:
        show.document({"uri": root.uri, "outcome": None, "set_aside": [operation.to_json()]})
    else:
        show.result(_set_aside_line(operation))
    show.note("nothing was changed; pass --confirm to drop the operation")


def _outcome_line(outcome: "RecoveryRecord") -> str:
    columns = [outcome.operation_id, outcome.kind, outcome.operation, outcome.branch, outcome.for_actor or "-"]
    return "  ".join(columns + ([outcome.error] if outcome.error else []))


def _pending_members(operation: "PendingIntent") -> dict[str, Any]:
    return {
        "operation_id": operation.id,
        "operation": operation.intent.operation,
        "graph_branch": operation.intent.branch,
        "for_actor": operation.intent.actor,
        "graph_commit_id": operation.intent.commit_id,
    }


def _set_aside_line(operation: "SetAsideIntent") -> str:
    line = _operation_line(operation.id, "set_aside", operation.to_json())
    return f"{line}  {operation.error}"


def _operation_line(operation_id: str, status: str, members: Mapping[str, Any]) -> str:
    columns = (members["operation"], members["graph_branch"], members["for_actor"])
    return "  ".join((operation_id, status, *(column or "-" for column in columns)))
