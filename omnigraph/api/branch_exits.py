"""What a `with graph.branch(..)` block can do with its branch at the end, on local and remote graphs."""

from typing import Literal

from omnigraph.errors import InputError

BranchExit = Literal["keep", "merge", "drop"]


def check_branch_exit(on_exit: str) -> None:
    """Raise `InputError` unless `on_exit` is one of the ways to end a block.

    >>> check_branch_exit("merge")
    """
    if on_exit not in ("keep", "merge", "drop"):
        raise InputError(f"unknown on_exit '{on_exit}'", reason='expected "keep", "merge" or "drop"')
