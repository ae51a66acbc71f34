"""Output and exit codes of commands: every case under tests/cases/cli."""

from pathlib import Path

import pytest

from tests.cli.conftest import Program
from tests.cli.transcripts import Transcript, transcripts


@pytest.mark.parametrize("case", transcripts(), ids=str)
def test_transcript_case(
    case: Transcript, omnigraph: Program, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "library").symlink_to(library)

    def play(told: dict[str, str], words: list[str], fed: bytes) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            for name, value in told.items():
                patch.setenv(name, value)
            ended = omnigraph(*words, stdin=fed)
        return ended.code, ended.out, ended.err

    assert case.played(tmp_path, play) == case.session
