"""`omnigraph completion`: scripts for completing commands, flags, files and names in a shell.

The scripts run the program with the variable `_OMNIGRAPH_COMPLETE` set, and `answer_shell` prints the completions.
Completion is silent: after an error, nothing is offered.
"""

import io
import os
from contextlib import redirect_stderr, suppress
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from . import show
from .options import shared_options

SHELLS = ("bash", "zsh", "fish", "powershell")
_VARIABLE = "_OMNIGRAPH_COMPLETE"
_POWERSHELL_SCRIPT = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $end = $cursorPosition - $wordToComplete.Length
    $words = $commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -le $end }
    $env:COMP_WORDS = ($words | ForEach-Object { $_.Extent.Text }) -join "`n"
    $env:COMP_CWORD = $wordToComplete
    $env:%(complete_var)s = "powershell_complete"
    try {
        & %(prog_name)s | ForEach-Object {
            $type, $value, $help = $_ -split "`t", 3
            if ($type -eq "plain") {
                [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $help)
            }
        }
    } finally {
        Remove-Item Env:COMP_WORDS, Env:COMP_CWORD, Env:%(complete_var)s
    }
}
"""


class PowerShellComplete(ShellComplete):
    """Completion for PowerShell, which completes files itself if nothing is offered."""

    name = "powershell"
    source_template = _POWERSHELL_SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the completed words and the incomplete last word."""
        words = [word.strip("'\"") for word in os.environ["COMP_WORDS"].split("\n")]
        return words[1:], os.environ.get("COMP_CWORD", "").strip("'\"")

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return an item's type, value and help text, separated by tabs."""
        return f"{item.type}\t{item.value}\t{item.help or item.value}"


_COMPLETERS: dict[str, type[ShellComplete]] = {
    completer.name: completer for completer in (BashComplete, ZshComplete, FishComplete, PowerShellComplete)
}


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@shared_options
def completion(shell: str) -> None:
    """Print a shell completion script.

    Load the script with `eval "$(omnigraph completion bash)"`, or save the output to a file in the
    shell's completion path, such as ~/.local/share/bash-completion/completions/omnigraph. For
    PowerShell, run `omnigraph completion powershell | Out-String | Invoke-Expression`.
    """
    show.result(_new_completer(shell).source())


def answer_shell(instruction: str) -> int:
    """Print the completions that a completion script requests, and return the exit code."""
    shell, _, action = instruction.partition("_")
    if shell not in _COMPLETERS or action not in ("complete", "source"):
        return 1
    completer = _new_completer(shell)
    text = ""
    with suppress(Exception), redirect_stderr(io.StringIO()):  # a message would end up in the line being edited
        text = completer.source() if action == "source" else _complete_line(completer)
    click.echo(text.encode())
    return 0


def _new_completer(shell: str) -> ShellComplete:
    from .main import cli

    return _COMPLETERS[shell](cli, {}, "omnigraph", _VARIABLE)


def _complete_line(completer: ShellComplete) -> str:
    from .completion_values import complete_words
    from .main import cli

    words, incomplete = completer.get_completion_args()
    items = complete_words(cli, words, incomplete, _find_names)
    return "\n".join(completer.format_completion(item) for item in items)


def _find_names(context: click.Context) -> Any:
    """Return the names in the graph that the command line refers to."""
    from .address import GraphAddress, resolve_root
    from .completion_names import find_names
    from .completion_values import find_graph_argument

    root = resolve_root(GraphAddress(find_graph_argument(context), profile=context.params.get("profile")))
    return find_names(root.uri, is_local=root.is_local)
