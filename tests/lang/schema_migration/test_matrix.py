"""Every change of a property on every kind of property gives the step or code in the matrix."""

import pytest

from omnigraph.lang.schema.codes import CODES

from .matrix import Section, read_sections, rows

SECTIONS = read_sections()


@pytest.mark.parametrize("section", SECTIONS, ids=str)
def test_matrix_row(section: Section) -> None:
    assert rows(section) == list(section.rows)


def test_row_names_are_unique_and_every_rejection_has_a_code() -> None:
    assert len({section.name for section in SECTIONS}) == len(SECTIONS) > 0
    for section in SECTIONS:
        for row in section.rows:
            words = row.split(" | ")[1].replace(",", "").split()
            for word, following in zip(words, [*words[1:], ""], strict=True):
                assert word != "refused" or following in CODES, row
