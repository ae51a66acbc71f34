"""Scalar types, and the coercion, canonical spelling and JSON encoding of values.

Stored forms are plain Python values: str, bool, int, float, int for days or milliseconds since 1970, bytes, `BlobUri`
or `BlobSource`, tuples, and None. To keep start-up fast, this package does not import any data library.
"""

from omnigraph.values.blobs import BlobSource, BlobUri, format_blob, parse_blob
from omnigraph.values.canonical_form import canonical_spelling, narrow_to_f32, sha256_hex, spell_float
from omnigraph.values.coerce import coerce_assigned, coerce_loaded, coerce_parameter
from omnigraph.values.convert import RANGES
from omnigraph.values.dates import format_date, format_datetime, parse_date, parse_datetime
from omnigraph.values.describe_value import describe
from omnigraph.values.encode import encode_export, encode_result
from omnigraph.values.entity_ids import entity_id
from omnigraph.values.types import PropertyType, ScalarType

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
