"""Files on real disks: modes, symlinks, unusual names, missing permissions, full disks."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Program

UGLY, NICE = "node  Lamp{}\n", "node Lamp {}\n"
NOBODY = 65534


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """A directory where permissions count: even for root, who becomes nobody in `as_nobody`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


@pytest.fixture
def as_nobody(omnigraph: Program, ordinary: Path) -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    (ordinary / "warm.pg").write_text(UGLY)
    omnigraph("fmt", ordinary / "warm.pg")  # what is imported later may not be readable any more
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_the_mode_of_a_file_is_kept(omnigraph: Program) -> None:
    path = Path("a.pg")
    path.write_text(UGLY)
    path.chmod(0o640)
    assert omnigraph("fmt", path).code == 0
    assert path.read_text() == NICE
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_symlink_is_preserved(omnigraph: Program) -> None:
    folder = Path("real")
    folder.mkdir()
    (folder / "a.pg").write_text(UGLY)
    Path("link.pg").symlink_to("real/a.pg")
    assert omnigraph("fmt", "link.pg").code == 0
    assert str(Path("link.pg").readlink()) == "real/a.pg"
    assert (folder / "a.pg").read_text() == NICE
    assert [one.name for one in folder.iterdir()] == ["a.pg"]


def test_a_formatted_file_is_not_touched(omnigraph: Program) -> None:
    path = Path("a.pg")
    path.write_text(NICE)
    before = path.stat()
    omnigraph("fmt", path)
    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_longest_file_name_is_accepted(omnigraph: Program) -> None:
    path = Path(f"{'a' * 252}.pg")
    path.write_text(UGLY)
    assert omnigraph("fmt", path).code == 0
    assert path.read_text() == NICE


@pytest.fixture
def locked(ordinary: Path) -> Path:
    """A file in a directory that nobody may write to."""
    path = ordinary / "a.pg"
    path.write_text(UGLY)
    path.chmod(0o644)
    ordinary.chmod(0o555)
    return path


def test_unwritable_directory_is_reported(omnigraph: Program, locked: Path, as_nobody: None) -> None:
    ended = omnigraph("fmt", locked)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"error: cannot write {locked}: Permission denied\n")
    assert locked.read_text() == UGLY
    told = json.loads(omnigraph("fmt", locked, "--json-errors").out)
    assert (told["kind"], told["details"]["reason"]) == ("InputError", "unwritable")


def test_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.pg"
    path.write_text(UGLY)
    program = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0));" + (
        "from omnigraph.cli.main import main; main(sys.argv[1:])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, "fmt", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"error: cannot write {path}: File too large\n")
    assert path.read_text() == UGLY
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def secret(ordinary: Path) -> Path:
    """A file that nobody may read."""
    path = ordinary / "a.pg"
    path.write_text(UGLY)
    path.chmod(0)
    return path


@pytest.mark.parametrize("words", ["schema check {}", "schema diff {} {}", "lint --schema {}", "fmt {}"])
def test_unreadable_file_is_reported(omnigraph: Program, secret: Path, as_nobody: None, words: str) -> None:
    ended = omnigraph(*words.format(secret, secret).split())
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"error: cannot read {secret}: Permission denied\n")


def test_file_name_that_is_not_utf8_is_handled(omnigraph: Program) -> None:
    Path(os.fsdecode(b"lamp\xff.pg")).write_text("node lamp {}")
    (path,) = Path().iterdir()
    told = json.loads(omnigraph("lint", "--schema", path, "--format", "sarif").out)
    found = told["runs"][0]["results"][0]
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "lamp%FF.pg"


def test_sarif_locations_are_uris(omnigraph: Program, tmp_path: Path) -> None:
    path = tmp_path / "my lamps" / "größe.pg"
    path.parent.mkdir()
    path.write_text("node lamp {}")

    def uri(name: Path) -> str:
        told = json.loads(omnigraph("lint", "--schema", name, "--format", "sarif").out)
        place = told["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        return str(place["artifactLocation"]["uri"])

    assert uri(path.relative_to(tmp_path)) == "my%20lamps/gr%C3%B6%C3%9Fe.pg"
    assert uri(path) == path.as_uri()
