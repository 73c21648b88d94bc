"""`crossdock report` as people type it: the terminal, JSON, the page, and what it says when something is missing."""

import datetime as dt
import json
import os
from pathlib import Path

import pytest

from crossdock.cli.commands import pipeline as verb
from crossdock.cli.main import main
from crossdock.cli.render.page import Page, Section, Table, Trend
from crossdock.cli.render.terminal import spark, squeezed, text
from crossdock.pipeline.ledger import Ledger
from crossdock.pipeline.segments import new, survey
from tests.pipeline.lakes import Lake
from tests.reports.pages import Checked
from tests.reports.tables import LAST, Tables
from tests.support.all_protocols import AllProtocols

REPORTS = (["queue"], ["queue", "mail"], ["failures"], ["workers"], ["slow"])


def arguments(tables: Tables, *words: str) -> list[str]:
    return ["report", *words, "--data", str(tables.folder.parent), "--until", str(LAST)]


@pytest.mark.parametrize("words", REPORTS, ids=" ".join)
def test_in_a_terminal_nothing_that_clients_wrote_is_obeyed(
    words: list[str], shop: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(shop, *words)) == 0
    said = capsys.readouterr().out
    assert "2026-11-10 to 2026-11-16, 7 days, UTC\ntables up to " in said
    assert all(char.isprintable() or char == "\n" for char in said)


def test_the_report_of_queues(shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments(shop, "queue"))
    said = capsys.readouterr().out
    assert "QUEUE    ARRIVED  RUNS     RATE  FAILURES  FAILED  RETRIES  RUNS BY DAY\n" in said
    assert "mail          30    24   3.43/d         6       3        3      ███\n" in said
    assert "mail         6   0.6/min  1.2/min       10m  11-16 05h\n" in said
    assert "billing      2         0        0     never  11-16 05h\n" in said
    assert "mail           10      2      2   10s      2s  20 %\n" in said


@pytest.mark.parametrize("words", REPORTS, ids=" ".join)
def test_as_json(words: list[str], shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments(shop, *words), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tables = told.pop("tables")
    assert (tables["first"], tables["last"], tables["batch"], tables["waiting"]) == ("2026-11-10", "2026-11-16", 1, 0)
    assert any(told.values())


@pytest.mark.parametrize("words", REPORTS, ids=" ".join)
def test_as_a_page(words: list[str], shop: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.html"
    assert main([*arguments(shop, *words), "--html", str(file)]) == 0
    assert capsys.readouterr().err.startswith(f"wrote {file}, ")
    page = Checked(file.read_text("utf-8"))
    assert page.plots
    assert ("<script>" in page.text) is (words[0] != "queue")  # as text, and never as an element
    assert main([*arguments(shop, *words), "--html", "-"]) == 0
    assert Checked(capsys.readouterr().out).plots == page.plots


def test_the_page_of_a_queue_has_its_plots(shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    main([*arguments(shop, "queue", "mail"), "--html", "-"])
    page = Checked(capsys.readouterr().out)
    assert page.plots == [
        "Runs and failures, jobs",
        "Jobs an hour, jobs an hour",
        "Jobs in the queue, jobs",
        "Waits, percentiles of each day, time",
        "Runs, percentiles of each day, time",
    ]
    assert "11-16: 8 runs" in page.text and "11-16: 2 failures" in page.text


def test_a_page_is_not_written_over_what_is_no_file(shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments(shop, "queue"), "--html", os.devnull]) == 2
    assert "--html /dev/null is no file; - is stdout" in capsys.readouterr().err
    assert main([*arguments(shop, "queue"), "--html", str(shop.folder)]) == 2
    assert "is a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["queue", "--days", "0"], 2, "Invalid value for '--days': 0 is not in the range 1<=x<=366"),
        (["queue", "--days", "many"], 2, "Invalid value for '--days': 'many' is not a valid integer"),
        (["queue", "--until", "yesterday"], 2, "Invalid value for '--until': 'yesterday' does not match"),
        (["queue", "--until", "0001-01-03"], 2, "--until 0001-01-03 has no 7 days before it"),
        (["queue", "--json", "--html", "-"], 2, "--json and --html - both go to stdout: name a file for the page"),
        (["queue", "mial"], 1, "no queue 'mial' had anything to do from"),
        (["failures", "--queue", "mial"], 1, "no queue 'mial' had anything to do from"),
        (["slow", "--queue", "mial"], 1, "no queue 'mial' had anything to do from"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    words: list[str], code: int, sentence: str, shop: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *words, "--data", str(shop.folder.parent)]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"crossdock: {sentence}")


def test_without_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "queue", "--data", str(tmp_path)]) == 1
    assert f"no tables in {tmp_path / 'tables'}: crossdock pipeline run makes them" in capsys.readouterr().err


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(verb, "find_spec", lambda name: None)
    assert main(["report", "queue", "--data", str(tmp_path)]) == 1
    assert "is not installed: the pipeline needs what `make install-pipeline` installs" in capsys.readouterr().err


def test_days_that_the_tables_do_not_reach(shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "queue", "--data", str(shop.folder.parent), "--until", "2027-01-01"]) == 0
    said = capsys.readouterr().out
    assert "nothing is in these days; the newest day in the tables is 2026-11-16: --until 2026-11-16\n" in said


def test_how_far_the_tables_are_and_what_is_not_in_them(tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tables.folder.parent / "lake"
    floor, lake = AllProtocols(), Lake(folder)
    floor.faktory().push("mail", [1])
    lake.add(floor.dispatcher.events)
    ledger = Ledger(tables.folder / "facts" / "segments")
    seen = survey(folder, [])
    assert seen.done is not None
    ledger.record(seen.done.lake, new(seen, {}))
    before = len(floor.dispatcher.events)
    main(["report", "queue", "--data", str(tables.folder.parent)])
    upto = dt.datetime.fromtimestamp(floor.dispatcher.events[-1].at, dt.UTC)
    assert f"tables up to {upto:%Y-%m-%d %H:%M:%S} UTC; nothing waits to be taken in\n" in capsys.readouterr().out
    floor.faktory().push("mail", [2])
    lake.add(floor.dispatcher.events[before:])
    main(["report", "queue", "--data", str(tables.folder.parent)])
    said = capsys.readouterr().out
    assert f"tables up to {upto:%Y-%m-%d %H:%M:%S} UTC; 1 segment of the lake (" in said
    assert ") not in them: crossdock pipeline run takes them in\n" in said
    assert "set aside" not in said
    (folder / "events" / "a stray").touch()
    min(folder.glob("events/*/*.parquet")).write_bytes(b"torn")
    main(["report", "queue", "--data", str(tables.folder.parent)])
    lacks = "the lake is not whole: 2 segments set aside, 1 date with segments missing; crossdock pipeline status names"
    assert lacks in capsys.readouterr().out
    lake.close()


def test_a_table_fits_the_terminal_by_its_texts_alone() -> None:
    long = "x" * 200
    table = Table(
        ("NAME", ">N", "BY DAY", "WHAT"), [("", "1,000", Trend([1, 0, 8]), long), (long, "1", Trend([0, 0, 0]), "b")]
    )
    page = Page("Title", ["fact"], [Section("Section", table, "a note")])
    lines = text(page, 60).split("\n")
    assert max(map(len, lines)) == 60
    assert "1,000  ▂ █" in text(page, 60)
    assert long in text(page, None)
    assert max(map(len, text(page, 10).split("\n"))) < 60  # too narrow for all: it is cut no further than can be read


def test_sparks() -> None:
    assert spark([]) == ""
    assert spark([0, 0]) == "  "
    assert spark([0, 1, 50, 100]) == " ▁▅█"
    assert spark([-5.0, 5.0]) == " █"
    assert len(spark(list(range(366)))) <= 30
    assert squeezed([1, 2, 3, 4, 5], 3) == [3, 7, 5]
