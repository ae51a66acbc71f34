"""Requests that schemathesis derives from the server's own document: no server error, and every answer fits it."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.rig.http_server import serving
from tests.rig.server_process import installed
from tests.server.conftest import make_graph

pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]

# About 10,000 requests: OMNIGRAPH_TEST_OPENAPI_EXAMPLES=100
EXAMPLES = os.environ.get("OMNIGRAPH_TEST_OPENAPI_EXAMPLES", "10")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
CONFIGURATION = """
hooks = "{hooks}"

[parameters]
graph_id = "default"
"""


def test_every_answer_fits_the_document(tmp_path: Path) -> None:
    uri = make_graph(tmp_path / "graph")
    hooks = Path(__file__).parent.parent / "rig" / "openapi_bodies.py"
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION.format(hooks=hooks))
    with serving(tmp_path, uri, "--unauthenticated") as server:
        finished = subprocess.run(
            [
                *(installed("schemathesis"), "run", f"http://{server.address}/openapi.json"),
                *("--checks", CHECKS, "--max-examples", EXAMPLES, "--phases", "coverage,fuzzing"),
                *("--generation-deterministic", "--no-color", "--no-shrink"),
                *("--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    print(finished.stdout[-1500:])
    assert finished.returncode == 0, finished.stdout[-20000:]
