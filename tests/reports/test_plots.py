"""Plots: marks are at the right positions, axes are readable, and any figures and names make a valid page."""

import re
from xml.etree import ElementTree

import pytest

from crossdock.cli.render.html import document
from crossdock.cli.render.page import UNITS, Page, Plot, Section, Table, Trend
from crossdock.cli.render.plots import svg, thinned
from tests.reports.pages import Checked
from tests.reports.shop import HOSTILE


def texts(drawn: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(drawn).iter("text")]


def test_columns_are_stacked() -> None:
    drawn = svg(Plot("columns", "T", "jobs", ["a", "b"], {"runs": [30, 0], "failures": [10, 40]}))
    rects = [each.attrib for each in ElementTree.fromstring(drawn).iter("rect")]
    runs, failures, other = rects
    assert float(failures["y"]) + float(failures["height"]) == pytest.approx(float(runs["y"]), abs=0.2)
    assert float(runs["height"]) == pytest.approx(3 * float(failures["height"]), abs=0.2)
    assert float(other["y"]) == pytest.approx(float(failures["y"]), abs=0.2)
    assert texts(drawn) == ["0", "10", "20", "30", "40", "a", "b"]


def test_times_have_a_logarithmic_axis() -> None:
    drawn = svg(Plot("lines", "T", "time", ["a", "b", "c"], {"p50": [0.002, None, 7_000.0]}))
    assert texts(drawn)[:8] == ["1ms", "10ms", "100ms", "1s", "10s", "1m", "10m", "1h"]
    heights = [float(each.attrib["cy"]) for each in ElementTree.fromstring(drawn).iter("circle")]
    assert heights[0] > heights[1] and len(heights) == 2
    assert re.search(r'class="l0" d="M[\d. ]+M[\d. ]+"', drawn)  # nothing on the second day: the line is broken


def test_bars_have_names_and_values() -> None:
    drawn = svg(Plot("bars", "T", "time", ["a" * 30, "b"], {"p95": [10.0, None]}))
    whole = "a" * 30  # the tooltip
    assert texts(drawn) == [f"{whole}{'a' * 20}", f"{whole}{'a' * 10}", "10s", "bb", "0s"]


def test_a_label_of_a_bar_wraps_and_is_cut_after_three_lines() -> None:
    drawn = svg(Plot("bars", "T", "jobs", ["no answer from N after N s while fetching item N of page N"], {"n": [1.0]}))
    lines = [text.removeprefix("no answer from N after N s while fetching item N of page N") for text in texts(drawn)]
    assert lines == ["no answer from N", "after N s while", "fetching item N of …", "1"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", ["columns", "lines", "bars"])
@pytest.mark.parametrize("most", [0.012, 1.0, 83.0, 999_999.0, 4e7])
def test_labels_are_inside_the_picture(kind: str, unit: str, most: float) -> None:
    """With 8 units per character, which is more than most fonts need."""
    for labels in (["11-14", "11-15", "11-16"], [f"11-{day} {hour:02d}h" for day in (14, 15) for hour in range(24)]):
        values = [most * (at + 1) / len(labels) for at in range(len(labels))]
        drawn = svg(Plot(kind, "T", unit, labels, {"n": values}))  # type: ignore[arg-type]
        root = ElementTree.fromstring(drawn)
        for each in root.iter("text"):
            text = (each.text or "") + "".join(title.tail or "" for title in each)
            wide, x = 8 * len(text), float(each.attrib["x"])
            left = x - wide if each.get("text-anchor") == "end" else x
            assert left >= 0 and left + wide <= 400, (text, x)


def test_hours_of_many_days_are_labelled_by_day() -> None:
    labels = [f"11-{day:02d} {hour:02d}h" for day in (14, 15, 16) for hour in range(24)]
    drawn = svg(Plot("lines", "T", "jobs", labels, {"n": [1.0] * 72}))
    assert texts(drawn)[-3:] == ["11-14", "11-15", "11-16"]
    drawn = svg(Plot("lines", "T", "jobs", labels[:24], {"n": [1.0] * 24}))
    assert texts(drawn)[-6:] == ["00h", "04h", "08h", "12h", "16h", "20h"]


def test_many_points_are_thinned() -> None:
    assert thinned([1.0, 3.0, None, 5.0, None, None], 3) == [2.0, 5.0, None]
    drawn = svg(Plot("lines", "T", "jobs", [f"{n}" for n in range(9_000)], {"n": [1.0] * 9_000}))
    assert len(drawn) < 10_000


@pytest.mark.parametrize("kind", ["columns", "lines", "bars"])
@pytest.mark.parametrize(
    "values", [[], [None], [0.0], [-5.0, 3.0], [1e-9], [1e15, 1.0], [3.0] * 60], ids=lambda values: str(values[:2])
)
def test_any_figures_make_a_valid_page(kind: str, values: list[float | None]) -> None:
    labels = [f"{HOSTILE}{at}" for at in range(len(values))]
    series = {HOSTILE: values, "b": values}
    plots = [Plot(kind, HOSTILE, unit, labels, series) for unit in UNITS]  # type: ignore[arg-type]
    table = Table((f">{HOSTILE}", HOSTILE), [(HOSTILE * 3, Trend([value or 0.0 for value in values]))])
    page = Checked(document(Page(HOSTILE, [HOSTILE], [Section(HOSTILE, table, HOSTILE, plots)]), HOSTILE))
    assert len(page.plots) == (len(plots) if values else 0)
    assert "nan" not in page.text and "inf" not in page.text
