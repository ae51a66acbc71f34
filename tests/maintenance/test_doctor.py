"""The doctor: findings on a machine and a store; it never fails itself."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import StorageError
from omnigraph.maintenance import doctor
from omnigraph.maintenance.doctor import EnvironmentDiagnosis, diagnose_environment
from omnigraph.publish import intent
from omnigraph.spark import diagnosis
from omnigraph.spark.diagnosis import diagnose_java
from omnigraph.storage import store_probe
from tests.cli.conftest import Program
from tests.maintenance.conftest import files


def told(found: list[EnvironmentDiagnosis]) -> dict[str, EnvironmentDiagnosis]:
    return {one.name: one for one in found}


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking a Java for its version takes long."""
    monkeypatch.setattr(diagnosis, "find_java", lambda *_: Path("/some/java"))


def test_healthy_machine_and_store_pass(graph: Graph) -> None:
    before = files(graph)
    found = told(diagnose_environment(graph.uri, spark_probe=diagnose_java))
    assert {one.outcome for one in found.values()} <= {"ok"} | {found["temporary files"].outcome}
    assert {"python", "pylance", "java", "cache", "graph", "store guarantees"} <= found.keys()
    assert graph.head.id in found["graph"].found
    assert found["store clock"].found.endswith("relative to this machine")
    assert files(graph) == before, "what was written is removed again"


def test_doctor_writes_only_with_permission(graph: Graph) -> None:
    assert "store clock" not in told(diagnose_environment(graph.uri, probe=False))


def test_missing_and_wrong_settings_are_reported(graph: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(_: object) -> None:
        raise StorageError("two creators of one name both win", kind="configuration")

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(diagnosis, "find_java", lambda *_: None)
    monkeypatch.setattr(store_probe, "probe_create_if_absent", refuse)
    monkeypatch.setattr(intent, "store_time", lambda _: datetime(2001, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(doctor, "_REQUIRED_PACKAGES", ("pylance", "no-such-package"))
    found = told(diagnose_environment(graph.uri, spark_probe=diagnose_java))
    outcomes = {name: one.outcome for name, one in found.items() if one.outcome != "ok"}
    outcomes.pop("temporary files", None)
    assert outcomes == {
        "no-such-package": "error",
        "java": "warning",
        "cache": "warning",
        "store guarantees": "error",
        "store clock": "warning",
    }
    assert "both win" in found["store guarantees"].found


def test_missing_and_damaged_graphs_are_reported(graph: Graph, tmp_path: Path) -> None:
    assert told(diagnose_environment(str(tmp_path / "none")))["graph"].outcome == "warning"
    assert not (tmp_path / "none").exists()
    for one in Path(graph.uri, "__manifest", "data").iterdir():
        one.write_bytes(b"")
    assert told(diagnose_environment(graph.uri))["graph"].outcome == "error"


def test_doctor_command_prints_the_diagnosis(shell: Program, graph: Graph) -> None:
    done = shell("doctor", graph.uri, "--json")
    assert done.code == 0
    assert json.loads(done.out)["ok"] is True
    assert "store guarantees" in shell("doctor", "--store", graph.uri).out
    assert "graph:" not in shell("doctor").out
    for one in Path(graph.uri, "__manifest", "data").iterdir():
        one.write_bytes(b"")
    broken = shell("doctor", graph.uri)
    assert broken.code == 1
    assert "error    graph: " in broken.out
