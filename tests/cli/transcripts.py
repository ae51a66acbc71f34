"""Reads and runs the transcripts under tests/cases/cli (see the README there)."""

import ast
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parents[1] / "cases" / "cli"
_FILE = re.compile(r"^# (file|bytes): (\S+)\n", re.MULTILINE)
Play = Callable[[dict[str, str], list[str], bytes], tuple[int, str, str]]


@dataclass(frozen=True)
class Transcript:
    """One case: files to begin with, then commands with all they say."""

    name: str
    files: dict[str, bytes]
    session: str

    def __str__(self) -> str:
        return self.name

    def commands(self) -> list[str]:
        return [line[2:] for line in self.session.split("\n") if line.startswith("$ ")]

    def played(self, folder: Path, play: Play) -> str:
        """What the session says when its commands are run in `folder`."""
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return "".join(f"$ {command}\n{_answer(command, folder, play)}" for command in self.commands())


def transcripts() -> list[Transcript]:
    """Every case of every file."""
    return [_transcript(path.stem, block) for path in sorted(CASES.glob("*.txt")) for block in _blocks(path)]


def _blocks(path: Path) -> list[str]:
    return re.split(r"^---\n", path.read_text("utf-8"), flags=re.MULTILINE)


def _transcript(stem: str, block: str) -> Transcript:
    title, _, rest = block.partition("\n")
    assert title.startswith("# case: "), block
    head, _, session = rest.partition("$ ")
    pieces = _FILE.split(head)
    files = {
        name: _bytes(text) if kind == "bytes" else text.encode()
        for kind, name, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True)
    }
    return Transcript(f"{stem}:{title.removeprefix('# case: ')}", files, f"$ {session}")


def _bytes(text: str) -> bytes:
    """Python's escapes, over lines that are joined: only a written `\\n` ends a line."""
    data: bytes = ast.literal_eval(f'b"""{text.replace(chr(10), "")}"""')
    return data


def _answer(command: str, folder: Path, play: Play) -> str:
    words = shlex.split(command)
    if words[0] == "cat":
        return (folder / words[1]).read_bytes().decode()
    told: dict[str, str] = {}
    while words[0] != "omnigraph":
        name, _, value = words.pop(0).partition("=")
        told[name] = value
    fed = b""
    if "<" in words:
        fed = (folder / words.pop()).read_bytes()
        words.remove("<")
    code, out, err = play(told, words[1:], fed)
    said = "".join(f"! {line}".rstrip() + "\n" for line in err.splitlines())
    return out + said + (f"[{code}]\n" if code else "")
