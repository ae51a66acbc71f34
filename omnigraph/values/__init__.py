"""Scalar types, and functions that coerce values, convert them to canonical text and encode them as JSON.

Stored forms are plain Python values: str, bool, int, float, int for days or milliseconds since 1970, bytes, `BlobUri`
or `BlobSource`, tuples, and None. To keep start-up fast, this package imports no data library and loads each of its
modules on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.values.blobs import BlobSource as BlobSource
    from omnigraph.values.blobs import BlobUri as BlobUri
    from omnigraph.values.blobs import format_blob as format_blob
    from omnigraph.values.blobs import parse_blob as parse_blob
    from omnigraph.values.canonical_form import canonical_spelling as canonical_spelling
    from omnigraph.values.canonical_form import narrow_to_f32 as narrow_to_f32
    from omnigraph.values.canonical_form import sha256_hex as sha256_hex
    from omnigraph.values.canonical_form import spell_float as spell_float
    from omnigraph.values.coerce import coerce_assigned as coerce_assigned
    from omnigraph.values.coerce import coerce_loaded as coerce_loaded
    from omnigraph.values.coerce import coerce_parameter as coerce_parameter
    from omnigraph.values.convert import RANGES as RANGES
    from omnigraph.values.dates import format_date as format_date
    from omnigraph.values.dates import format_datetime as format_datetime
    from omnigraph.values.dates import parse_date as parse_date
    from omnigraph.values.dates import parse_datetime as parse_datetime
    from omnigraph.values.describe_value import describe as describe
    from omnigraph.values.encode import encode_export as encode_export
    from omnigraph.values.encode import encode_result as encode_result
    from omnigraph.values.entity_ids import entity_id as entity_id
    from omnigraph.values.types import PropertyType as PropertyType
    from omnigraph.values.types import ScalarType as ScalarType

_MODULE_BY_NAME = {
    "BlobSource": "blobs",
    "BlobUri": "blobs",
    "PropertyType": "types",
    "RANGES": "convert",
    "ScalarType": "types",
    "canonical_spelling": "canonical_form",
    "coerce_assigned": "coerce",
    "coerce_loaded": "coerce",
    "coerce_parameter": "coerce",
    "describe": "describe_value",
    "encode_export": "encode",
    "encode_result": "encode",
    "entity_id": "entity_ids",
    "format_blob": "blobs",
    "format_date": "dates",
    "format_datetime": "dates",
    "narrow_to_f32": "canonical_form",
    "parse_blob": "blobs",
    "parse_date": "dates",
    "parse_datetime": "dates",
    "sha256_hex": "canonical_form",
    "spell_float": "canonical_form",
}

__all__ = [
    "RANGES",
    "BlobSource",
    "BlobUri",
    "PropertyType",
    "ScalarType",
    "canonical_spelling",
    "coerce_assigned",
    "coerce_loaded",
    "coerce_parameter",
    "describe",
    "encode_export",
    "encode_result",
    "entity_id",
    "format_blob",
    "format_date",
    "format_datetime",
    "narrow_to_f32",
    "parse_blob",
    "parse_date",
    "parse_datetime",
    "sha256_hex",
    "spell_float",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first access."""
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'omnigraph.values' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"omnigraph.values.{_MODULE_BY_NAME[name]}"), name)
    globals()[name] = value
    return value
