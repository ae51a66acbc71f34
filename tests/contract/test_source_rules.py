"""The package follows the house rules; each rule is shown to catch a planted violation."""

from pathlib import Path

import pytest

from tests.contract.source_rules import breaches_of_form, impurities

PACKAGE = Path(__file__).parent.parent.parent / "omnigraph"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONG_FUNCTION = '"""Doc."""\n\n\ndef f():\n' + "    x = 1\n" * 60


def is_ids(module: Path) -> bool:
    """Whether the module is `omnigraph.values.clock_and_ids`, the one home of time and chance."""
    return module.relative_to(PACKAGE) == Path("values/clock_and_ids.py")


def test_scan_covers_the_package() -> None:
    assert PACKAGE / "__init__.py" in MODULES


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_a_module_keeps_the_house_rules(module: Path) -> None:
    source = module.read_text()
    assert breaches_of_form(module, source) == []
    assert is_ids(module) or impurities(source) == []


@pytest.mark.parametrize(
    "defect",
    [
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\ndatetime.now()",
        "from datetime import datetime as dt\ndt.utcnow()",
        "from datetime import date\ndate.today()",
        "import time\nstart = time.time()",
        "import time as clock\nclock.time()",
        "from time import time",
        "from time import time_ns as now",
        "def f():\n    import uuid",
        "from uuid import uuid4",
        "import random",
        "import random as dice",
        "import secrets",
        "import os\nos.urandom(8)",
        "from os import urandom",
    ],
)
def test_a_planted_impurity_is_caught(tmp_path: Path, defect: str) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(defect)
    assert len(impurities(planted.read_text())) >= 1


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.monotonic()",
        "from datetime import datetime\ndatetime.fromisoformat('2024-01-01')",
        "import os\nos.path.join('a')",
        "now = 1\nself.now()\nrandom_name = 'uuid'",
    ],
)
def test_harmless_code_is_accepted(source: str) -> None:
    assert impurities(source) == []


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("utils.py", '"""Doc."""\n', "name"),
        ("core/scan.py", '"""Doc."""\n', "name"),
        ("scan.py", "x = 1\n", "docstring"),
        ("scan.py", '"""Doc."""\n' + "x = 1\n" * 400, "401 lines"),
        ("scan.py", LONG_FUNCTION, "f has 61 lines"),
    ],
)
def test_planted_style_violation_is_caught(name: str, source: str, expected: str) -> None:
    (breach,) = breaches_of_form(Path(name), source)
    assert expected in breach


def test_a_well_formed_module_passes() -> None:
    assert breaches_of_form(Path("lang/coarse_scan.py"), '"""Doc."""\n' + "x = 1\n" * 399) == []
