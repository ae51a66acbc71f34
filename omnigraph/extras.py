"""Optional libraries: imported by name, with an installation hint if one is missing."""

from importlib import import_module
from typing import Any


def extra(name: str) -> Any:
    """Return an optional library; raise an ImportError that says what to install if missing.

    >>> extra("no_such_library")
    Traceback (most recent call last):
    ImportError: this needs no_such_library: pip install omnigraph[no_such_library]
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}: pip install omnigraph[{name}]") from error
