"""Every installable package has exactly one pinned version, and no index is named."""

import re
import tomllib
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9._-]+")


def declared(checkout: Path) -> set[str]:
    """The packages that pyproject.toml asks for, in any extra."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    wanted = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        wanted += extra
    return {match[0] for text in wanted if (match := NAME.match(text))} - {"omnigraph"}


def pins(checkout: Path) -> list[str]:
    lines = (checkout / "constraints.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_constraints_are_names_and_versions_only(checkout: Path) -> None:
    odd = [pin for pin in pins(checkout) if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", pin)]
    assert odd == []


def test_constraints_are_sorted_and_name_each_package_once(checkout: Path) -> None:
    names = [pin.split("==")[0] for pin in pins(checkout)]
    assert names == sorted(set(names))


def test_every_declared_package_is_pinned(checkout: Path) -> None:
    assert declared(checkout) - {pin.split("==")[0] for pin in pins(checkout)} == set()


def test_extra_all_includes_every_extra(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    (every,) = project["optional-dependencies"]["all"]
    assert set(every.removeprefix("omnigraph[").removesuffix("]").split(",")) == extras - {"all"}


def test_the_version_is_the_same_everywhere(checkout: Path) -> None:
    import omnigraph

    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    assert omnigraph.__version__ == project["version"]


def test_importing_the_package_loads_none_of_its_parts(checkout: Path) -> None:
    import subprocess
    import sys

    code = "import sys, omnigraph; print(sorted(m for m in sys.modules if 'omnigraph.' in m))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
    code = "import omnigraph; print(omnigraph.errors.OmnigraphError.code)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "OmnigraphError\n"
