"""The OpenAPI 3.1 document, generated from the table of routes and the models."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

import omnigraph

from .models.failures import ErrorOutput
from .route_model import FORM, JSON, Route, UrlParameter

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_REFERENCE = "#/components/schemas/{name}"
STATUS_MEANINGS = {
    302: "The blob is stored elsewhere",
    304: "Not modified",
    206: "Part of the blob",
    400: "The request is invalid",
    401: "The token is missing or unknown",
    403: "The caller does not have the required permission",
    404: "Not found",
    406: "None of the accepted media types is available",
    408: "The request did not arrive in time",
    409: "Conflict with the current state",
    410: "A cleanup has removed the required history",
    412: "The precondition failed",
    413: "A limit was exceeded",
    415: "Unsupported media type",
    416: "The range is outside the blob",
    424: "An external source failed",
    429: "Too many concurrent requests",
    500: "Internal error",
    503: "Try again later",
}


def build_openapi(routes: Iterable[Route], *, with_security: bool = True) -> dict[str, Any]:
    """Return the document for these routes. An open server has no security scheme."""
    routes = list(routes)
    models = [*dict.fromkeys(model for route in routes for model in _models_of(route)), ErrorOutput]
    references, components = msgspec.json.schema_components(models, ref_template=_REFERENCE)
    schemas = dict(zip(models, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _describe_operation(route, schemas, with_security)
    security = {"bearer_token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Omnigraph API", "version": omnigraph.__version__},
        "paths": paths,
        "components": {"schemas": components, **({"securitySchemes": security} if with_security else {})},
    }


def _models_of(route: Route) -> list[Any]:
    bodies = [route.body] if route.is_json_body else [route.form_options] if route.form_options is not None else []
    return [*bodies, *_answer_models(route)]


def _answer_models(route: Route) -> tuple[Any, ...]:
    """Return the models that an operation may respond with; most operations have only one."""
    if route.answer is None:
        return ()
    return route.answer if isinstance(route.answer, tuple) else (route.answer,)


def _answer_schema(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    options = [schemas[model] for model in _answer_models(route)]
    if not options:
        return {}
    return {"schema": options[0] if len(options) == 1 else {"anyOf": options}}


def _describe_operation(route: Route, schemas: dict[Any, Any], with_security: bool) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation_id,
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *map(_query_parameter, route.parameters), *_header_parameters(route)],
        "responses": _describe_responses(route, schemas),
    }
    if route.body is not None:
        operation["requestBody"] = _request_body(route, schemas)
    if route.deprecated:
        operation["deprecated"] = True
    if with_security and not route.is_public:
        operation["security"] = [{"bearer_token": []}]
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PLACEHOLDER.findall(route.path)
    ]


def _query_parameter(parameter: UrlParameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.type}
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.repeated:
        schema = {"type": "array", "items": schema}
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.description,
        "schema": schema,
    }


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": header.name,
            "in": "header",
            "required": header.required,
            "description": header.description,
            "schema": {"type": "string"},
        }
        for header in route.headers
    ]


def _request_body(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    if route.form_options is not None:
        return {"required": True, "content": {FORM: {"schema": _form_schema(schemas[route.form_options])}}}
    if route.is_raw_body:
        raw_schema = {"schema": {"type": "string"}}
        return {"required": True, "content": dict.fromkeys(route.body_media_types, raw_schema)}
    return {"required": not route.body_optional, "content": {JSON: {"schema": schemas[route.body]}}}


def _form_schema(options: Any) -> dict[str, Any]:
    """Return the schema of a form: its options, and any number of file parts, each named after an entity type."""
    file = {"type": "string", "format": "binary"}
    return {"type": "object", "properties": {"options": options}, "additionalProperties": file}


def _describe_responses(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    has_body = route.method != "HEAD"
    content = {media_type: _answer_schema(route, schemas) if media_type == JSON else {} for media_type in route.answers}
    success = {"description": "OK", **({"content": content} if content and has_body else {})}
    error_content = {"content": {JSON: {"schema": schemas[ErrorOutput]}}} if has_body else {}
    failures = {
        str(status): {"description": STATUS_MEANINGS[status], **(error_content if status >= 400 else {})}
        for status in sorted({*route.statuses, 500})
    }
    return {str(route.success_status): success, **failures}
