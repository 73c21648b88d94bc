"""Charts: what the component draws is right, axes are readable, and any figures and names make a valid page."""

import datetime as dt
from typing import Any, Literal

import pytest

from crossdock.cli.render.charts import POINTS, figure, spec
from crossdock.cli.render.html import document
from crossdock.cli.render.page import UNITS, Page, Plot, Section, Table, Trend
from tests.reports.pages import Checked
from tests.reports.shop import HOSTILE

DAYS = [dt.date(2026, 11, day) for day in (14, 15, 16)]
HOURS = [dt.datetime(2026, 11, 14, tzinfo=dt.UTC) + dt.timedelta(hours=n) for n in range(72)]
AGE = "2026-11-14 to 2026-11-16"


def page_of(*plots: Plot, table: Table | None = None) -> Checked:
    section = Section(HOSTILE, table or Table((), []), HOSTILE, plots)
    return Checked(document(Page(HOSTILE, [HOSTILE], [section]), HOSTILE, AGE))


def values_of(chart: dict[str, Any]) -> dict[str, list[float | None]]:
    return {each["label"]: each["values"] for each in chart["series"]}


def test_columns_are_stacked_over_days_in_utc() -> None:
    chart = spec(Plot("columns", "T", "jobs", DAYS, {"done": [30, 0, 1], "failed": [10, 40, 2]}))
    assert (chart["kind"], chart["stacked"], chart["utc"], chart["step_s"]) == ("bars", True, True, 86_400)
    assert [dt.datetime.fromtimestamp(at, dt.UTC).date() for at in chart["x"]] == DAYS
    assert values_of(chart) == {"done": [30, 0, 1], "failed": [10, 40, 2]}


def test_hours_make_an_axis_of_hours() -> None:
    chart = spec(Plot("lines", "T", "jobs", HOURS, {"n": [1.0] * 72}))
    assert (chart["kind"], chart["utc"], chart["step_s"]) == ("lines", True, 3_600)
    assert chart["x"] == [hour.timestamp() for hour in HOURS]
    naive = spec(Plot("lines", "T", "jobs", [hour.replace(tzinfo=None) for hour in HOURS], {"n": [1.0] * 72}))
    assert naive["x"] == chart["x"]


def test_times_have_a_logarithmic_axis_and_missing_values_interrupt_the_line() -> None:
    chart = spec(Plot("lines", "T", "time", DAYS, {"p50": [0.002, None, 7_000.0]}))
    assert (chart["unit"], chart["log"], chart["gaps"]) == ("s", True, True)
    assert chart["range"] == [0.001, 21_600]
    assert chart["marks"] == (0.001, 0.1, 10, 600, 21_600)
    assert values_of(chart) == {"p50": [0.002, None, 7_000]}


@pytest.mark.parametrize(
    ("least", "marks"),
    [(1.0, [0.996, 0.997, 0.998, 0.999, 1]), (0.97, [0.96, 0.97, 0.98, 0.99, 1]), (0.2, [0, 0.25, 0.5, 0.75, 1])],
)
def test_shares_of_good_jobs_have_an_axis_up_to_one(least: float, marks: list[float]) -> None:
    chart = spec(Plot("lines", "T", "of the jobs", DAYS, {"in time": [1.0, None, least]}))
    assert (chart["unit"], chart["range"], chart["marks"]) == ("share", [marks[0], 1], marks)


@pytest.mark.parametrize("values", [[1e-9, 1e9], [0.0, 0.0], [5.0, 5.0], [1e-3, 90.0]])
def test_a_logarithmic_axis_has_few_marks_and_room_for_all_values(values: list[float]) -> None:
    chart = spec(Plot("lines", "T", "time", DAYS[:2], {"n": values}))
    assert 2 <= len(chart["marks"]) <= 8
    low, high = chart["range"]
    assert 0 < low <= chart["marks"][0] < chart["marks"][-1] <= high
    assert all(low <= max(value, low) <= high for value in values if 1e-6 <= value <= 31_536_000)


def test_bars_are_rows_with_whole_labels() -> None:
    long = "no answer from N after N s while fetching item N of page N"
    chart = spec(Plot("bars", "T", "time", [long, "b"], {"p95": [10.0, None]}))
    assert (chart["kind"], chart["labels"], chart["x"]) == ("rows", [long, "b"], [0, 1])
    assert values_of(chart) == {"p95": [10, None]}


def test_bad_outcomes_have_the_same_color_in_all_charts() -> None:
    for names in (("done", "failed"), ("well", "failed", "other"), ("useful", "wasted"), ("died",)):
        chart = spec(Plot("columns", "T", "jobs", DAYS[:1], {name: [1] for name in names}))
        colors = {each["label"]: each["color"] for each in chart["series"]}
        assert {color for name, color in colors.items() if name in ("failed", "wasted", "died")} == {3}
        assert len(set(colors.values())) == len(names)


def test_many_points_are_thinned() -> None:
    hours = [HOURS[0] + dt.timedelta(hours=n) for n in range(2 * POINTS)]
    values = [1.0, 3.0, None, 5.0, None, None] + [7.0] * (2 * POINTS - 6)
    chart = spec(Plot("lines", "T", "jobs", hours, {"n": values}))
    assert values_of(chart)["n"][:4] == [2, 5, None, 7]
    assert chart["x"] == [hour.timestamp() for hour in hours[::2]]


def test_a_chart_has_title_unit_age_and_its_numbers_as_text() -> None:
    page = page_of(Plot("columns", "Jobs ended", "failures", DAYS, {"done": [8, None, 1_500], "died": [2, 0, 1]}))
    assert list(page.plots) == ["Jobs ended, failures"]
    assert f"Jobs ended failures, {AGE}" in page.text
    drawn = figure(Plot("lines", "T", "time", HOURS[5:6], {"p50": [90.0]}), AGE)
    assert '<td>2026-11-14 05:00</td><td class="n">1m30s</td>' in drawn
    assert "Numbersdonedied\n2026-11-1482\n2026-11-15-0\n2026-11-161.5k1\n" in page.text


def clean_hostile() -> str:
    return '<script>alert("x")</script>\\x1b]0;title\\x07\\u202e&amp;'


def test_hostile_names_stay_text_inside_the_json() -> None:
    plot = Plot("bars", HOSTILE, "jobs", [HOSTILE, "\"}'><img src=x>"], {HOSTILE: [1, 2], "</figure>": [3, 4]})
    drawn = figure(plot, HOSTILE)
    assert not any(each in drawn for each in ("<script", "</script", "<img", "</figure><", "\x1b", "\u202e"))
    [chart] = page_of(plot).plots.values()
    assert chart["labels"] == [clean_hostile(), "\"}'><img src=x>"]
    assert values_of(chart) == {clean_hostile(): [1, 2], "</figure>": [3, 4]}


@pytest.mark.parametrize("kind", ["columns", "lines", "bars"])
@pytest.mark.parametrize(
    "values",
    [[], [None], [0.0], [-5.0, 3.0], [1e-9], [1e15, 1.0], [3.0] * 60, [float("inf")]],
    ids=lambda values: str(values[:2]),
)
@pytest.mark.parametrize("timed", [False, True])
def test_any_figures_make_a_valid_page(
    kind: Literal["columns", "lines", "bars"], values: list[float | None], timed: bool
) -> None:
    labels = HOURS[: len(values)] if timed else [f"{HOSTILE}{at}" for at in range(len(values))]
    plots = [Plot(kind, f"{HOSTILE}{unit}", unit, labels, {HOSTILE: values, "b": values}) for unit in UNITS]
    table = Table((f">{HOSTILE}", HOSTILE), [(HOSTILE * 3, Trend([0.0 if value is None else 1.0 for value in values]))])
    page = page_of(*plots, table=table)
    assert len(page.plots) == (len(plots) if values else 0)
    for chart in page.plots.values():
        assert all(len(each["values"]) == len(chart["x"]) == len(values) for each in chart["series"])
