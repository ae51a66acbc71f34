"""The shell's history: the newest statements, in a file that only its owner can read, in the home directory.

Concurrent sessions can all append to the file. The file contains one line per statement.
"""

from pathlib import Path
from typing import Any

from omnigraph.cli.completion_names import write_private_file
from omnigraph.cli.operator_config import config_path

MAX_ENTRIES = 1000
_FILE_NAME = "history"


def history_path() -> Path:
    """Return the path of the history file; the file may not exist."""
    return config_path().parent / _FILE_NAME


def read_history(path: Path) -> list[str]:
    """Return the newest entries in a history file, or an empty list if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-MAX_ENTRIES:]
    except OSError:
        return []


class History:
    """The entries that readline recalls, and those that this session adds to the file."""

    def __init__(self, readline: Any, path: Path | None = None) -> None:
        self._readline = readline
        self._path = path or history_path()
        self._new_entries: list[str] = []
        if readline is not None:
            readline.set_auto_history(False)
            readline.clear_history()
            for entry in read_history(self._path):
                readline.add_history(entry)

    def add(self, statement: str) -> None:
        """Add a statement. Its lines are joined into one unless they may contain a line comment."""
        separator = "\n" if "//" in statement else " "
        entry = separator.join(line.strip() for line in statement.split("\n") if line.strip())
        if not entry or (self._new_entries and self._new_entries[-1] == entry):
            return
        self._new_entries.append(entry)
        if self._readline is not None:
            self._readline.add_history(entry)

    def save(self) -> None:
        """Append the new entries to the file, and drop its oldest ones; an unwritable file is ignored."""
        if not self._new_entries:
            return
        lines = [line for entry in self._new_entries for line in entry.split("\n")]
        try:
            newest_lines = [*read_history(self._path), *lines][-MAX_ENTRIES:]
            write_private_file(self._path, "\n".join(newest_lines) + "\n")
        except OSError:
            return
        self._new_entries.clear()
