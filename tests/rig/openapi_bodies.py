"""Serializers with which schemathesis sends bodies that are not JSON: generated values as raw bytes."""

import json
from typing import Any

import schemathesis


@schemathesis.serializer(
    "application/x-ndjson", "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"
)
def encode_raw_body(_: Any, value: Any) -> bytes:
    """Bytes as they are, and other values as a line of JSON."""
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"
