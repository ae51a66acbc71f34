"""`omnigraph recovery`: operations whose process was gone, and what to do with unsettled ones."""

from typing import TYPE_CHECKING

import click

from . import show
from .address import (
    actor_option,
    address,
    consent,
    direct_only,
    store_option,
    tell_target,
    uri_argument,
    uri_option,
    yes_option,
)
from .group import Lazy, LazyGroup
from .options import scope_options, settings, shared_options

if TYPE_CHECKING:
    from omnigraph.history.audit import Outcome
    from omnigraph.history.intent import SetAside

_COMMANDS = {
    "list": Lazy(__name__, "list_", "List settled operations, and those that were set aside."),
    "retry": Lazy(__name__, "retry", "Settle an operation that was set aside."),
    "drop": Lazy(__name__, "drop", "Give up an operation that was set aside."),
}
_id_argument = click.argument("operation_id", metavar="ID")


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def recovery() -> None:
    """Look at operations that were cut off, and decide about those that were set aside."""


@click.command("list")
@uri_argument
@store_option
@shared_options
def list_(uri: str | None, store: str | None) -> None:
    """List settled operations, oldest first, then those that wait for a decision.

    An operation that could not be settled is set aside: it stops nobody, and what it needs stays.
    Mend the cause and retry it, or drop it.
    """
    root = address(uri, store)
    from omnigraph.api.opening import open as open_graph

    graph = open_graph(root.uri, read_only=True)
    outcomes, waiting = (
        graph.maintenance.operations.recoveries(),
        graph.maintenance.operations.set_aside(),
    )
    if settings().json:
        settled = [one.to_json() for one in outcomes]
        show.document({"recoveries": settled, "set_aside": [one.to_json() for one in waiting]})
        return
    for one in outcomes:
        show.result(_outcome_line(one))
    for operation in waiting:
        show.result(_waiting_line(operation))
    if waiting:
        show.note("an operation that waits: `omnigraph recovery retry ID`, or `drop ID --confirm`")
    if not outcomes and not waiting:
        show.note("nothing was ever recovered")


@click.command()
@_id_argument
@uri_option
@store_option
@actor_option
@direct_only
@shared_options
def retry(operation_id: str, uri: str | None, store: str | None, actor: str | None) -> None:
    """Settle operation ID again, as recovery does, now that the cause is mended.

    A failure is reported, and the operation stays set aside.
    """
    root = address(uri, store, way="--uri")
    tell_target("recovery retry", root)
    from omnigraph.api.opening import open as open_graph

    outcome = open_graph(root.uri, actor=actor).maintenance.operations.retry(operation_id)
    if settings().json:
        show.document({"uri": root.uri, "outcome": outcome.to_json() if outcome else None})
        return
    show.result(_outcome_line(outcome) if outcome else f"{operation_id}  it was over already")


@click.command()
@_id_argument
@click.option("--confirm", is_flag=True, help="Drop; without it, only show the operation")
@uri_option
@store_option
@actor_option
@direct_only
@yes_option
@shared_options
def drop(
    operation_id: str,
    confirm: bool,
    uri: str | None,
    store: str | None,
    actor: str | None,
    yes: bool,
) -> None:
    """Give up operation ID: nobody settles it any more, and cleanup may remove what it staged.

    The drop is recorded. Without --confirm nothing is changed.
    """
    root = address(uri, store, way="--uri")
    from omnigraph.api.opening import open as open_graph

    if not confirm:
        _preview_drop(root.uri, operation_id)
        return
    consent("recovery drop", root, yes=yes)
    tell_target("recovery drop", root)
    outcome = open_graph(root.uri, actor=actor).maintenance.operations.drop(operation_id)
    if settings().json:
        show.document({"uri": root.uri, "outcome": outcome.to_json()})
        return
    show.result(_outcome_line(outcome))


def _preview_drop(uri: str, operation_id: str) -> None:
    from omnigraph.api.opening import open as open_graph
    from omnigraph.history.set_aside import find_set_aside

    operation = find_set_aside(open_graph(uri, read_only=True)._handle.store, operation_id)
    if settings().json:
        show.document({"uri": uri, "outcome": None, "set_aside": [operation.to_json()]})
    else:
        show.result(_waiting_line(operation))
    show.note("nothing was changed; add --confirm to drop it")


def _outcome_line(one: "Outcome") -> str:
    parts = [one.operation_id, one.kind, one.operation, one.branch, one.for_actor or "-"]
    return "  ".join(parts + ([one.error] if one.error else []))


def _waiting_line(one: "SetAside") -> str:
    facts = one.to_json()
    names = (facts["operation"], facts["graph_branch"], facts["for_actor"])
    return "  ".join((one.id, "waits", *(name or "-" for name in names), one.error))
