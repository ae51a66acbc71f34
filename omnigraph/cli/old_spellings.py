"""Commands and flags from earlier releases, and their new spellings.

This module only explains old spellings and never executes them.
"""

from collections.abc import Sequence

_OLD_COMMANDS = {"read": "query", "change": "mutate", "ingest": "load"}
# Flags by command; `*` means all commands.
_OLD_FLAGS = {
    ("query", "--schema"): "to check queries, use `omnigraph lint --schema FILE --query FILE`",
    ("check", "--query"): "`check` verifies a graph; to check queries, use `omnigraph lint`",
    ("check", "--schema"): "`check` verifies a graph; to check queries, use `omnigraph lint`",
    ("export", "--jsonl"): "`export` writes NDJSON by default; omit --jsonl",
    ("*", "--target"): "use --store URI or --profile NAME instead of --target",
    ("*", "--alias"): "use `omnigraph alias NAME` instead of --alias",
    ("*", "--cluster-graph"): "use --graph instead of --cluster-graph",
}


def explain_old_command(name: str) -> str | None:
    """Return the new spelling of a command from an earlier release, or None.

    >>> explain_old_command("read")
    "'read' is now `omnigraph query`"
    """
    new_name = _OLD_COMMANDS.get(name)
    return f"'{name}' is now `omnigraph {new_name}`" if new_name is not None else None


def explain_old_flag(command_name: str, arguments: Sequence[str], accepted_flags: set[str]) -> str | None:
    """Return an explanation if a command's arguments contain a flag from an earlier release, or None if not.

    >>> explain_old_flag("export", ["g", "--jsonl"], set())
    '`export` writes NDJSON by default; omit --jsonl'
    """
    flags = {argument.partition("=")[0] for argument in arguments if argument.startswith("--")}
    for (name, flag), explanation in _OLD_FLAGS.items():
        if name in (command_name, "*") and flag in flags and flag not in accepted_flags:
            return explanation
    return None
