"""Encode errors, problems and violations as JSON, so tasks can report them to the driver.

This encoding is specific to Spark; within one process, errors and violations are passed as objects. A value of a type
that JSON lacks becomes an object with one member, such as `{"$date": "2024-01-31"}`.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from omnigraph.errors import ClientError, InternalError
from omnigraph.ingest.problem import LoadProblem
from omnigraph.rules.violation import Violation
from omnigraph.values.table_key import TableKey

_ERROR_SETTINGS = ("hint", "effect", "retryable", "status", "request_id")
# A datetime is also a date, so datetimes are tested first. A table key is also a string, so strings are tested last.
_SCALAR_CODECS: Mapping[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    bytes: ("$bytes", lambda value: b64encode(value).decode(), b64decode),
    datetime: ("$datetime", datetime.isoformat, datetime.fromisoformat),
    date: ("$date", date.isoformat, date.fromisoformat),
    time: ("$time", time.isoformat, time.fromisoformat),
    timedelta: (
        "$timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: timedelta(*parts),
    ),
    Decimal: ("$decimal", str, Decimal),
    TableKey: ("$table_key", str, TableKey),
}
_DECODERS = {name: decode for name, _, decode in _SCALAR_CODECS.values()}


def encode_json(value: Any) -> str:
    """Encode a value as a JSON string from which `decode_json` can restore it with its original types.

    >>> decode_json(encode_json({"day": date(2024, 1, 31), "pair": (1, b"x")}))
    {'day': datetime.date(2024, 1, 31), 'pair': (1, b'x')}
    """
    return json.dumps(_tag_value(value))


def decode_json(text: str) -> Any:
    """Restore a value from its JSON string."""
    return _untag_value(json.loads(text))


def _tag_value(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list):
        return [_tag_value(item) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [_tag_value(item) for item in value]}
    if isinstance(value, Mapping):
        return {"$map": [[_tag_value(key), _tag_value(item)] for key, item in value.items()]}
    for value_type, (name, encode, _) in _SCALAR_CODECS.items():
        if isinstance(value, value_type):
            return {name: encode(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InternalError(f"a task cannot report a value of type {type(value).__name__}")


def _untag_value(tagged: Any) -> Any:
    if isinstance(tagged, list):
        return [_untag_value(item) for item in tagged]
    if not isinstance(tagged, dict):
        return tagged
    ((name, content),) = tagged.items()
    if name == "$map":
        return {_untag_value(key): _untag_value(item) for key, item in content}
    if name == "$tuple":
        return tuple(_untag_value(item) for item in content)
    return _DECODERS[name](content)


def error_members(error: ClientError) -> dict[str, Any]:
    """Return an error as a JSON object with its class, message, details and remaining arguments."""
    settings = {name: error.__dict__[name] for name in _ERROR_SETTINGS if name in error.__dict__}
    return {"class": type(error).__name__, "message": error.message, "facts": error.details, "settings": settings}


def error_from_members(members: Mapping[str, Any]) -> ClientError:
    """Restore an error; an unknown class means that the tasks run a different version of this package."""
    error_class = _client_errors().get(members["class"])
    if error_class is None:
        raise InternalError(f"a task reported an unknown error class: {members['class']!r}")
    return error_class(members["message"], **members["settings"], **members["facts"])


def _client_errors() -> dict[str, type[ClientError]]:
    error_classes = [ClientError]
    for error_class in error_classes:  # the list grows during iteration
        error_classes += error_class.__subclasses__()
    return {error_class.__name__: error_class for error_class in error_classes}


def problem_members(problem: LoadProblem) -> dict[str, Any]:
    """Return a problem as a JSON object."""
    members = {field.name: getattr(problem, field.name) for field in fields(problem)}
    return {**members, "error": error_members(problem.error)}


def problem_from_members(members: Mapping[str, Any]) -> LoadProblem:
    """Restore a problem."""
    return LoadProblem(**{**members, "error": error_from_members(members["error"])})


def violation_members(violation: Violation) -> dict[str, Any]:
    """Return a violation as a JSON object."""
    return {field.name: getattr(violation, field.name) for field in fields(violation)}


def violation_from_members(members: Mapping[str, Any]) -> Violation:
    """Restore a violation."""
    return Violation(**members)
