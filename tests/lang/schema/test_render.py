"""Rendered errors: every case under tests/cases/schema/render."""

import pytest

from omnigraph.errors import LanguageError
from omnigraph.lang.schema import compile_schema
from tests.lang.schema.blocks import Block, blocks


@pytest.mark.parametrize("case", blocks("render"), ids=str)
def test_render_case(case: Block) -> None:
    text, picture = case.parts
    with pytest.raises(LanguageError) as caught:
        compile_schema(text, "a.pg")
    assert f"{caught.value}\n" == picture
