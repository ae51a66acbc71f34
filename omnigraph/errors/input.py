"""Errors of what callers send in: values, parameters, records, plans that cannot run."""

from typing import Any

from omnigraph.errors.language import LanguageError
from omnigraph.errors.root import ClientError


class InputError(ClientError, ValueError):
    """The input is malformed."""

    sentence = "[line {line}: ]{reason}"
    hint = "correct the input"
    line: int | None = None
    reason: str | None = None


class ParameterError(LanguageError, InputError):
    """A parameter is missing, unknown or of the wrong type.

    >>> print(ParameterError(parameter="age", expected="I32", actual="string 'x'"))
    parameter '$age': expected I32, got string 'x'
    """

    sentence = "parameter '${parameter}': expected {expected}[, got {actual}]"
    hint = "give the parameter a value of its declared type"
    parameter: str | None = None
    expected: Any = None
    actual: Any = None
