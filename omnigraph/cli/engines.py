"""Engine options for commands that can run on Spark."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
_ENGINE_NAMES = ("auto", "spark", "local")


def engine_options(spark_condition: str) -> Callable[[Command], Command]:
    """Add `--engine`, `--master` and `--remote`; `spark_condition` describes when `auto` uses Spark."""

    def add_options(command: Command) -> Command:
        remote_option = click.option("--remote", metavar="URL", help="Spark Connect URL, such as sc://host")
        master_option = click.option("--master", metavar="URL", help="Spark master, such as spark://host:7077")
        engine_option = click.option(
            "--engine",
            type=click.Choice(_ENGINE_NAMES),
            default="auto",
            show_default=True,
            help=f"Where to run; auto uses Spark {spark_condition}",
        )
        return engine_option(master_option(remote_option(command)))

    return add_options


def engine_arguments(engine: str, master: str | None, remote: str | None) -> dict[str, Any]:
    """Return the engine options as arguments for a graph method; a Spark URL implies the Spark engine."""
    if master is None and remote is None:
        return {"engine": engine}
    if engine == "local":
        raise click.UsageError("--engine local cannot be combined with --master or --remote")
    return {"engine": "spark", "spark": open_spark_session(master, remote)}


def reject_spark_on_server() -> None:
    """Raise an error if the user selected Spark for a graph on a server: Spark must read the graph's files itself."""
    parameters = click.get_current_context().params
    if parameters.get("engine") == "spark" or parameters.get("master") or parameters.get("remote"):
        from .remote.graph import not_supported

        raise not_supported("--engine spark")


def open_spark_session(master: str | None, remote: str | None) -> Any:
    """Open a Spark session on the given master or Spark Connect server; return None if neither is given."""
    if master is None and remote is None:
        return None
    from omnigraph.spark.session import spark_session

    return spark_session(master=master, remote=remote)
