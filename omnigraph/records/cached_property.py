"""`functools.cached_property` without the lock that it has in Python 3.11.

That lock is shared by all instances of a class, so a slow diff or merge in one thread would delay all others. Without
it, two threads may compute the same value; later accesses return the one that was stored last.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:
    import functools

    _MISSING = object()

    class cached_property(functools.cached_property):  # noqa: N801 - has the name of what it replaces
        """A property that is computed on first access and then stored in the instance."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Return the stored value, or compute and store it."""
            if instance is None:
                return self
            value = instance.__dict__.get(self.attrname, _MISSING)
            if value is _MISSING:
                value = instance.__dict__[self.attrname] = self.func(instance)
            return value


__all__ = ["cached_property"]
