"""Scalar types, coercion, canonical spelling and JSON encodings of values."""

from omnigraph.values.types import PropertyType, ScalarType

__all__ = ["PropertyType", "ScalarType"]
