"""An OpenAPI document as a set of facts, one line each, so that two documents can be compared.

A fact names an operation, and its id, one of its parameters, members or statuses. `!` marks what is required. Types of
members are not compared. This module reads documents and judges nothing.
"""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]


def facts_of(document: dict[str, Any]) -> set[str]:
    """The facts of all operations, and the members of the error object as `errors | member …`."""
    reader = _SchemaReader(document["components"]["schemas"])
    facts = {
        f"{method.upper()} {path} | {fact}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for fact in _operation_facts(operation, reader)
    }
    error = {"$ref": "#/components/schemas/ErrorOutput"}
    return facts | {f"errors | member {member}" for member in reader.members(error)}


def _operation_facts(operation: dict[str, Any], reader: "_SchemaReader") -> Iterator[str]:
    yield f"id {operation['operationId']}"
    if operation.get("deprecated"):
        yield "deprecated"
    for parameter in operation.get("parameters", ()):
        yield f"parameter {parameter['in']}:{parameter['name']}{'!' if parameter['required'] else ''}"
    if "requestBody" in operation:
        yield f"request {'required' if operation['requestBody']['required'] else 'optional'}"
        yield from _content_facts("request", operation["requestBody"], reader)
    for status, response in operation["responses"].items():
        if int(status) < 300:
            yield from _content_facts("response", response, reader)
        yield f"status {status}"


def _content_facts(word: str, message: dict[str, Any], reader: "_SchemaReader") -> Iterator[str]:
    for media_type, content in message.get("content", {}).items():
        yield f"{word} {media_type}"
        if media_type == "application/json":
            yield from (f"{word} member {member}" for member in reader.members(content.get("schema", {})))


class _SchemaReader:
    """Lists the members of schemas with their paths, such as `datasets[].type_name!`."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self._schemas = schemas

    def members(self, schema: Schema, prefix: str = "", within: tuple[str, ...] = ()) -> Iterator[str]:
        """The paths of all members. A schema that contains itself is listed once."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name not in within:
                yield from self.members(self._schemas[name], prefix, (*within, name))
            return
        for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            yield from self.members(option, prefix, within)
        if "items" in schema:
            yield from self.members(schema["items"], f"{prefix}[]", within)
        required = schema.get("required", ())
        for name, member in schema.get("properties", {}).items():
            path = f"{prefix}.{name}".lstrip(".")
            yield f"{path}{'!' if name in required else ''}"
            yield from self.members(member, path, within)
