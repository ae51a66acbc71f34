"""Settings shared by every test: the hypothesis profiles and the place of the checkout."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.rig.plugin"]

# Runs are repeatable and never judged by the clock; `make test-full` looks at more examples.
settings.register_profile("default", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("full", derandomize=True, deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the repository."""
    return Path(__file__).parent.parent
