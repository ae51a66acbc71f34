"""Extract signatures and fields from source code, as they are written there."""

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from textwrap import dedent
from typing import Any

LINE_LENGTH = 88
SHOWN_DECORATORS = ("classmethod", "staticmethod", "contextmanager", "asynccontextmanager")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def signature(function: Callable[..., Any], name: str, method: Callable[..., Any] | None = None) -> list[str]:
    """Return the lines of `def name(...) -> ...`, without the `self` or `cls` parameter of a method.

    >>> signature(signature, "signature")[0]
    'def signature('
    """
    node = _function_node(function)
    parameters = list(_parameters(node.args, inspect.unwrap(function), skip=method is not None))
    prefix = "async def" if _is_async(method or function, node) else "def"
    returns = f" -> {_annotation(node.returns)}" if node.returns else ""
    decorators = [f"@{one}" for one in _decorators(node)]
    line = f"{prefix} {name}({', '.join(parameters)}){returns}"
    if len(line) <= LINE_LENGTH:
        return [*decorators, line]
    lines = (f"    {parameter}," for parameter in parameters)
    return [*decorators, f"{prefix} {name}(", *lines, f"){returns}"]


def property_type(getter: Callable[..., Any]) -> str:
    """Return the annotated type of a property."""
    returns = _function_node(getter).returns
    return _annotation(returns) if returns else "Any"


def field_lines(cls: type) -> list[str]:
    """Return one line per public field of a data class, with its comment, or no lines for other classes."""
    if not hasattr(cls, "__dataclass_fields__"):
        return []
    source = dedent(inspect.getsource(cls))
    (node,) = ast.parse(source).body
    fields = node.body if isinstance(node, ast.ClassDef) else []
    return [
        _field_line(field, source.splitlines()[(field.end_lineno or 1) - 1])
        for field in fields
        if isinstance(field, ast.AnnAssign) and not ast.unparse(field.target).startswith("_")
    ]


def _field_line(field: ast.AnnAssign, last_source_line: str) -> str:
    """Return a field with its type, its default if the default is a literal, and the comment on the same line."""
    default = field.value
    shown = default is not None and not isinstance(default, ast.Call | ast.Attribute | ast.Name)
    value = f" = {_literal(default)}" if default is not None and shown else ""
    comment = last_source_line[field.end_col_offset or 0 :].strip()
    text = f"{ast.unparse(field.target)}: {_annotation(field.annotation)}{value}"
    return f"{text}  {comment}" if comment.startswith("#") and "noqa" not in comment else text


@cache
def _function_node(function: Callable[..., Any]) -> FunctionNode:
    (node,) = ast.parse(dedent(inspect.getsource(inspect.unwrap(function)))).body
    if not isinstance(node, FunctionNode):
        raise TypeError(f"{function} is not defined by `def`")
    return node


def _is_async(method: Callable[..., Any], node: FunctionNode) -> bool:
    """Return whether a call must be awaited. This is also the case if a coroutine wraps a plain function."""
    generator = any(isinstance(inner, ast.Yield) for inner in ast.walk(node))
    wrapped = inspect.iscoroutinefunction(method)
    return wrapped or (isinstance(node, ast.AsyncFunctionDef) and not generator)


def _decorators(node: FunctionNode) -> list[str]:
    names = (ast.unparse(decorator) for decorator in node.decorator_list)
    return [name for name in names if name in SHOWN_DECORATORS]


def _parameters(arguments: ast.arguments, function: Callable[..., Any], *, skip: bool) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults.extend(arguments.defaults)
    last_positional_only = len(arguments.posonlyargs) - 1
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        if not (skip and index == 0):
            yield _parameter(argument, default, function)
        if index == last_positional_only and not (skip and index == 0):
            yield "/"
    if arguments.vararg:
        yield f"*{_parameter(arguments.vararg)}"
    elif arguments.kwonlyargs or _unpacked(arguments.kwarg):
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, default, function)
    if arguments.kwarg:
        yield from _keyword_parameters(arguments.kwarg, function)


def _keyword_parameters(argument: ast.arg, function: Callable[..., Any]) -> Iterator[str]:
    """Yield `**options`, or the members of its typed dict if it has one."""
    name = _unpacked(argument)
    if name is None:
        yield f"**{_parameter(argument)}"
        return
    yield from _typed_dict_members(name, function.__globals__)


def _typed_dict_members(name: str, namespace: dict[str, Any]) -> Iterator[str]:
    """Yield the members of a typed dict with their defaults, starting with the members of its base classes."""
    (node,) = ast.parse(dedent(inspect.getsource(namespace[name]))).body
    if not isinstance(node, ast.ClassDef):
        return
    for base in map(ast.unparse, node.bases):
        if base != "TypedDict":
            yield from _typed_dict_members(base, namespace)
    for member in node.body:
        if isinstance(member, ast.AnnAssign):
            yield f"{ast.unparse(member)} = {'False' if ast.unparse(member.annotation) == 'bool' else 'None'}"


def _unpacked(argument: ast.arg | None) -> str | None:
    annotation = argument.annotation if argument else None
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Unpack":
        return ast.unparse(annotation.slice)
    return None


def _parameter(argument: ast.arg, default: ast.expr | None = None, function: Callable[..., Any] | None = None) -> str:
    annotation = f": {_annotation(argument.annotation)}" if argument.annotation else ""
    equals = " = " if annotation else "="
    value = f"{equals}{_default(default, function)}" if default is not None else ""
    return f"{argument.arg}{annotation}{value}"


def _default(default: ast.expr, function: Callable[..., Any] | None) -> str:
    """Return the text of a default value. The name of a module constant is replaced by its value."""
    if isinstance(default, ast.Name) and function is not None:
        return _quote(repr(function.__globals__[default.id]))
    return _literal(default)


def _annotation(node: ast.expr) -> str:
    """Return the text of an annotation. If the whole annotation is quoted, the quotes are removed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return _literal(node)


def _literal(node: ast.expr) -> str:
    return _quote(ast.unparse(node))


def _quote(text: str) -> str:
    return text.replace("'", '"')


def alias_definition(module_source: str, name: str) -> str:
    """Return the right-hand side of a type alias in the source code of a module.

    >>> alias_definition("Mode = Literal['a']", "Mode")
    'Literal["a"]'
    """
    for node in ast.parse(module_source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return _annotation(node.value)
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == name:
            return _annotation(node.value)
    raise ValueError(f"there is no alias {name}")
