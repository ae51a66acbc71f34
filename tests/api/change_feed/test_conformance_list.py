"""Every numbered case of the change feed has a test."""

from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_case_names_an_existing_test() -> None:
    text = (ROOT / "tests" / "cases" / "changes" / "conformance.txt").read_text("utf-8")
    lines = [line.split(" | ") for line in text.splitlines() if not line.startswith("#")]
    assert [int(number) for number, _, _ in lines] == list(range(53, 61))
    for _, fate, place in lines:
        file, _, test = place.partition("::")
        assert fate == "stands"
        assert f"def {test}(" in (ROOT / file).read_text("utf-8"), place
