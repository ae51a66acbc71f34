"""Sessions: Java is found or its absence explained, versions compared, nothing printed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import ConfigError
from omnigraph.spark import versions
from omnigraph.spark.session import find_java, parallelism, spark_session


def test_active_session_is_used(spark: Any) -> None:
    assert spark_session() is spark
    assert parallelism(spark) == 2


def test_master_and_remote_together_are_rejected() -> None:
    with pytest.raises(ConfigError, match="pass only one of them"):
        spark_session(master="local", remote="sc://x")


def test_master_other_than_the_running_one_is_rejected(spark: Any) -> None:
    assert spark_session(master="local[2]") is spark
    with pytest.raises(ConfigError, match=r"already running Spark on local\[2\]"):
        spark_session(master="local[7]")


def test_missing_packages_of_connect_are_named() -> None:
    code = (
        "import sys; sys.modules['grpc'] = None\n"
        "from omnigraph.spark.session import spark_session\n"
        "from omnigraph.errors import ConfigError\n"
        "try: spark_session(remote='sc://127.0.0.1:1')\n"
        "except ConfigError as error: print(error, error.hint)"
    )
    told = subprocess.check_output([sys.executable, "-W", "ignore", "-c", code], text=True)
    assert "packages that are missing: " in told
    assert "grpc" in told
    assert "omnigraph[connect]" in told


def test_java_is_found_by_its_version(tmp_path: Path) -> None:
    for name, version in (("old", "11.0.2"), ("new", "21.0.1")):
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
    old, new = tmp_path / "old", tmp_path / "new"
    path = f"{new / 'bin'}"
    assert find_java({"JAVA_HOME": str(new)}, tmp_path) == new / "bin" / "java"
    assert find_java({"JAVA_HOME": str(old), "PATH": path}, tmp_path) == new / "bin" / "java"
    assert find_java({"JAVA_HOME": str(old), "PATH": ""}, tmp_path) is None


def test_a_missing_java_is_explained(tmp_path: Path) -> None:
    code = (
        "from omnigraph.spark.session import spark_session\n"
        "from omnigraph.errors import ConfigError\n"
        "import sys; sys.prefix = sys.argv[1]\n"
        "try: spark_session()\n"
        "except ConfigError as error: print(error, error.hint)"
    )
    told = subprocess.check_output([sys.executable, "-c", code, str(tmp_path)], env={"PATH": ""}, text=True)
    assert "Java 17 or newer" in told
    assert "JAVA_HOME" in told


def test_workers_with_other_versions_are_named(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    versions._checked_sessions.clear()
    versions.check_versions(spark)
    versions._checked_sessions.clear()
    here = versions._make_version_reader(versions.PACKAGES)
    calls: list[int] = []

    def newer_here() -> list[tuple[str, str]]:
        calls.append(1)
        return [(n, "99" if n == "pylance" and len(calls) == 1 else at) for n, at in here()]

    monkeypatch.setattr(versions, "_make_version_reader", lambda _: newer_here)
    with pytest.raises(ConfigError, match=r"pylance has version 99 on the driver and 14"):
        versions.check_versions(spark)
