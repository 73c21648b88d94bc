"""`crossdock report` on the command line: terminal, JSON, HTML page, and errors."""

import datetime as dt
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crossdock.cli.main import main
from crossdock.cli.render.page import Page, Section, Table, Trend
from crossdock.cli.render.queue_pages import outlook_text, ratio
from crossdock.cli.render.terminal import spark, squeezed, text
from crossdock.pipeline.reports.outlook import outlook
from tests.reports.pages import Checked
from tests.reports.tables import LAST, Tables, at
from tests.support.patience import PROGRAM_PATIENCE_S

SLO = ["slo", "--queue", "mail", "--done-within", "5s", "--start-within", "1s", "--ratio", "0.9"]
COST = ["cost", "--price", "0.36", "--currency", "EUR"]
REPORTS = (
    ["queue"], ["queue", "mail"], ["failures"], ["workers"], ["slow"], SLO, ["capacity"], COST, ["flaky"],
)  # fmt: skip


def arguments(tables: Tables, *words: str) -> list[str]:
    return ["report", *words, "--data", str(tables.folder.parent), "--until", str(LAST)]


@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[0] + "-one" * (words == ["queue", "mail"]))
def test_control_characters_from_clients_are_not_printed_to_a_terminal(
    words: list[str], shop: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(shop, *words)) == 0
    said = capsys.readouterr().out
    assert "2026-11-10 to 2026-11-16, 7 days, UTC; observed: 2d\ntables up to 2026-11-16 05:09:00 UTC; " in said
    assert "2 servers: alpha, beta\n" in said
    assert all(char.isprintable() or char == "\n" for char in said)


def test_the_report_of_queues(shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments(shop, "queue"))
    said = capsys.readouterr().out
    assert "QUEUE    ARRIVED  DEPARTED  DONE     RATE  DONE BY DAY\n" in said
    assert "mail          30        27    24     12/d  ███\n" in said
    assert "QUEUE    DONE  DIED  JOBS OK  FAILED  RETRIED  TRIES OK\n" in said
    assert "mail       24     3   88.9 %       6        3    80.0 %\n" in said
    assert "grows by 6.67/h, drains in 3m if nothing arrives\n" in said
    assert "never" not in said


def test_local_times_have_the_offset_of_the_zone(
    shop: Tables, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        for words in (["queue"], ["failures"], ["slow"], ["capacity"], SLO):
            assert main(["--local", *arguments(shop, *words)]) == 0
            said = capsys.readouterr().out
            assert "tables up to 2026-11-16 10:54:00+05:45; " in said
            assert said.count("+05:45") > 1, words
        assert main(["--local", *arguments(shop, "queue", "mail", "--html", "-")]) == 0
        page = capsys.readouterr().out
        assert "&quot;utc&quot;:false" in page, "hours"
        assert "&quot;utc&quot;:true" in page, "days are days in UTC"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_report_of_objectives(shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments(shop, *SLO))
    said = capsys.readouterr().out
    assert "mail   90 % done in 5s          21  27  77.8 %       -122 %  slow burn\n" in said
    assert "mail   90 % done in 5s     2.22  2.22  2.22  2.22  slow burn\n" in said


def test_objectives_and_the_price_are_in_the_settings(
    shop: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "crossdock.toml"
    config.write_text(
        '[slo.mail]\ndone_within = "5s"\nratio = 0.9\n[pipeline]\nprice_per_worker_hour = 0.36\ncurrency = "EUR"\n',
        "utf-8",
    )
    where = ["--config", str(config), "--tables", str(shop.folder), "--until", str(LAST)]
    assert main(["report", "slo", *where]) == 0
    assert "90 % done in 5s" in capsys.readouterr().out
    assert main(["report", "cost", *where]) == 0
    said = capsys.readouterr().out
    assert "COST EUR" in said and "0.36 EUR per worker hour" in said
    assert main(["report", "slo", "--queue", "billing", *where]) == 1
    assert "the queue billing has no objective: set [slo.billing] in the settings" in capsys.readouterr().err


@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[0] + "-one" * (words == ["queue", "mail"]))
def test_a_report_as_json(words: list[str], shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments(shop, *words), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    tables = found.pop("tables")
    assert (tables["first"], tables["last"], tables["lakes"]) == ("2026-11-10", "2026-11-16", 0)
    assert any(found.values())


@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[0] + "-one" * (words == ["queue", "mail"]))
def test_a_report_as_a_page(words: list[str], shop: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.html"
    assert main([*arguments(shop, *words), "--html", str(file)]) == 0
    assert capsys.readouterr().err.startswith(f"wrote {file}, ")
    page = Checked(file.read_text("utf-8"))
    assert page.plots
    assert ("<script>" in page.text) is (words[0] in ("failures", "workers", "slow"))  # text, never an element
    assert main([*arguments(shop, *words), "--html", "-"]) == 0
    assert Checked(capsys.readouterr().out).plots == page.plots


def test_the_page_of_a_queue_has_its_plots(shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    main([*arguments(shop, "queue", "mail"), "--html", "-"])
    page = Checked(capsys.readouterr().out)
    assert list(page.plots) == [
        "Jobs done and failed attempts, jobs",
        "Jobs an hour, jobs an hour",
        "Jobs in the queue, jobs",
        "Waits, percentiles of each day, time",
        "Runs, percentiles of each day, time",
        "Jobs, percentiles of each day, time",
    ]
    ended = page.plots["Jobs done and failed attempts, jobs"]
    assert {each["label"]: each["values"][-1] for each in ended["series"]} == {"done": 8, "failed": 2}
    assert dt.datetime.fromtimestamp(ended["x"][-1], dt.UTC).date() == LAST
    hours = page.plots["Jobs an hour, jobs an hour"]["x"]
    assert dt.datetime.fromtimestamp(hours[0], dt.UTC) == at(2, 5)  # no empty hours before the first event
    assert "jobs, 2026-11-10 to 2026-11-16, tables up to 2026-11-16 05:09:00 UTC" in page.text


def test_a_page_does_not_replace_a_folder_or_device(shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments(shop, "queue"), "--html", os.devnull]) == 2
    assert "--html /dev/null is not a file; - is stdout" in capsys.readouterr().err
    assert main([*arguments(shop, "queue"), "--html", str(shop.folder)]) == 2
    assert "is a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["queue", "--days", "0"], 2, "Invalid value for '--days': 0 is not in the range 1<=x<=366"),
        (["queue", "--days", "many"], 2, "Invalid value for '--days': 'many' is not a valid integer"),
        (["queue", "--until", "yesterday"], 2, "Invalid value for '--until': 'yesterday' does not match"),
        (["queue", "--until", "0001-01-03"], 2, "--until 0001-01-03 has no 7 days before it"),
        (["queue", "--json", "--html", "-"], 2, "--json and --html - both write to stdout; name a file for the page"),
        (["queue", "mial"], 1, "no queue 'mial' had anything to do from"),
        (["failures", "--queue", "mial"], 1, "no queue 'mial' had anything to do from"),
        (["slow", "--queue", "mial"], 1, "no queue 'mial' had anything to do from"),
        (["queue", "--server", "gamma", "--until", str(LAST)], 1, "no server 'gamma' had anything to do from"),
        (["slo"], 1, "no queue has an objective: set [slo.QUEUE] in the settings file, or try one with --queue and"),
        (["slo", "--done-within", "5m"], 2, "--done-within, --start-within and --ratio need --queue"),
        (["slo", "--queue", "mail", "--ratio", "0.9"], 2, "--ratio needs --done-within or --start-within"),
        (["slo", "--queue", "mail", "--done-within", "5m", "--ratio", "1"], 2, "Invalid value for '--ratio': 1"),
        (["cost"], 1, "there is no price: set pipeline.price_per_worker_hour in the settings file, or pass --price"),
        (["capacity", "--target-wait", "soon"], 2, "Invalid value for '--target-wait': 'soon' is not a span of time"),
    ],
)
def test_each_error_is_one_sentence(
    words: list[str], code: int, sentence: str, shop: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *words, "--data", str(shop.folder.parent)]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"crossdock: {sentence}")


def test_missing_tables_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "queue", "--data", str(tmp_path)]) == 1
    assert f"no tables in {tmp_path / 'tables'}: make them with crossdock pipeline run" in capsys.readouterr().err


_WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from crossdock.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def run_without(names: set[str], *words: str) -> "subprocess.CompletedProcess[str]":
    """Run Crossdock where these packages are not installed."""
    program = [sys.executable, "-c", _WITHOUT.format(names=names), *words]
    return subprocess.run(program, capture_output=True, text=True, timeout=PROGRAM_PATIENCE_S, check=False)


@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[0] + "-one" * (words == ["queue", "mail"]))
def test_reports_need_no_pyspark(words: list[str], shop: Tables) -> None:
    ran = run_without({"pyspark", "py4j", "pandas", "numpy"}, *arguments(shop, *words), "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["tables"]["upto"] == "2026-11-16T05:09:00Z"


def test_the_missing_extra_is_named(tmp_path: Path) -> None:
    ran = run_without({"deltalake"}, "report", "queue", "--data", str(tmp_path))
    assert ran.returncode == 2
    assert ran.stderr == "crossdock: deltalake is not installed; install it with: pip install 'crossdock[reports]'\n"


def test_days_after_the_newest_data_are_reported(shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "queue", "--data", str(shop.folder.parent), "--until", "2027-01-01"]) == 0
    said = capsys.readouterr().out
    assert "no data in these days; the newest day in the tables is 2026-11-16: use --until 2026-11-16\n" in said


# Text


@pytest.mark.parametrize(
    ("depth", "arriving", "served", "says"),
    [
        (0, 1.0, 2.0, "empty"),
        (100, 0.0, 0.5, "empty in 3m20s"),
        (1_440, 0.4, 0.2, "grows by 12/min, drains in 2h if nothing arrives"),
        (60, 0.5, 0.5, "keeps its depth, drains in 2m if nothing arrives"),
        (5, 0.1, 0.0, "grows by 6/min, no job departs"),
        (5, 0.0, 0.0, "idle: nothing arrives or departs"),
    ],
)
def test_the_outlook_in_words(depth: int, arriving: float, served: float, says: str) -> None:
    assert outlook_text(outlook(at(), depth, None, 3_600.0, arriving, served)) == says


def test_ratios_near_one_have_more_digits() -> None:
    assert [ratio(of) for of in (None, 0.0, 0.5, 0.9, 0.999, 0.9999, 1.0)] == [
        "-", "0 %", "50.0 %", "90.0 %", "99.90 %", "99.990 %", "100 %",
    ]  # fmt: skip


@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[0] + "-one" * (words == ["queue", "mail"]))
def test_reports_fit_80_columns(
    words: list[str], tables: Tables, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With names and messages as long as real ones."""
    for n in range(40):
        queue = "mail" if n % 2 else "billing.invoices.monthly-statements"
        job = tables.job(queue, "shop.invoices.jobs.SendMonthlyStatement", jid=f"{n:032x}").push(at(n % 3, 5, n))
        job.lease(at(n % 3, 5, n, 1), f"worker-{n % 7}@host-{n % 3}.example.org:4711")
        if n % 5 < 2:
            message = f"no answer from 10.0.0.{n} after 30 s while fetching https://example.org/items/{n}"
            job.fail(at(n % 3, 5, n, 2), "requests.exceptions.ConnectTimeout", message, dies=n % 5 == 1)
        if n % 5 == 0:
            job.lease(at(n % 3, 5, n, 9))
        if n % 5 != 1:
            job.succeed(at(n % 3, 7, n, 3_000))
    tables.finish()
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(arguments(tables, *words)) == 0
    for line in capsys.readouterr().out.splitlines():
        assert len(line) <= 80, line


def test_a_table_fits_the_terminal_by_wrapping_only_long_texts() -> None:
    long = "x" * 200
    table = Table(
        ("NAME", ">N", "BY DAY", "WHAT"), [("", "1,000", Trend([1, 0, 8]), long), (long, "1", Trend([0, 0, 0]), "b")]
    )
    page = Page("Title", ["fact"], [Section("Section", table, "a note")])
    lines = text(page, 60).split("\n")
    assert max(map(len, lines)) == 60
    assert "1,000  ▂ █" in text(page, 60)
    assert long in text(page, None)
    assert max(map(len, text(page, 10).split("\n"))) < 60  # too narrow for all columns: texts keep a readable minimum


def test_columns_are_left_out_before_texts_become_unreadable() -> None:
    table = Table(("NAME", ">N", "WORKER"), [("a name of some words", "1", "worker-1@host-1.example.org")], ("WORKER",))
    page = Page("Title", [], [Section("Section", table)])
    assert "WORKER" in text(page, 60)
    assert "WORKER" not in text(page, 30)


def test_sparklines_are_drawn() -> None:
    assert spark([]) == ""
    assert spark([0, 0]) == "  "
    assert spark([0, 1, 50, 100]) == " ▁▅█"
    assert spark([-5.0, 5.0]) == " █"
    assert len(spark(list(range(366)))) <= 30
    assert squeezed([1, 2, 3, 4, 5], 3) == [3, 7, 5]
