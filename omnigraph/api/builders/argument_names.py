"""In errors about a generated query's parameters, replace the parameter names with the names of the caller's arguments.

The callers of `update`, `where` or `limit` have never seen the generated query, so an error about its parameter `$p0`
would not tell them which of their values to correct.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from omnigraph.errors import ParameterError


@contextmanager
def name_arguments(arguments_by_parameter: Mapping[str, str]) -> Iterator[None]:
    """Replace generated parameter names in a `ParameterError` with the names of the caller's arguments.

    >>> with name_arguments({"p0": "set: age"}):
    ...     raise ParameterError(parameter="p0", expected="I32", actual="string 'x'")
    Traceback (most recent call last):
    omnigraph.errors.input.ParameterError: set: age: expected I32, got string 'x'
    """
    try:
        yield
    except ParameterError as error:
        _rename_parameters(error, arguments_by_parameter)
        raise


def _rename_parameters(error: ParameterError, arguments_by_parameter: Mapping[str, str]) -> None:
    texts = {f"parameter '${name}': ": f"{argument}: " for name, argument in arguments_by_parameter.items()}
    messages = [_rename_start(message, texts) for message in error.details.get("problems", (error.message,))]
    error.message = "; ".join(messages)
    if "problems" in error.details:
        error.details["problems"] = tuple(messages)
    argument = arguments_by_parameter.get(error.parameter or "")
    if argument is not None:
        error.parameter = error.details["parameter"] = argument


def _rename_start(message: str, texts: Mapping[str, str]) -> str:
    """Replace a parameter name only at the start of a message, because the rest may quote the caller's values."""
    start = next((text for text in texts if message.startswith(text)), "")
    return texts.get(start, "") + message.removeprefix(start)
