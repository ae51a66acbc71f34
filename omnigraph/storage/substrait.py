"""Lets filters reach tables whose columns Arrow cannot describe to Lance.

A filter travels with the schema of its table. Lance leaves out the types that cannot travel, but
forgets numbers without a sign inside of lists: then no filter on such a table would work at all.
"""

import importlib
from typing import Any

import pyarrow as pa

# By its name: `lance.dataset` is the function that hides the module.
_lance: Any = importlib.import_module("lance.dataset")
_known: Any = _lance._needs_substrait_placeholder


def _needs_placeholder(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) and pa.types.is_unsigned_integer(kind.value_type):
        return True
    return bool(_known(kind))


def mend_filters() -> None:
    """Teach Lance, once, which further types to leave out."""
    _lance._needs_substrait_placeholder = _needs_placeholder
