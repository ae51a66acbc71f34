"""The reference page names every step and every code that a plan can contain, in the right tier."""

import re
from pathlib import Path

from omnigraph.lang.schema.codes import CODES
from omnigraph.lang.schema.migrate import steps

_CODE = re.compile(r"OG-[A-Z]{2}-\d{3}")
_RESERVED = {"OG-DS-101"}  # in the catalog, emitted by nothing yet


def _kinds() -> set[str]:
    made = (one for one in vars(steps).values() if isinstance(one, type))
    return {one.kind for one in made if issubclass(one, steps.MigrationStep)} - {"step"}


def _page(checkout: Path) -> str:
    return (checkout / "docs" / "reference" / "migrations.md").read_text("utf-8")


def test_every_step_has_a_row(checkout: Path) -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", _page(checkout), re.MULTILINE)
    found = [row for row in rows if row not in {"safe", "validated", "destructive"}]
    assert sorted(found) == sorted(_kinds())


def test_every_code_of_a_plan_is_named(checkout: Path) -> None:
    named = set(_CODE.findall(_page(checkout)))
    used = {code for code in CODES if code[3:5] in {"DS", "MF", "CD", "BC", "ED", "VE"}}
    lint = {code for code in used if code[6:] >= "200"}
    assert named == used - lint - _RESERVED


def test_the_tier_of_each_code_is_the_one_of_the_catalog(checkout: Path) -> None:
    table = _page(checkout).partition("## Steps")[2].partition("## Unsupported changes")[0]
    found = re.findall(r"(safe|validated|destructive),? (OG-[A-Z]{2}-\d{3})", table)
    assert found
    for tier, code in found:
        assert CODES[code].tier == tier
