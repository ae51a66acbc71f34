"""What the log shows of failures: where they happened, and nothing of their messages."""

import json
import logging
import sys

import pytest

from omnigraph.server.locations import location_spellings, name_graphs
from omnigraph.server.log_output import LOGGER, configure_logging
from omnigraph.server.settings import GraphLocation, LogFormat, ServerSettings

SECRET = "/srv/secret/graph"


def fail() -> None:
    try:
        raise ValueError(f"cannot read {SECRET}")
    except ValueError as error:
        raise RuntimeError(SECRET) from error


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_failure_is_logged_with_its_place_and_without_messages(
    log_format: LogFormat, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOGGER, "handlers", [])
    monkeypatch.setattr(LOGGER, "propagate", False)
    monkeypatch.setattr(LOGGER, "level", logging.INFO)
    configure_logging(ServerSettings(graphs=(GraphLocation("g", SECRET),), log_format=log_format))
    try:
        fail()
    except RuntimeError:
        LOGGER.error("request failed", exc_info=sys.exc_info())
    output = capsys.readouterr().err
    shown = json.loads(output)["traceback"] if log_format == "json" else output
    assert SECRET not in output
    assert "RuntimeError\n" in shown
    assert "test_log_output.py" in shown
    assert "in fail\ncaused by ValueError\n" in shown


def test_a_location_is_recognized_however_it_is_spelled() -> None:
    locations = [GraphLocation("people", f"file://{SECRET}"), GraphLocation("docs", "s3://bucket/docs?region=eu")]
    text = f"no graph at {SECRET}, file://{SECRET}/x, s3://bucket/docs and 's3://bucket/docs?region=eu'"
    assert name_graphs(text, locations) == "no graph at people, people/x, docs and 'docs'"


def test_a_short_relative_path_is_not_replaced_in_words() -> None:
    assert "g" not in location_spellings("g")
    assert name_graphs("no graph", [GraphLocation("default", "g")]) == "no graph"
