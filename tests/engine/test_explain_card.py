"""Explained plans as text and as a notebook card."""

from omnigraph.engine.execution_context import OperatorStats
from omnigraph.engine.explain import ExplainedPlan, ExplainedStep


def test_repr_is_a_table_with_a_headline() -> None:
    plan = ExplainedPlan("friends", (ExplainedStep(0, "scan $p: Person", 3),))
    assert repr(plan).splitlines() == [
        "<plan for friends (not executed)>",
        "operator         estimated rows",
        "scan $p: Person               3",
    ]


def test_card_escapes_text_and_has_bars_for_measurements() -> None:
    measured = ExplainedStep(1, "filter <b>", 10, OperatorStats(2000, 4.0, 1))
    smaller = ExplainedStep(0, "expand", 10, OperatorStats(1000, 1.0, 1))
    card = ExplainedPlan("<q>", (measured, smaller, ExplainedStep(0, "return", 1)), 1000, 6.0)._repr_html_()
    assert "<b>" not in card
    assert "filter &lt;b&gt;" in card
    assert "padding-left:26px" in card
    assert "2,000" in card
    assert "width:90px" in card
    assert "width:45px" in card
    assert "plan for &lt;q&gt;: 1000 rows in 6.0 ms" in card


def test_card_is_bounded() -> None:
    plan = ExplainedPlan("q", tuple(ExplainedStep(0, "x" * 9000, 1) for _ in range(300)))
    card = plan._repr_html_()
    assert "100 more operators not shown" in card
    assert len(card) < 120_000
