"""`omnigraph completion`: shell completion of commands, flags and files."""

import click

from . import show
from .options import shared_options


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@shared_options
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    Load the script with `eval "$(omnigraph completion bash)"`, or save the output to a file in the
    completion path of the shell, such as ~/.local/share/bash-completion/completions/omnigraph.
    """
    from click.shell_completion import get_completion_class

    from .main import cli

    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"shell completion is not available for {shell}")
    show.result(completion_class(cli, {}, "omnigraph", "_OMNIGRAPH_COMPLETE").source())
