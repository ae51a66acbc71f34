"""Where a command runs: the options of those that may run on Spark, and what they mean."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
_ENGINES = ("auto", "spark", "local")


def engine_options(when: str) -> Callable[[Command], Command]:
    """`--engine`, `--master` and `--remote`; `when` says when auto takes Spark."""

    def added(command: Command) -> Command:
        remote = click.option(
            "--remote", metavar="URL", help="Run through Spark Connect, such as sc://host."
        )
        master = click.option(
            "--master", metavar="URL", help="Run on this Spark, such as spark://host:7077."
        )
        engine = click.option(
            "--engine",
            type=click.Choice(_ENGINES),
            default="auto",
            show_default=True,
            help=f"Where it runs; auto: Spark {when}.",
        )
        return engine(master(remote(command)))

    return added


def chosen(engine: str, master: str | None, remote: str | None) -> dict[str, Any]:
    """What a graph takes for these options; to name a Spark is to choose it."""
    if master is None and remote is None:
        return {"engine": engine}
    if engine == "local":
        raise click.UsageError("--engine local runs in this process: give no --master or --remote")
    return {"engine": "spark", "spark": session_at(master, remote)}


def session_at(master: str | None, remote: str | None) -> Any:
    """A session on the Spark that is named, None when none is."""
    if master is None and remote is None:
        return None
    from omnigraph.pipeline.session import spark_session

    return spark_session(master=master, remote=remote)
