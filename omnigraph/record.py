"""Frozen dataclasses that are fast to define.

The language packages define about 150 small classes. `dataclasses` compiles six functions for each,
which took a quarter of the start-up time of a command. `record` compiles all of them in one go.
The result is a frozen dataclass as far as `fields`, `replace`, `match` and type checkers can tell.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform, overload

Class = TypeVar("Class", bound=type)


@overload
def record(cls: Class, /) -> Class: ...
@overload
def record(*, slots: bool = True) -> Callable[[Class], Class]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, slots: bool = True) -> Any:
    """Turn a class into a frozen dataclass; `slots=False` allows cached properties.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), hash(Point(1)) == hash(Point(1))
    (Point(x=1, y=0), True, True)
    >>> Point(1).x = 2
    Traceback (most recent call last):
    dataclasses.FrozenInstanceError: cannot assign to field 'x'
    """
    return _make(cls, slots) if cls is not None else lambda given: _make(given, slots)


def _make(cls: Any, slots: bool) -> Any:
    made = dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    for name, method in _methods(fields(made), hasattr(made, "__post_init__")).items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made


def _methods(found: tuple[Field[Any], ...], checked: bool) -> dict[str, Any]:
    known: dict[str, Any] = {"put": object.__setattr__}
    exec(_source(found, known, checked), known)  # noqa: S102 - the text is built here from field names
    written = {name: known[name] for name in ("__init__", "__eq__", "__hash__")}
    return written | {
        "__repr__": _repr,
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
        "__getstate__": _state,
        "__setstate__": _restore,
    }


def _source(found: tuple[Field[Any], ...], known: dict[str, Any], checked: bool) -> str:
    given = ", ".join(_parameter(one, known) for one in found if one.init)
    puts = [f"    put(self, {one.name!r}, {_value(one, known)})" for one in found]
    puts += ["    self.__post_init__()"] if checked else []
    compared = [one.name for one in found if one.compare]
    mine = "".join(f"self.{name}, " for name in compared)
    yours = "".join(f"other.{name}, " for name in compared)
    return "\n".join(
        (
            f"def __init__(self{', ' if given else ''}{given}):",
            *(puts or ["    pass"]),
            "def __eq__(self, other):",
            "    if other.__class__ is not self.__class__:",
            "        return NotImplemented",
            f"    return ({mine}) == ({yours})",
            "def __hash__(self):",
            f"    return hash(({mine}))",
        )
    )


def _parameter(one: Field[Any], known: dict[str, Any]) -> str:
    if one.default is not MISSING:
        known[f"default_{one.name}"] = one.default
        return f"{one.name}=default_{one.name}"
    return f"{one.name}=MADE" if _factory(one, known) else one.name


def _value(one: Field[Any], known: dict[str, Any]) -> str:
    if not one.init:
        known[f"default_{one.name}"] = one.default
        return f"factory_{one.name}()" if _factory(one, known) else f"default_{one.name}"
    if _factory(one, known):
        return f"factory_{one.name}() if {one.name} is MADE else {one.name}"
    return one.name


def _factory(one: Field[Any], known: dict[str, Any]) -> bool:
    if one.default_factory is MISSING:
        return False
    known["MADE"] = MISSING
    known[f"factory_{one.name}"] = one.default_factory
    return True


def _repr(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__.rpartition('.')[2]}({shown})"


def _refuse_assignment(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
