"""Libraries that only some users have: looked up by name, and missed with a word of advice."""

from importlib import import_module
from typing import Any


def extra(name: str) -> Any:
    """An optional library; without it, an ImportError that names what to install.

    >>> extra("no_such_library")
    Traceback (most recent call last):
    ImportError: this needs no_such_library: pip install omnigraph[no_such_library]
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}: pip install omnigraph[{name}]") from error
