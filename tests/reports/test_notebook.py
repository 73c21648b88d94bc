"""Runs the cells of the documentation notebook on small tables. A Jupyter kernel would need twenty packages."""

import datetime as dt
import html
import re
from pathlib import Path
from typing import Any

import pandas  # type: ignore[import-untyped]
import pytest

from crossdock.cli.render.notebook import Drawing, draw
from tests.reports.pages import Checked
from tests.reports.tables import Tables, day
from tests.support.notebook import run_cells


def test_the_notebook_runs(shop: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crossdock-data").symlink_to(shop.folder.parent)
    names = run_cells(tmp_path, spark=False)
    assert (day(0), "mail", 8, 1, 1) in [row[:5] for row in names["days"].fetchall()]
    [(n, *found)] = [row[2:] for row in names["percentiles"].fetchall() if row[:2] == ("mail", "run")]
    assert (n, found) == (24, pytest.approx([1.0, 6.0, 6.0], rel=0.0197))
    assert names["causes"].row(0)[:5] == ("mail", "Timeout", "no answer from N.N.N.N in N s", 3, 0)
    assert names["objectives"].height == 4
    assert names["workers"].to_dicts()[0]["workers_needed"] == 8
    assert len(names["slow"]) == 26
    assert (tmp_path / "queues.html").stat().st_size > 1_000


def test_the_plots_of_the_notebook_are_drawn(shop: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def noted(*values: Any) -> Drawing:
        drawing = draw(*values)
        frame = re.fullmatch(
            r'<iframe sandbox="allow-scripts" [^<>]*srcdoc="([^"<>]*)"></iframe>', drawing._repr_html_()
        )
        assert frame
        drawn.extend(Checked(html.unescape(frame[1])).plots)
        return drawing

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("crossdock.cli.render.notebook.draw", noted)
    (tmp_path / "crossdock-data").symlink_to(shop.folder.parent)
    run_cells(tmp_path, spark=False)
    assert drawn == [
        "Jobs done, retried and dead, jobs",
        "All queues, jobs an hour",
        "Jobs in the largest queues, jobs",
        "95th percentile of waits, time",
        "Workers for the busiest hour, workers",
    ]


def test_a_frame_becomes_a_plot() -> None:
    index = [dt.datetime(2026, 11, 16, hour, tzinfo=dt.UTC) for hour in (0, 5)]
    frame = pandas.DataFrame({"arrived": [1, 2], "departed": [None, 3]}, index=index)
    plot = draw("lines", "T", "jobs", frame).plot
    assert (plot.labels, plot.series) == (index, {"arrived": [1.0, 2.0], "departed": [None, 3.0]})
    assert draw("lines", "T", "jobs", frame[:1]).plot.labels == [dt.date(2026, 11, 16)]
    with pytest.raises(ValueError, match="'metres' is no unit of plots; there are: time, jobs"):
        draw("lines", "T", "metres", frame)
    with pytest.raises(ValueError, match="5 series have more than 4 colours"):
        draw("lines", "T", "jobs", (["a"], {f"{n}": [1.0] for n in range(5)}))
