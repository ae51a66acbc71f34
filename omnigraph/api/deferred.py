"""Defer imports until first use, so that a command loads only the parts of the package that it needs."""

from importlib import import_module
from typing import Any


def defer_imports(namespace: dict[str, Any], package: str, *module_names: str) -> None:
    """Define a package's modules as globals. Each module is imported when one of its attributes is first accessed.

    The module then replaces its placeholder in the namespace, so that later accesses cost nothing extra.
    """
    for module_name in module_names:
        namespace[module_name] = _DeferredModule(namespace, package, module_name)


class _DeferredModule:
    """A placeholder for a module that has not been imported yet."""

    def __init__(self, namespace: dict[str, Any], package: str, module_name: str) -> None:
        self._namespace, self._package, self._module_name = namespace, package, module_name

    def __getattr__(self, attribute_name: str) -> Any:
        module = import_module(f"{self._package}.{self._module_name}")
        self._namespace[self._module_name] = module
        return getattr(module, attribute_name)
