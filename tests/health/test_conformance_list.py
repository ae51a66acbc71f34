"""Every numbered case of repair has its test."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_number_names_a_test() -> None:
    text = (ROOT / "tests" / "cases" / "maintenance" / "repair.txt").read_text("utf-8")
    lines = [line.split(" | ") for line in text.splitlines() if not line.startswith("#")]
    assert [int(one[0]) for one in lines] == list(range(24, 36))
    for _, fate, place, *why in lines:
        file, _, test = place.partition("::")
        assert fate in ("stands", "changes", "falls")
        assert bool(why) == (fate != "stands")
        assert f"def {test}(" in (ROOT / file).read_text("utf-8"), place
