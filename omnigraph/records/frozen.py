"""Frozen dataclasses that are fast to define.

The language packages define about 150 small classes. `dataclasses` compiles six functions for each class, which would
take a quarter of a command's start-up time. `record` compiles a function when it is first used. It compiles `__eq__`
and `__hash__` together, but separately from `__init__`, because most objects in a short-lived command are never
compared. The result behaves like a frozen dataclass for `fields`, `replace`, `match` and type checkers.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform, overload

RecordClass = TypeVar("RecordClass", bound=type)


@overload
def record(cls: RecordClass, /) -> RecordClass: ...
@overload
def record(*, slots: bool = True, eq: bool = True) -> Callable[[RecordClass], RecordClass]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, slots: bool = True, eq: bool = True) -> Any:
    """Turn a class into a frozen dataclass. Pass `slots=False` to allow cached properties.

    Pass `eq=False` to compare objects by identity.

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
    return (
        _build_record_class(cls, slots, eq)
        if cls is not None
        else lambda decorated_class: _build_record_class(decorated_class, slots, eq)
    )


def _build_record_class(cls: Any, slots: bool, eq: bool) -> Any:
    record_class = dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    own_methods = cls.__dict__
    for method_name, method in _SHARED_METHODS.items():
        if method_name not in own_methods:
            setattr(record_class, method_name, method)
    for method_names in _COMPILED_TOGETHER if eq else (("__init__",),):
        compiled_names = [method_name for method_name in method_names if method_name not in own_methods]
        for method_name in compiled_names:
            setattr(record_class, method_name, _UncompiledMethod(record_class, method_name, compiled_names))
    return record_class


class _UncompiledMethod:
    """A method of a record class that is compiled on first access, together with related methods."""

    __slots__ = ("_compiled_names", "_method_name", "_record_class")

    def __init__(self, record_class: Any, method_name: str, compiled_names: list[str]) -> None:
        self._record_class, self._method_name, self._compiled_names = record_class, method_name, compiled_names

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        record_class = self._record_class
        if record_class.__dict__.get(self._method_name) is self:  # otherwise, another thread has compiled it
            methods = _compile_methods(record_class, self._compiled_names)
            for method_name in self._compiled_names:
                setattr(record_class, method_name, methods[method_name])
        return record_class.__dict__[self._method_name].__get__(instance, owner)


def _compile_methods(record_class: Any, method_names: list[str]) -> dict[str, Any]:
    namespace: dict[str, Any] = {"put": object.__setattr__}
    if "__init__" in method_names:
        source = _init_source(fields(record_class), namespace, hasattr(record_class, "__post_init__"))
    else:
        source = _comparison_source(fields(record_class))
    exec(source, namespace)  # noqa: S102 - the text is built here from field names
    return namespace


def _init_source(record_fields: tuple[Field[Any], ...], namespace: dict[str, Any], has_post_init: bool) -> str:
    parameter_list = ", ".join(
        _parameter_source(record_field, namespace) for record_field in record_fields if record_field.init
    )
    init_lines = [
        f"    put(self, {record_field.name!r}, {_value_source(record_field, namespace)})"
        for record_field in record_fields
    ]
    init_lines += ["    self.__post_init__()"] if has_post_init else []
    signature = f"def __init__(self{', ' if parameter_list else ''}{parameter_list}):"
    return "\n".join((signature, *(init_lines or ["    pass"])))


def _comparison_source(record_fields: tuple[Field[Any], ...]) -> str:
    compared_names = [record_field.name for record_field in record_fields if record_field.compare]
    own_values = "".join(f"self.{field_name}, " for field_name in compared_names)
    other_values = "".join(f"other.{field_name}, " for field_name in compared_names)
    return "\n".join(
        (
            "def __eq__(self, other):",
            "    if other.__class__ is not self.__class__:",
            "        return NotImplemented",
            f"    return ({own_values}) == ({other_values})",
            "def __hash__(self):",
            f"    return hash(({own_values}))",
        )
    )


def _parameter_source(record_field: Field[Any], namespace: dict[str, Any]) -> str:
    if record_field.default is not MISSING:
        namespace[f"default_{record_field.name}"] = record_field.default
        return f"{record_field.name}=default_{record_field.name}"
    return f"{record_field.name}=MADE" if _register_factory(record_field, namespace) else record_field.name


def _value_source(record_field: Field[Any], namespace: dict[str, Any]) -> str:
    if not record_field.init:
        namespace[f"default_{record_field.name}"] = record_field.default
        return (
            f"factory_{record_field.name}()"
            if _register_factory(record_field, namespace)
            else f"default_{record_field.name}"
        )
    if _register_factory(record_field, namespace):
        return f"factory_{record_field.name}() if {record_field.name} is MADE else {record_field.name}"
    return record_field.name


def _register_factory(record_field: Field[Any], namespace: dict[str, Any]) -> bool:
    if record_field.default_factory is MISSING:
        return False
    namespace["MADE"] = MISSING
    namespace[f"factory_{record_field.name}"] = record_field.default_factory
    return True


def _repr_record(self: Any) -> str:
    field_texts = ", ".join(
        f"{record_field.name}={getattr(self, record_field.name)!r}"
        for record_field in fields(self)
        if record_field.repr
    )
    return f"{type(self).__qualname__.rpartition('.')[2]}({field_texts})"


def _refuse_assignment(self: Any, field_name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {field_name!r}")


def _refuse_deletion(self: Any, field_name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {field_name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, record_field.name) for record_field in fields(self)]


def _set_state(self: Any, field_values: list[Any]) -> None:
    for record_field, value in zip(fields(self), field_values, strict=True):
        object.__setattr__(self, record_field.name, value)


_COMPILED_TOGETHER = (("__init__",), ("__eq__", "__hash__"))
_SHARED_METHODS: dict[str, Any] = {
    "__repr__": _repr_record,
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_deletion,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
