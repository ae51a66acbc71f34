"""Derive an entity's id from its key values."""

import json
from collections.abc import Sequence

from omnigraph.errors import InputError
from omnigraph.values.canonical_form import canonical_spelling
from omnigraph.values.types import PropertyType


def entity_id(key_types: Sequence[PropertyType], key_values: Sequence[object], key_names: Sequence[str] = ()) -> str:
    """Return the id for the given key values.

    The values must be in key order: endpoints first, then properties in the order of their ids.

    >>> from omnigraph.values.types import ScalarType
    >>> text, number = PropertyType(ScalarType.STRING), PropertyType(ScalarType.I64)
    >>> entity_id([number], [-7]), entity_id([text, number], ["x", 5])
    ('-7', '["x","5"]')
    """
    key_labels = [*key_names, *(f"member {member_index + 1}" for member_index in range(len(key_names), len(key_types)))]
    for label, value in zip(key_labels, key_values, strict=True):
        if value is None:
            raise InputError(reason=f"key {label} must not be null", property=label)
    spellings = [canonical_spelling(key_type, value) for key_type, value in zip(key_types, key_values, strict=True)]
    if len(spellings) != 1:
        return json.dumps(spellings, ensure_ascii=False, separators=(",", ":"))
    if not spellings[0]:
        raise InputError(reason=f"key {key_labels[0]} must not be empty", property=key_labels[0])
    return spellings[0]
