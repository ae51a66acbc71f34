"""Every numbered case of the change feed has its test."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_number_names_a_test() -> None:
    text = (ROOT / "tests" / "cases" / "changes" / "conformance.txt").read_text("utf-8")
    lines = [line.split(" | ") for line in text.splitlines() if not line.startswith("#")]
    assert [int(number) for number, _, _ in lines] == list(range(53, 61))
    for _, fate, place in lines:
        file, _, test = place.partition("::")
        assert fate == "stands"
        assert f"def {test}(" in (ROOT / file).read_text("utf-8"), place
