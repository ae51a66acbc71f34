"""Runs the examples of a Markdown page as written.

`sh` and `python` blocks are run in order in one directory; a `text` block right after one of them
is what it must print, a `json` block the document, in which "…" stands for any value. Blocks in any
other language (`console`, `pg`, `mermaid`) are only read.
"""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUNNERS = {"sh": ("bash", "-euo", "pipefail", "-c"), "python": ("python", "-c")}


@dataclass(frozen=True, slots=True)
class Step:
    """A block to run, and what it must print if the page says so."""

    language: str
    code: str
    expected: str | None
    form: str = "text"


def steps(page: str) -> list[Step]:
    """The blocks of a page that are to be run.

    >>> steps("```sh\\necho a\\n```\\n\\n```text\\na\\n```\\n")
    [Step(language='sh', code='echo a\\n', expected='a\\n', form='text')]
    """
    found: list[Step] = []
    for language, code in _BLOCK.findall(page):
        if language in _RUNNERS:
            found.append(Step(language, code, None))
        elif language in ("text", "json") and found and found[-1].expected is None:
            found[-1] = Step(found[-1].language, found[-1].code, code, language)
    return found


def run(step: Step, binaries: Path, cwd: Path, more: Mapping[str, str] | None = None) -> str:
    """Run one block with the programs of a virtual environment; gives what it printed."""
    path = os.pathsep.join([str(binaries), os.environ.get("PATH", "")])
    environ = {"PATH": path, "HOME": str(cwd), "LANG": "C.UTF-8", "NO_COLOR": "1", "COLUMNS": "100"}
    done = subprocess.run(
        [*_RUNNERS[step.language], step.code],
        cwd=cwd,
        env={**environ, **(more or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{step.code}\nexit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def run_page(page: str, binaries: Path, cwd: Path, environ: Mapping[str, str] | None = None) -> int:
    """Run every block of a page and compare what it printed; gives how many there were."""
    todo = steps(page)
    for step in todo:
        printed = run(step, binaries, cwd, environ)
        if step.expected is not None:
            assert agrees(step, printed), f"{step.code}\nprinted\n{printed}"
    return len(todo)


def agrees(step: Step, printed: str) -> bool:
    """Whether a block printed what the page says."""
    if step.form == "json" and step.expected is not None:
        return like(json.loads(step.expected), json.loads(printed))
    return printed == step.expected


def like(expected: Any, found: Any) -> bool:
    """Whether a JSON value is the expected one; "…" stands for any.

    >>> like({"a": "…", "b": [1]}, {"a": 5, "b": [1]}), like({"a": "…"}, {"a": 5, "b": 1})
    (True, False)
    """
    if expected == "…":
        return True
    if isinstance(expected, dict) and isinstance(found, dict):
        same = expected.keys() == found.keys()
        return same and all(like(value, found[name]) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(like, expected, found))
    return type(expected) is type(found) and bool(expected == found)
