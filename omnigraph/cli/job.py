"""`omnigraph job`: list, show and wait for the maintenance jobs on a server."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from omnigraph.errors import InputError

from . import show
from .address import GraphAddress, graph_arguments, resolve_target
from .group import LazyCommand, LazyGroup
from .opening import open_graph
from .options import scope_options, settings, shared_options
from .progress import show_progress
from .server_target import ServerTarget

_COMMANDS = {
    "list": LazyCommand(__name__, "list_", "List maintenance jobs, newest first"),
    "show": LazyCommand(__name__, "show_job", "Show the state and the result of a job"),
    "wait": LazyCommand(__name__, "wait", "Wait until a job ends, and show its result"),
}
_STATE_COLORS = {"running": "cyan", "succeeded": "green", "failed": "red"}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
@scope_options
@shared_options
def job() -> None:
    """List and show maintenance jobs, which a server runs for commands such as optimize.

    A job continues if the command that started it is interrupted. Only the server that started a job has a
    record of the job, and only until that server stops.
    """


@click.command("list")
@graph_arguments()
@shared_options
def list_(address: GraphAddress) -> None:
    """List the maintenance jobs of a graph on a server, newest first."""
    jobs = _open_maintenance(address).jobs()
    if settings().json:
        show.document({"jobs": jobs})
        return
    for state in jobs:
        show.result(_job_line(state))
    if not jobs:
        show.note("there are no jobs")


@click.command("show")
@graph_arguments(job_id="ID")
@shared_options
def show_job(job_id: str, address: GraphAddress) -> None:
    """Show the state and the result of job ID."""
    _print_job(_open_maintenance(address).job(job_id))


@click.command()
@graph_arguments(job_id="ID")
@shared_options
def wait(job_id: str, address: GraphAddress) -> None:
    """Wait until job ID ends, and show its result. Exits with code 1 if the job failed."""
    from omnigraph.client.jobs import watch_progress

    maintenance = _open_maintenance(address)
    state = maintenance.job(job_id)
    with show_progress(state["kind"]) as progress_bar:
        maintenance.wait(state, watch_progress(progress_bar.show_text))
    _print_job(maintenance.job(job_id))


def _open_maintenance(address: GraphAddress) -> Any:
    target = resolve_target(address)
    if not isinstance(target, ServerTarget):
        message = "only a server runs jobs; a command that opens the graph's files does its work before it exits"
        raise InputError(message, reason="not a server", hint="pass the URL of a graph on a server, or --server")
    return open_graph(target, read_only=True).maintenance


def _print_job(state: Mapping[str, Any]) -> None:
    if settings().json:
        show.document(state)
        return
    show.result(_job_line(state))
    if "error" in state:
        show.problem(state["error"]["error"], state["error"].get("hint"))
    if "result" in state:
        show.document(state["result"])


def _job_line(state: Mapping[str, Any]) -> str:
    """Describe a job, as in `01J… check succeeded 2026-01-31 10:00:00 ann`."""
    started = datetime.fromtimestamp(state["started_at"] / 1_000_000, UTC)
    name = click.style(state["state"], fg=_STATE_COLORS.get(state["state"]))
    parts = [state["job_id"], state["kind"], name, f"{started:%Y-%m-%d %H:%M:%S}", state["actor_id"] or "-"]
    return "  ".join([*parts, *([state["progress"]] if state["state"] == "running" and "progress" in state else [])])
