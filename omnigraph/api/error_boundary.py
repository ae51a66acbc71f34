"""The public API's error boundary, which raises storage failures as errors from `omnigraph.errors`.

This module translates Lance exceptions and internal signals from lower layers. When a subclass of `Guarded` is defined,
all of its public methods are wrapped, so new methods are always covered. Exceptions raised by callers' code, or by bugs
in this package, pass through unchanged.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from types import FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar

from omnigraph.errors import ConcurrentCommit, Effect, OmnigraphError, StorageError
from omnigraph.records.cached_property import cached_property

if TYPE_CHECKING:
    from omnigraph.storage.store import Store

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_GUARDED_SPECIAL_METHODS = frozenset(
    f"__{name}__" for name in ("bool", "call", "contains", "enter", "exit", "getitem", "iter", "len", "next")
) | {"_repr_html_", "__repr__", "__arrow_c_stream__"}


class Guarded:
    """A class whose public methods and properties raise typed errors when storage fails."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for member_name, member in list(vars(cls).items()):
            if member_name in _GUARDED_SPECIAL_METHODS or not member_name.startswith("_"):
                setattr(cls, member_name, _guard_member(member))

    def _guarded_store(self) -> "Store | None":
        """Return the store that this object's methods may write to, or None if they only read."""
        return None


def guarded(function: FunctionT) -> FunctionT:
    """Wrap a function or method so that it raises typed errors when storage fails."""

    @wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        store = args[0]._guarded_store() if args and isinstance(args[0], Guarded) else None
        publishes_before = store.effects.publish_count if store is not None else 0
        try:
            returned = function(*args, **options)
        except BaseException as error:
            public_error = _translate_error(error, store, publishes_before)
            if public_error is None:
                raise
            raise public_error from error
        return _guard_iterator(returned) if isinstance(returned, GeneratorType) else returned

    wrapped.__dict__["guarded"] = True
    return wrapped  # type: ignore[return-value]


def _guard_member(member: Any) -> Any:
    if isinstance(member, property):
        return property(member.fget and _guard_unless_guarded(member.fget), member.fset, member.fdel)
    if isinstance(member, cached_property):
        member.func = _guard_unless_guarded(member.func)
    return _guard_unless_guarded(member) if isinstance(member, FunctionType) else member


def _guard_unless_guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    # A dataclass with slots is created twice, and the second class already has wrapped methods.
    return function if function.__dict__.get("guarded") else guarded(function)


def _guard_iterator(items: Iterator[Any]) -> Iterator[Any]:
    """Yield the items, translating errors that are raised during iteration. Iteration never writes."""
    try:
        yield from items
    except BaseException as error:
        public_error = _translate_error(error, None, 0)
        if public_error is None:
            raise
        raise public_error from error


def _translate_error(error: BaseException, store: "Store | None", publishes_before: int) -> OmnigraphError | None:
    """Return the error to raise in place of `error`, or None if `error` should pass through unchanged."""
    if isinstance(error, OmnigraphError) and not isinstance(error, FileNotFoundError):
        return None
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | StopIteration):
        return None
    from omnigraph.storage.failures import AbsentError
    from omnigraph.storage.lance_errors import lance_storage_error
    from omnigraph.storage.manifest_cell import SwapConflict, SwapOutcomeUnknown

    has_published = store is not None and store.effects.publish_count != publishes_before
    effect: Effect = "unknown" if has_published else "none"
    if isinstance(error, AbsentError):
        return _removed_object_error(error, effect)
    if isinstance(error, SwapConflict):
        return ConcurrentCommit("another process changed the branch concurrently", effect=effect)
    if isinstance(error, SwapOutcomeUnknown):
        return StorageError(f"the store did not confirm the write: {error}", effect="unknown")
    return lance_storage_error(error, effect=effect)


def _removed_object_error(error: OmnigraphError, effect: Effect) -> ConcurrentCommit:
    """Return the error for an object that another process removed during the operation."""
    return ConcurrentCommit(
        f"{error.message}: another process removed the object concurrently",
        effect=effect,
        hint="read the current state and retry; if the error persists, run `omnigraph check` to list missing files",
    )
