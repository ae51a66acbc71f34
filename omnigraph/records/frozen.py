"""Frozen dataclasses that are fast to define.

The language packages define about 150 small classes. `dataclasses` compiles six functions for each class, which would
take a quarter of a command's start-up time. `record` creates each function on first use, and compiles one template
for all classes of the same shape. It creates `__eq__` and `__hash__` together, but separately from `__init__`,
because most objects in a short-lived command are never compared. The result behaves like a frozen dataclass for
`fields`, `replace`, `match` and type checkers.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache
from types import CodeType, FunctionType
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
    for method_names in _CREATED_TOGETHER if eq else (("__init__",),):
        created_names = [method_name for method_name in method_names if method_name not in own_methods]
        for method_name in created_names:
            setattr(record_class, method_name, _LazyMethod(record_class, method_name, created_names))
    return record_class


class _LazyMethod:
    """A method of a record class that is created on first access, together with related methods."""

    __slots__ = ("_created_names", "_method_name", "_record_class")

    def __init__(self, record_class: Any, method_name: str, created_names: list[str]) -> None:
        self._record_class, self._method_name, self._created_names = record_class, method_name, created_names

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        record_class = self._record_class
        if record_class.__dict__.get(self._method_name) is self:  # otherwise, another thread has created it
            create_methods = _create_init if "__init__" in self._created_names else _create_comparison
            methods = create_methods(record_class)
            for method_name in self._created_names:
                setattr(record_class, method_name, methods[method_name])
        return record_class.__dict__[self._method_name].__get__(instance, owner)


def _create_init(record_class: Any) -> dict[str, FunctionType]:
    record_fields = fields(record_class)
    value_sources = tuple(_value_source(record_field) for record_field in record_fields)
    template = _init_template(value_sources, hasattr(record_class, "__post_init__"))
    namespace: dict[str, Any] = {"put": object.__setattr__, "MISSING": MISSING}
    for index, record_field in enumerate(record_fields):
        namespace[f"default_{index}"] = record_field.default
        namespace[f"factory_{index}"] = record_field.default_factory
    code = _name_fields(template, [record_field.name for record_field in record_fields])
    return {"__init__": FunctionType(code, namespace, "__init__", _parameter_defaults(record_fields))}


def _create_comparison(record_class: Any) -> dict[str, FunctionType]:
    compared_names = [record_field.name for record_field in fields(record_class) if record_field.compare]
    templates = _comparison_templates(len(compared_names))
    return {
        method_name: FunctionType(_name_fields(template, compared_names), {}, method_name)
        for method_name, template in templates.items()
    }


def _name_fields(template: CodeType, field_names: list[str]) -> CodeType:
    """Return a template's code with the names of a class's fields instead of `field_0`, `field_1` and so on."""
    names = {f"field_{index}": field_name for index, field_name in enumerate(field_names)}
    return template.replace(
        co_varnames=tuple([names.get(name, name) for name in template.co_varnames]),
        co_names=tuple([names.get(name, name) for name in template.co_names]),
        co_consts=tuple([names.get(constant, constant) for constant in template.co_consts]),
    )


@cache
def _init_template(value_sources: tuple[str, ...], has_post_init: bool) -> CodeType:
    """Compile `__init__` for all classes whose fields get their values in the same ways."""
    parameter_list = ["self"]
    init_lines = []
    for index, value_source in enumerate(value_sources):
        parameter_list += [f"field_{index}"] if "field_" in value_source else []
        init_lines.append(f"    put(self, 'field_{index}', {value_source.format(index)})")
    init_lines += ["    self.__post_init__()"] if has_post_init else []
    source = "\n".join((f"def __init__({', '.join(parameter_list)}):", *(init_lines or ["    pass"])))
    return _compile_functions(source)["__init__"]


@cache
def _comparison_templates(field_count: int) -> dict[str, CodeType]:
    """Compile `__eq__` and `__hash__` for all classes that compare this number of fields."""
    own_values = "".join(f"self.field_{index}, " for index in range(field_count))
    source = "\n".join(
        (
            "def __eq__(self, other):",
            "    if other.__class__ is not self.__class__:",
            "        return NotImplemented",
            f"    return ({own_values}) == ({own_values.replace('self', 'other')})",
            "def __hash__(self):",
            f"    return hash(({own_values}))",
        )
    )
    return _compile_functions(source)


def _compile_functions(source: str) -> dict[str, CodeType]:
    constants = compile(source, "<record>", "exec").co_consts
    return {constant.co_name: constant for constant in constants if isinstance(constant, CodeType)}


def _value_source(record_field: Field[Any]) -> str:
    """Return the expression for a field's value, with `{0}` for the field's number."""
    has_factory = record_field.default_factory is not MISSING
    if not record_field.init:
        return "factory_{0}()" if has_factory else "default_{0}"
    return "factory_{0}() if field_{0} is MISSING else field_{0}" if has_factory else "field_{0}"


def _parameter_defaults(record_fields: tuple[Field[Any], ...]) -> tuple[Any, ...]:
    """Return the default values of the last parameters; a parameter with a factory gets `MISSING`."""
    parameters = [record_field for record_field in record_fields if record_field.init]
    defaults = [each.default for each in parameters if _is_optional(each)]
    if not all(map(_is_optional, parameters[len(parameters) - len(defaults) :])):
        raise TypeError("a field without a default follows a field with a default")
    return tuple(defaults)


def _is_optional(record_field: Field[Any]) -> bool:
    return record_field.default is not MISSING or record_field.default_factory is not MISSING


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


_CREATED_TOGETHER = (("__init__",), ("__eq__", "__hash__"))
_SHARED_METHODS: dict[str, Any] = {
    "__repr__": _repr_record,
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_deletion,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
