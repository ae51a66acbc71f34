"""Crash-matrix rows of schema applications; the whole table is in `tests/crash`."""

from pathlib import Path

import pytest

from tests.crash.matrix import HOWS, How, Matrix
from tests.crash.test_crash_matrix import golden
from tests.crash.verbs import write_elsewhere


@pytest.mark.parametrize(
    ("verb", "at", "how"),
    [
        ("schema-quick", 2, "after"),
        ("schema-quick", 6, "before"),
        ("schema-filled", 4, "before"),
        ("schema-filled", 7, "after"),
        ("schema-overtaken", 8, "before"),
        ("schema-hard", 4, "after"),
        ("schema-hard", 9, "before"),
    ],
)
def test_interrupted_schema_apply_is_atomic(tmp_path: Path, verb: str, at: int, how: How) -> None:
    matrix = Matrix(tmp_path, write_elsewhere)
    before, after, effects = matrix.whole(verb)
    kept = golden(verb)
    assert len(effects) == len(kept)
    assert matrix.cut(verb, at, how, before, after) == kept[at - 1].outcomes[HOWS.index(how)]
