"""Raise an error if `graph.branch(..)` is used as a graph, without a `with` statement.

The branch exists only in the block, so a call on the object itself would have no graph to run on. These classes only
check how a block is used. Each one wraps the context manager that does the work at the start and the end of the block.
"""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, TypeVar

from omnigraph.errors import UsageError

Yielded_co = TypeVar("Yielded_co", covariant=True)
_CHECKOUT_HINT = "to use a branch without a block, call graph.branches.create(…) and then graph.checkout(…)"


class BlockGuard(AbstractContextManager[Yielded_co]):
    """A `with` block on a branch, which can be entered only once."""

    def __init__(self, name: str, block: AbstractContextManager[Yielded_co]) -> None:
        self._name, self._block, self._is_used = name, block, False

    def __enter__(self) -> Yielded_co:
        _require_unused(self._is_used)
        self._is_used = True
        return self._block.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._block.__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<branch block: with graph.branch({self._name!r}) as work>"

    def __getattr__(self, attribute: str) -> Any:
        raise _missing_attribute(self, attribute, "with")


class AsyncBlockGuard(AbstractAsyncContextManager[Yielded_co]):
    """An `async with` block on a branch, which can be entered only once."""

    def __init__(self, name: str, block: AbstractAsyncContextManager[Yielded_co]) -> None:
        self._name, self._block, self._is_used = name, block, False

    async def __aenter__(self) -> Yielded_co:
        _require_unused(self._is_used)
        self._is_used = True
        return await self._block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._block.__aexit__(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<branch block: async with graph.branch({self._name!r}) as work>"

    def __getattr__(self, attribute: str) -> Any:
        raise _missing_attribute(self, attribute, "async with")


def _require_unused(is_used: bool) -> None:
    if is_used:
        raise UsageError(reason="a branch block can be used only once", hint="call graph.branch(…) again")


def _missing_attribute(block: BlockGuard[Any] | AsyncBlockGuard[Any], attribute: str, keywords: str) -> Exception:
    """Return the error for an attribute that a block lacks, with a helpful message if graphs have that attribute.

    `copy` looks for special methods in a block that has no name yet.
    """
    from omnigraph.api.surface import GraphSurface

    if attribute.startswith("_") or not hasattr(GraphSurface, attribute):
        return AttributeError(f"'{type(block).__name__}' object has no attribute '{attribute}'")
    statement = f"{keywords} graph.branch({block._name!r}) as work"
    return UsageError(
        reason=f"graph.branch(…) is not a graph: use `{statement}:`, and then work.{attribute}", hint=_CHECKOUT_HINT
    )
