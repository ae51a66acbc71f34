"""Environment variables that every query depends on, read without the cost of `os.environ`.

`os.environ` encodes each name, decodes each value, and raises and catches an exception for each missing variable. This
overhead is a tenth of the run time of a small query. This module reads the underlying dictionary directly. It never
caches a value, so changing a variable takes effect with the next query.
"""

import os
from typing import Any

# `os.environ` wraps this dictionary; its keys are encoded as `os.environ.encodekey` specifies.
_encoded_variables: Any = getattr(os.environ, "_data", None)


class Variables:
    """A fixed set of environment variables.

    >>> Variables("OMNIGRAPH_NO_SUCH_VARIABLE").current()
    (None,)
    """

    __slots__ = ("_keys", "_mapping")

    def __init__(self, *names: str) -> None:
        is_wrapped = isinstance(_encoded_variables, dict)
        self._mapping: Any = _encoded_variables if is_wrapped else os.environ
        self._keys = tuple(os.environ.encodekey(name) if is_wrapped else name for name in names)

    def current(self) -> tuple[object, ...]:
        """Return the current values; two returned tuples are equal only if all variables have the same values."""
        return tuple(map(self._mapping.get, self._keys))
