"""Building blocks for `Graph` and its facets: a base class with a handle, and delegated methods."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from omnigraph.api.error_boundary import Guarded, guarded

if TYPE_CHECKING:
    from omnigraph.api.handle import Handle
    from omnigraph.storage.store import Store

Params = ParamSpec("Params")
Answer = TypeVar("Answer")


def delegate(
    load: "Callable[[], Callable[Concatenate[Handle, Params], Answer]]",
) -> Callable[Concatenate[Any, Params], Answer]:
    """Create a method that passes its object's handle to a function, which `load` imports on first use.

    The method takes its parameters, types and docstring from the function, so they are written only once.
    """
    deferred_method: Any = _DeferredMethod(load)
    return deferred_method  # type: ignore[no-any-return]


class _DeferredMethod:
    """A placeholder that loads its function on first access, and then replaces itself on the class with the method."""

    def __init__(self, load: Callable[[], Callable[..., Any]]) -> None:
        self._load = load

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        method: Any = guarded(_make_method(self._load()))
        setattr(self._owner, self._name, method)
        return method.__get__(instance, owner)


def _make_method(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def method(self: Any, /, *args: Any, **options: Any) -> Any:
        return function(self._handle, *args, **options)

    return method


class Facet(Guarded):
    """A group of methods on an open graph, such as `graph.branches`."""

    __slots__ = ("_handle",)

    def __init__(self, handle: "Handle") -> None:
        self._handle = handle

    def _guarded_store(self) -> "Store":
        return self._handle.store

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._handle.describe()}>"
