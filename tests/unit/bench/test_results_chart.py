"""The chart of the benchmark results agrees with the table in the page."""

from tools.results_chart import CHART, PAGE, draw, pairs


def test_the_chart_is_drawn_from_the_table() -> None:
    rows = pairs(PAGE.read_text("utf-8"))
    assert len(rows) >= 9
    assert CHART.read_text("utf-8") == draw(rows), "run python -m tools.results_chart"
