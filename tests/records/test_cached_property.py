"""Cached properties: each instance computes its own value, without waiting for other instances."""

import ast
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import omnigraph
from omnigraph.records.cached_property import cached_property
from tests.rig.timeouts import PATIENCE


class Slow:
    """Its value is computed only when the test allows it."""

    def __init__(self, *, is_allowed: bool) -> None:
        self.started, self.allowed, self.computed = threading.Event(), threading.Event(), 0
        if is_allowed:
            self.allowed.set()

    @cached_property
    def value(self) -> int:
        self.started.set()
        assert self.allowed.wait(PATIENCE)
        self.computed += 1
        return self.computed


def test_a_slow_value_delays_no_other_instance() -> None:
    slow, quick = Slow(is_allowed=False), Slow(is_allowed=True)
    with ThreadPoolExecutor(2) as pool:
        slow_value = pool.submit(lambda: slow.value)
        assert slow.started.wait(PATIENCE)
        try:
            assert pool.submit(lambda: quick.value).result(PATIENCE) == 1
        finally:
            slow.allowed.set()
        assert slow_value.result(PATIENCE) == 1
    assert (slow.value, quick.value) == (1, 1)


def test_the_package_uses_no_cached_property_with_a_shared_lock() -> None:
    package = Path(omnigraph.__file__).parent
    importers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "functools"
        if "cached_property" in [name.name for name in node.names]
    }
    assert importers <= {"records/cached_property.py"}
