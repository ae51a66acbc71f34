"""Settings of all tests: hypothesis profiles and the location of the checkout."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.rig.depth import repeats

pytest_plugins = ["tests.rig.plugin", "tests.rig.graph_hosts"]

# Runs are repeatable and never judged by the clock; `make test-full` looks at more examples.
settings.register_profile("default", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("full", derandomize=True, deadline=None, max_examples=repeats(120))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell lets programs in the background ignore SIGINT, and what tests start would inherit that:
# then a test that interrupts another program would wait for ever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share something costly run in one process."""
    from tests.rig.xdist_groups import Groups

    return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the repository."""
    return Path(__file__).parent.parent


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the cache directory of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
