"""The query string of a request, checked against the parameters of its route."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from omnigraph.errors import InputError
from omnigraph.server.route_model import Route, UrlParameter

_MAX_PARAMETERS = 1000
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def read_query_values(route: Route, query_string: bytes, *, ignores_unknown: bool = False) -> Mapping[str, Any]:
    """Return the values of a query string by parameter name. A parameter that may be repeated has a list of values.

    Raises `InputError` for a parameter that is missing, malformed or wrongly repeated, and for an unknown one unless
    `ignores_unknown` is true.

    >>> from omnigraph.server.route_model import Route
    >>> parameters = (UrlParameter("limit", "integer"), UrlParameter("type", repeated=True))
    >>> route = Route("GET", "/x", "x", "", "", parameters=parameters)
    >>> dict(read_query_values(route, b"limit=3&type=A&type=B"))
    {'limit': 3, 'type': ['A', 'B']}
    """
    if not query_string and not route.parameters:
        return {}
    values = _read_texts(query_string)
    parameters = {parameter.name: parameter for parameter in route.parameters}
    if route.takes_any_parameter:
        parameters |= {name: UrlParameter(name) for name in values if name not in parameters}
    unknown = next((name for name in values if name not in parameters), None)
    if unknown is not None and not ignores_unknown:
        expected = ", ".join(parameters) or "none"
        raise InputError(
            "unknown query parameter", reason="unknown parameter", hint=f"available parameters: {expected}"
        )
    missing = next((name for name, parameter in parameters.items() if parameter.required and name not in values), None)
    if missing is not None:
        raise InputError(f"the query parameter '{missing}' is required", reason="missing parameter")
    return {name: _convert_texts(parameters[name], texts) for name, texts in values.items() if name in parameters}


def _read_texts(query_string: bytes) -> dict[str, list[str]]:
    if not query_string:
        return {}
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS
        )
    except ValueError:  # also raised for bytes that are not UTF-8
        raise InputError("the query string is malformed", reason="malformed query string") from None
    values: dict[str, list[str]] = {}
    for name, text in pairs:
        values.setdefault(name, []).append(text)
    return values


def _convert_texts(parameter: UrlParameter, texts: Sequence[str]) -> Any:
    if parameter.repeated:
        return [_convert_text(parameter, text) for text in texts]
    if len(texts) > 1:
        raise InputError(f"the query parameter '{parameter.name}' is specified twice", reason="repeated parameter")
    return _convert_text(parameter, texts[0])


def _convert_text(parameter: UrlParameter, text: str) -> Any:
    if parameter.choices and text not in parameter.choices:
        expected = ", ".join(parameter.choices)
        raise InputError(f"the query parameter '{parameter.name}' must be one of {expected}", reason="invalid value")
    try:
        if parameter.type == "integer":
            return _parse_integer(text)
        if parameter.type == "number":
            return float(text)
        return _BOOLEANS[text.lower()] if parameter.type == "boolean" else text
    except (ValueError, KeyError):
        message = f"the query parameter '{parameter.name}' is not a valid {parameter.type}"
        raise InputError(message, reason="invalid value") from None


def _parse_integer(text: str) -> int:
    if len(text) > 19:
        raise ValueError(text)
    return int(text)
