"""The error boundary of the public API: storage failures leave it as errors of `omnigraph.errors`.

Owns the translation of Lance exceptions and of the signals that lower layers send each other.
Defining a `Guarded` class wraps each of its public methods, so a new method cannot be forgotten.
Errors of callers and bugs in our own code pass unchanged.
"""

from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from types import FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar

from omnigraph.errors import ConcurrentCommit, Effect, OmnigraphError, StorageError

if TYPE_CHECKING:
    from omnigraph.storage.store import Store

Call = TypeVar("Call", bound=Callable[..., Any])
_SPECIAL = frozenset(
    f"__{name}__"
    for name in ("bool", "call", "contains", "enter", "exit", "getitem", "iter", "len", "next")
) | {"_repr_html_", "__repr__", "__arrow_c_stream__"}


class Guarded:
    """A class whose public methods and properties raise typed errors when storage fails."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if name in _SPECIAL or not name.startswith("_"):
                setattr(cls, name, _guarded_member(member))

    def _guarded_store(self) -> "Store | None":
        """Return the store that methods of this object may write to; None if they only read."""
        return None


def guarded(call: Call) -> Call:
    """Wrap a function or method so that it raises typed errors when storage fails."""

    @wraps(call)
    def wrapped(*args: Any, **options: Any) -> Any:
        store = args[0]._guarded_store() if args and isinstance(args[0], Guarded) else None
        before = store.effects.publishes if store is not None else 0
        try:
            result = call(*args, **options)
        except BaseException as error:
            typed = _translate(error, store, before)
            if typed is None:
                raise
            raise typed from error
        return _guarded_iterator(result) if isinstance(result, GeneratorType) else result

    wrapped.__dict__["guarded"] = True
    return wrapped  # type: ignore[return-value]


def _guarded_member(member: Any) -> Any:
    if isinstance(member, property):
        return property(member.fget and _guarded_once(member.fget), member.fset, member.fdel)
    if isinstance(member, cached_property):
        member.func = _guarded_once(member.func)
    return _guarded_once(member) if isinstance(member, FunctionType) else member


def _guarded_once(call: Callable[..., Any]) -> Callable[..., Any]:
    # A dataclass with slots is defined twice; the second class gets the already wrapped methods.
    return call if call.__dict__.get("guarded") else guarded(call)


def _guarded_iterator(items: Iterator[Any]) -> Iterator[Any]:
    """Translate errors raised while the items are consumed; nothing is written meanwhile."""
    try:
        yield from items
    except BaseException as error:
        typed = _translate(error, None, 0)
        if typed is None:
            raise
        raise typed from error


def _translate(error: BaseException, store: "Store | None", before: int) -> OmnigraphError | None:
    """Return the error that the caller sees instead; None if the original error passes."""
    if isinstance(error, OmnigraphError) and not isinstance(error, FileNotFoundError):
        return None
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | StopIteration):
        return None
    from omnigraph.storage.cell import LostSwap, UnsureSwap
    from omnigraph.storage.failures import AbsentError
    from omnigraph.storage.native import native_failure

    published = store is not None and store.effects.publishes != before
    effect: Effect = "unknown" if published else "none"
    if isinstance(error, AbsentError):
        return _removed(error, effect)
    if isinstance(error, LostSwap):
        return ConcurrentCommit("another process changed the branch concurrently", effect=effect)
    if isinstance(error, UnsureSwap):
        return StorageError(f"the store did not confirm the write: {error}", effect="unknown")
    return native_failure(error, effect=effect)


def _removed(error: OmnigraphError, effect: Effect) -> ConcurrentCommit:
    """Return the error for an object that existed a moment ago and is now proven absent."""
    return ConcurrentCommit(
        f"{error.message}: another process removed it concurrently",
        effect=effect,
        hint="read again and retry; if it fails again, `omnigraph check` lists what is missing",
    )
