"""The crash matrix on S3: the client crashes at its k-th PUT, inside any Lance call.

So it is at each removal of a cleanup. These go one after another here, in the order of their table;
that many at once lose nothing either is tried beside it.

`python -m tests.crash.matrix_s3` prints the table that is kept in tests/cases/crash/matrix_s3.txt.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.crash.matrix import Row, another_process
from tests.crash.matrix_s3 import ARRIVES, S3Matrix, impatient, removing
from tests.crash.verbs import VERBS, write_elsewhere
from tests.rig.depth import stride
from tests.rig.plugin import S3

GOLDEN = Path(__file__).parent.parent / "cases" / "crash" / "matrix_s3.txt"
# In the quick suite: some requests (from behind when below zero), and whether they arrive.
SAMPLE: dict[str, Sequence[tuple[int, bool]]] = {
    "init": ((-1, True), (-1, False)),
    "append-1": ((1, True), (3, True)),
    "upsert-3": ((8, False),),
    "update-3": ((-1, True),),
    "delete-3": ((1, False), (-1, False)),
    "rewrite-1": ((-2, True),),
    "branch-create": ((4, True),),
    "copy": ((-1, True),),
    "cleanup": ((30, True),),
    "erase": ((8, False),),
}


@pytest.fixture(autouse=True)
def _no_patience() -> Iterator[None]:
    with impatient(), removing(1):
        yield


def table() -> list[list[str]]:
    """The kept table: cells stand at least two blanks apart."""
    return [re.split(r" {2,}", line) for line in GOLDEN.read_text().splitlines()]


def golden(verb: str) -> list[Row]:
    """The lines of a verb as they are kept."""
    kept = [line for line in table() if line[0] == verb]
    return [Row(verb, int(at), put, tuple(cells)) for _, at, put, *cells in kept]


@pytest.mark.parametrize("verb", SAMPLE)
def test_client_crash_at_selected_puts_is_atomic(s3: S3, tmp_path: Path, verb: str) -> None:
    matrix = S3Matrix(s3, tmp_path, write_elsewhere)
    before, after, sent = matrix.whole(verb)
    kept = golden(verb)
    assert [str(one) for one in sent] == [row.effect for row in kept]
    for place, arrives in SAMPLE[verb]:
        at = place if place < 0 else place - 1
        found = matrix.cut(verb, sent[at], before, after, arrives=arrives)
        assert found == kept[at].outcomes[ARRIVES.index(arrives)]


def test_every_verb_is_in_the_table() -> None:
    assert list(dict.fromkeys(line[0] for line in table())) == list(VERBS)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("verb", VERBS)
def test_client_crash_at_sampled_puts_matches_the_golden_file(s3: S3, tmp_path: Path, verb: str) -> None:
    with another_process() as elsewhere:
        every = stride(4)
        assert list(S3Matrix(s3, tmp_path, elsewhere).rows(verb, every)) == golden(verb)[::every]


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("verb", ["cleanup", "erase"])
def test_client_crash_during_many_deletions_is_recovered(s3: S3, tmp_path: Path, verb: str) -> None:
    matrix = S3Matrix(s3, tmp_path, write_elsewhere)
    with removing(8):
        before, after, sent = matrix.whole(verb)
        for at in [one for one in sent if one.method == "DELETE"][::4]:
            for arrives in ARRIVES:
                found = matrix.cut(verb, at, before, after, arrives=arrives)
                assert found.startswith("same ("), found
