"""Import optional libraries by name. If a library is missing, the error explains how to install it."""

from importlib import import_module
from typing import Any


def import_optional(module_name: str) -> Any:
    """Import and return an optional library. If it is missing, raise an `ImportError` with installation instructions.

    >>> import_optional("no_such_library")
    Traceback (most recent call last):
    ImportError: no_such_library is not installed: run `pip install omnigraph[no_such_library]`
    """
    try:
        return import_module(module_name)
    except ImportError as error:
        raise ImportError(f"{module_name} is not installed: run `pip install omnigraph[{module_name}]`") from error
