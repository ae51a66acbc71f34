"""The wheel is complete: it works in an empty environment, outside the checkout."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.contract.page_examples import run_page

INSIDE = (
    "omnigraph/py.typed",
    "omnigraph/lang/schema/grammar.lark",
    "omnigraph/lang/schema/grammar.json",
    "omnigraph/lang/query/grammar.lark",
    "omnigraph/lang/query/grammar.json",
    "omnigraph/examples/library/schema.pg",
    "omnigraph-0.1.0.dist-info/licenses/LICENSE",
)
# One home for the wheel tests: they share one build.
pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, checkout)
    (built,) = out.glob("*.whl")
    return built


def call(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def site_packages(venv: Path) -> Path:
    (found,) = venv.glob("lib/python3*/site-packages")
    return found


def borrow_dependencies(venv: Path) -> None:
    """Put the libraries of the running environment behind the wheel, but not our own package.

    A path in a `.pth` file is searched for modules; `.pth` files over there are not read, so the
    editable installation of the checkout stays out of sight.
    """
    libraries = sysconfig.get_paths()["purelib"]
    (site_packages(venv) / "borrowed.pth").write_text(f"{libraries}\n")


def check_installation(venv: Path, checkout: Path, cwd: Path) -> None:
    where = call(
        venv / "bin" / "python", "-c", "import omnigraph; print(*omnigraph.__path__)", cwd=cwd
    )
    package = Path(where.strip())
    assert package.is_relative_to(venv)
    assert call(venv / "bin" / "omnigraph", "version", cwd=cwd).startswith("omnigraph 0.1.0\n")
    library = package / "examples" / "library"
    schema, queries = library / "schema.pg", library / "queries.gq"
    lint = (venv / "bin" / "omnigraph", "lint", "--schema", schema, "--query", queries)
    call(*lint, cwd=cwd)
    assert run_page((checkout / "README.md").read_text(), venv / "bin", cwd) >= 2


def test_wheel_contains_exactly_the_package(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert set(INSIDE) <= names
    assert {name.split("/")[0] for name in names} == {"omnigraph", "omnigraph-0.1.0.dist-info"}
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]


def test_wheel_works_outside_the_checkout(wheel: Path, checkout: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    call(sys.executable, "-m", "venv", "--without-pip", venv)
    pip = (sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install")
    call(*pip, "--quiet", "--no-deps", "--no-index", wheel)
    borrow_dependencies(venv)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    check_installation(venv, checkout, elsewhere)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_wheel_installs_into_an_empty_environment(
    wheel: Path, checkout: Path, tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    call(sys.executable, "-m", "venv", venv)
    constraints = checkout / "constraints.txt"
    call(venv / "bin" / "python", "-m", "pip", "install", "--quiet", "-c", constraints, wheel)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    check_installation(venv, checkout, elsewhere)
    listed = call(venv / "bin" / "python", "-m", "pip", "list", "--format=freeze")
    pinned = set(constraints.read_text().split())
    ours = {"omnigraph", "pip", "setuptools"}
    loose = [one for one in listed.split() if one.split("==")[0] not in ours]
    assert {one.lower().replace("_", "-") for one in loose} <= pinned
