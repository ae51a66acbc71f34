"""Building blocks of facets and of the facade: a base class with a handle, and delegated methods."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from omnigraph.api.error_boundary import Guarded

if TYPE_CHECKING:
    from omnigraph.api.handle import Handle
    from omnigraph.storage.store import Store

Params = ParamSpec("Params")
Answer = TypeVar("Answer")


def delegate(function: "Callable[Concatenate[Handle, Params], Answer]") -> Callable[Concatenate[Any, Params], Answer]:
    """Create a method that passes its object's handle to a function.

    The method takes its parameters, types and docstring from the function, so they are written only once.
    """

    @wraps(function)
    def method(self: Any, /, *args: Params.args, **options: Params.kwargs) -> Answer:
        return function(self._handle, *args, **options)

    return method


class Facet(Guarded):
    """A group of methods of an open graph, such as `graph.branches`."""

    __slots__ = ("_handle",)

    def __init__(self, handle: "Handle") -> None:
        self._handle = handle

    def _guarded_store(self) -> "Store":
        return self._handle.store

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._handle.describe()}>"
