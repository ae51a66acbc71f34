"""Checks responses against an OpenAPI document, without trusting the code that made either.

Only the part of JSON Schema that the document uses is understood; anything else is an error of the check itself.
"""

import json
import re
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {"type", "properties", "required", "items", "anyOf", "enum", "$ref", "additionalProperties", "title"}
_KNOWN |= {"description", "format", "default", "minimum", "exclusiveMinimum", "maximum"}


class OpenApiCheck:
    """A document, and what is wrong with responses in its light."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._schemas = document["components"]["schemas"]
        self._operations: list[tuple[re.Pattern[str], str, dict[str, Any]]] = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), method.upper(), operation)
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
        ]

    def problems(self, method: str, path: str, status: int, media_type: str, body: bytes) -> list[str]:
        """What is wrong with a response; paths that the document does not know are the caller's own affair."""
        operation = self._operation(method, path.partition("?")[0])
        if operation is None:
            return []
        response = operation["responses"].get(str(status))
        if response is None:
            return [f"status {status} is not documented for {operation['operationId']}"]
        content = response.get("content", {})
        if not body or not content:
            return []
        schema = content.get(media_type)
        if schema is None:
            return [f"{media_type} is not documented for {operation['operationId']} {status}"]
        if media_type != "application/json":
            return []
        return self._check(json.loads(body), schema.get("schema", {}), "$")

    def _operation(self, method: str, path: str) -> dict[str, Any] | None:
        exact_first = sorted(self._operations, key=lambda entry: entry[0].pattern.count("[^/]+"))
        for pattern, operation_method, operation in exact_first:
            if operation_method == method and pattern.fullmatch(path):
                return operation
        return None

    def _check(self, value: Any, schema: dict[str, Any], where: str) -> list[str]:
        unknown = set(schema) - _KNOWN
        if unknown:
            raise NotImplementedError(f"{where}: {unknown}")
        if "$ref" in schema:
            return self._check(value, self._schemas[schema["$ref"].rpartition("/")[2]], where)
        if "anyOf" in schema:
            attempts = [self._check(value, option, where) for option in schema["anyOf"]]
            return [] if [] in attempts else min(attempts, key=len)
        expected = schema.get("type")
        is_unlisted = "enum" in schema and value not in schema["enum"]
        if is_unlisted or (expected is not None and not self._has_type(value, expected)):
            return [f"{where}: {value!r} is not {schema.get('enum', expected)}"]
        if isinstance(value, list) and "items" in schema:
            return [
                text
                for index, item in enumerate(value)
                for text in self._check(item, schema["items"], f"{where}[{index}]")
            ]
        return self._check_object(value, schema, where) if isinstance(value, dict) else []

    @staticmethod
    def _has_type(value: Any, expected: str) -> bool:
        if isinstance(value, bool):
            return expected == "boolean"
        return isinstance(value, _TYPES[expected])

    def _check_object(self, value: dict[str, Any], schema: dict[str, Any], where: str) -> list[str]:
        properties = schema.get("properties")
        found = [f"{where}: `{name}` is missing" for name in schema.get("required", ()) if name not in value]
        for name, member in value.items():
            if properties is not None and name in properties:
                found += self._check(member, properties[name], f"{where}.{name}")
            elif properties is not None:
                found.append(f"{where}: `{name}` is not documented")
            elif isinstance(schema.get("additionalProperties"), dict):
                found += self._check(member, schema["additionalProperties"], f"{where}.{name}")
        return found
