"""`crossdock pipeline` on the command line: what it prints, and how it fails."""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from crossdock.cli import pipeline_options
from crossdock.cli.commands import pipeline as verbs
from crossdock.cli.main import main
from crossdock.journal.data_dir import DATABASE
from crossdock.lake.table import Lake as Opened
from crossdock.pipeline.catalog import Tables
from tests.pipeline.clusters import flags
from tests.pipeline.conftest import SMALL, Grown
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import work
from tests.pipeline.pictures import rows
from tests.support.all_protocols import AllProtocols
from tests.support.command_line import Operator
from tests.support.patience import PROGRAM_PATIENCE_S


class Folders(NamedTuple):
    lake: Path
    tables: Path

    @property
    def words(self) -> list[str]:
        return ["--lake", str(self.lake), "--tables", str(self.tables)]


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Shell:
    """Runs commands in this process, with its Spark session."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folders: Folders) -> None:
        self._capsys = capsys
        self.folders = folders

    def __call__(self, *words: str) -> Said:
        self._capsys.readouterr()
        code = main(["pipeline", *words, *self.folders.words])
        return Said(code, *self._capsys.readouterr())


@pytest.fixture
def shell(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """On a lake of three files."""
    monkeypatch.setattr(verbs, "session", lambda values, progress, small=False: spark)
    monkeypatch.setattr(verbs, "end_session", lambda spark: None)
    fill(tmp_path / "lake", "one", 3)
    return Shell(capsys, Folders(tmp_path / "lake", tmp_path / "tables"))


def fill(folder: Path, server: str, entries: int) -> None:
    all_protocols, lake, written = AllProtocols(), Lake(folder, server), 0
    for _ in range(entries):
        work(all_protocols.faktory(), "mail")
        all_protocols.dispatcher.advance(60)
        lake.add(all_protocols.dispatcher.events[written:])
        written = len(all_protocols.dispatcher.events)
    lake.close()


def test_a_run_says_what_it_made(shell: Shell) -> None:
    before = shell("status", "--json")
    assert json.loads(before.out)["lakes"][0]["waiting"] == 3
    assert not shell.folders.tables.exists(), "status changes nothing"
    done = shell("run")
    events = sum(file.rows for file in Opened.open(shell.folders.lake).files())
    assert done.code == 0 and re.fullmatch(rf"1 day, 19 tables, {events} events, \d+ s\n", done.out), done
    assert re.search(r"^\S+Z reading files: 3, events: \d+$", done.err, re.MULTILINE)
    assert shell("run")[:2] == (0, "nothing new\n")
    nothing = {"batches": 0, "files": 0, "rows": 0, "days": 0, "faults": [], "lost": []}
    assert json.loads(shell("run", "--json").out) == nothing
    assert shell("status").out.startswith(f"one: up to date  ({shell.folders.lake})\n")


def test_a_run_warns_of_events_that_the_lake_deleted_before_they_were_read(shell: Shell) -> None:
    """Of four days the first was read, and the next two are deleted."""
    all_protocols, lake, written = AllProtocols(), Lake(shell.folders.lake.with_name("old"), "old"), 0
    shell.folders = Folders(lake.folder, shell.folders.tables)
    dispatcher = all_protocols.dispatcher
    for day in range(4):
        work(all_protocols.faktory(), "mail")
        lake.add(dispatcher.events[written:])
        written = len(dispatcher.events)
        if day == 0:
            assert shell("run").err.count("warning") == 0
        dispatcher.advance(86_400)
    first, _, last = lake.expire(1, dispatcher.now.wall - 3_600)
    done = shell("run")
    assert done.code == 0
    assert re.fullmatch(r"\d days?, 19 tables, 3 events, 2 journal entries lost, \d+ s\n", done.out), done.out
    warning = (
        f"warning: events of old are missing from the tables: the lake deleted those of {first} to {last}, 2 journal "
        "entries, before the pipeline read them. Run the pipeline more often, or raise lake.keep_days\n"
    )
    assert warning in done.err
    assert "warning" not in shell("run").err, "the tables are past them"
    lake.close()


@pytest.mark.slow
def test_a_run_in_a_process_of_its_own(grown: Grown, classes: Path, tmp_path: Path) -> None:
    """From a cold start. A second run has nothing to do, and would not find Java."""
    operator = Operator(tmp_path)
    operator.patience_s = PROGRAM_PATIENCE_S
    words = ("pipeline", "run", "--lake", str(grown.lake), "--tables", str(tmp_path / "tables"))
    done = operator.run(*words, "--master", "local[1]", "--cds", str(classes), *flags(SMALL))
    assert done.code == 0, done.err
    total = sum(each.rows for each in grown.ran)
    assert re.fullmatch(rf"\d+ days, 19 tables, {total:,} events, \d+ s\n", done.out)
    operator.environment |= {"PATH": "/nowhere", "JAVA_HOME": ""}
    assert operator.output(*words) == "nothing new\n"
    again = operator.run(*words[:-1], str(tmp_path / "others"))
    assert again.code == 1 and "which needs Java, and there is none on the PATH: install Java" in again.err


def test_status_shows_what_is_in_the_tables(grown: Grown, capsys: pytest.CaptureFixture[str]) -> None:
    folders = Folders(grown.lake, grown.tables).words
    assert main(["pipeline", "status", *folders]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"one: up to date  ({grown.lake})\n\nTABLE ")
    assert main(["pipeline", "status", "--json", *folders]) == 0
    tables = {table["name"]: table for table in json.loads(capsys.readouterr().out)["tables"]}
    assert len(tables) == 19
    for name in ("attempts", "daily", "flows"):
        dates = [row["date"].isoformat() for row in rows(grown.tables, name)]
        found = (tables[name]["rows"], tables[name]["first"], tables[name]["last"])
        assert found == (len(dates), min(dates), max(dates))


@pytest.fixture
def fresh(tmp_path: Path) -> str:
    """A data folder whose server has not written events to its lake yet."""
    (tmp_path / "fresh").mkdir()
    (tmp_path / "fresh" / DATABASE).touch()
    return str(tmp_path / "fresh")


def test_a_server_without_a_lake_yet(fresh: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "status", "--data", fresh]) == 0
    assert f"?: up to date  ({fresh}/lake)" in capsys.readouterr().out
    assert main(["pipeline", "run", "--data", fresh]) == 0
    assert capsys.readouterr().out == "nothing new\n"
    for verb in ("stream", "rebuild"):
        assert main(["pipeline", verb, "--data", fresh]) == 1
        assert f"the server has not written its lake in {fresh}/lake yet" in capsys.readouterr().err


def test_another_server_is_added(shell: Shell, tmp_path: Path) -> None:
    fill(tmp_path / "two", "two", 2)
    assert shell("add", str(tmp_path / "two")).out == f"added the lake of two in {tmp_path}/two\n"
    assert shell("add", str(tmp_path / "two")).out == f"known already: the lake of two in {tmp_path}/two\n"
    assert shell("run").code == 0
    found = shell("status").out
    assert f"one: up to date  ({tmp_path}/lake)\n" in found and f"two: up to date  ({tmp_path}/two)\n" in found
    assert {row["server"] for row in rows(shell.folders.tables, "daily")} == {"one", "two"}
    fill(tmp_path / "same", "two", 1)
    taken = shell("add", str(tmp_path / "same"))
    assert taken.code == 1 and f"already have a server named two, with the lake in {tmp_path}/two: give" in taken.err
    missing = shell("add", str(tmp_path / "none"))
    assert missing.code == 1 and f"there is no lake in {tmp_path}/none" in missing.err
    shutil.rmtree(tmp_path / "two")
    gone = shell("status")
    assert gone.code == 1 and f"two: there is no lake in {tmp_path}/two" in gone.out


def test_a_damaged_file_is_left_out_until_it_is_restored(shell: Shell) -> None:
    first, second, _ = sorted(shell.folders.lake.rglob("*.parquet"))
    whole = second.read_bytes()
    second.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
    refused = shell("run")
    assert refused.code == 1
    assert f"crossdock: {second} is damaged: " in refused.err and "crossdock pipeline skip" in refused.err
    sound = shell("skip", str(first))
    assert sound.code == 1 and f"{first} is not damaged; there is no reason to leave it out" in sound.err
    assert "has a file" in shell("skip", "date=2026-11-15/none.parquet").err
    inside = str(second.relative_to(shell.folders.lake))
    assert shell("skip", str(second)).out.startswith(f"left out {inside}: {second} is damaged: ")
    assert f"{inside} is left out already" in shell("skip", str(second)).err
    assert shell("run").out.startswith("1 day, 19 tables, 6 events, ")
    assert f"left out: {inside} of one, 3 events: " in shell("status").out
    assert shell("check").out == "all checks passed\n"
    assert shell("rebuild").out == "rebuilt 1 day from 6 events of 2 files\n"
    assert len(rows(shell.folders.tables, "attempts")) == 2
    second.write_bytes(whole)
    assert shell("rebuild").out == "rebuilt 1 day from 9 events of 3 files\n"
    assert len(rows(shell.folders.tables, "attempts")) == 3
    assert "left out" not in shell("status").out
    assert shell("check").out == "all checks passed\n"


@pytest.fixture
def broken(grown: Grown, tmp_path: Path) -> Tables:
    shutil.copytree(grown.tables, tmp_path / "tables")
    return Tables(str(tmp_path / "tables"))


def checked(grown: Grown, tables: Tables, capsys: pytest.CaptureFixture[str]) -> list[str]:
    folders = ["--lake", str(grown.lake), "--tables", tables.location]
    assert main(["pipeline", "check", *folders]) == 1
    found = [line for line in capsys.readouterr().err.splitlines() if not line.endswith("checking tables")]
    assert main(["pipeline", "check", "--json", *folders]) == 1
    assert json.loads(capsys.readouterr().out)["faults"] == found
    return found


def test_check_finds_rows_that_are_there_twice(
    grown: Grown, broken: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("hourly", "attempts", "counts_hour"):
        table = broken[name]
        file = max(table.files())
        part = table.read(file)
        twice = part.append_column("date", pa.array([file.date] * part.num_rows, pa.date32()))
        table.commit(table.handle(), table.write(twice))
    found = checked(grown, broken, capsys)
    assert len(found) == 4
    assert re.match(r"the lake of one has \d+ events of \S+, and the tables count \d+: run `crossdock", found[0])
    assert re.match(r"the table attempts has \d+ rows of one and \S+, and \d+ leases ended then: run", found[1])
    assert re.match(r"the table hourly has \d+ keys with several rows: run `crossdock pipeline rebuild`", found[2])
    assert re.match(r"the table attempts has \d+ keys with several rows", found[3])


def test_check_finds_rows_that_are_missing(grown: Grown, broken: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    date = max(file.date for file in broken["attempts"].files())
    for name in ("attempts", "counts_hour"):
        DeltaTable(broken[name].location).delete(f"date = '{date.isoformat()}'")
    found = checked(grown, broken, capsys)
    assert len(found) == 2
    assert found[0].endswith(f"events of {date}, and the tables count 0: run `crossdock pipeline rebuild`")
    assert found[1].startswith(f"the table attempts has 0 rows of one and {date}, and ")


def test_check_without_tables(grown: Grown, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "check", "--lake", str(grown.lake), "--tables", str(tmp_path / "none")]) == 1
    assert "there is no table lakes in" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


VERBS = [
    ["pipeline", "run"],
    ["pipeline", "stream"],
    ["pipeline", "rebuild"],
    ["pipeline", "status"],
    ["lake", "status"],
    ["job", "replay", "--queue", "mail", "--dry"],
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_folder_without_a_lake_is_reported_and_nothing_is_created(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "mistyped"
    assert main([*verb, "--data", str(missing)]) == 1
    assert f"there is no lake in {missing}/lake: start the server, or name" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", VERBS[:4], ids=" ".join)
def test_the_folder_above_the_lake_is_not_the_lake(
    verb: list[str], grown: Grown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*verb, "--lake", str(grown.lake.parent), "--tables", str(tmp_path / "tables")]
    assert main(words) == 1
    assert f"there is no lake in {grown.lake.parent}; it is in {grown.lake}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_lake_with_a_damaged_log_is_reported(
    verb: list[str], grown: Grown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = shutil.copytree(grown.lake, tmp_path / "lake")
    entry = max((lake / "_delta_log").glob("*.json"))
    entry.write_bytes(b"{")
    assert main([*verb, "--data", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert f"{entry.name} is damaged: it is torn" in said.out + said.err
    assert not list(tmp_path.glob("tables/[a-z]*"))


def test_missing_java_is_reported_with_a_remedy(
    grown: Grown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["pipeline", "run", *Folders(grown.lake, tmp_path / "tables").words]) == 1
    assert f"JAVA_HOME={tmp_path} has no bin/java: install Java 17 or newer" in capsys.readouterr().err


def test_missing_spark_is_reported_with_the_package_to_install(
    grown: Grown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline_options, "find_spec", lambda name: None)
    assert main(["pipeline", "run", *Folders(grown.lake, tmp_path / "tables").words]) == 1
    assert "pyspark is not installed; install the pipeline with: pip install" in capsys.readouterr().err


def test_a_stream_on_a_connect_server_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "stream", "--data", str(tmp_path), "--master", "sc://localhost"]) == 2
    assert "a Spark Connect server cannot run this stream" in capsys.readouterr().err


def test_a_conf_option_without_a_value_is_refused(
    grown: Grown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = Folders(grown.lake, tmp_path / "tables").words
    assert main(["pipeline", "run", *words, "--conf", "spark.ui.enabled"]) == 2
    assert "--conf spark.ui.enabled is not KEY=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize("master", ["sc://127.0.0.1:1", "spark://127.0.0.1:1,127.0.0.1:2"])
def test_an_unreachable_master_is_reported_at_once(
    master: str, grown: Grown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = Folders(grown.lake, tmp_path / "tables").words
    assert main(["pipeline", "run", *words, "--master", master]) == 1
    assert f"no server answers at {master} (Connection refused): start it" in capsys.readouterr().err


@pytest.mark.slow
def test_a_failed_start_of_spark_is_reported_in_a_sentence(grown: Grown, tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    operator.patience_s = PROGRAM_PATIENCE_S
    words = Folders(grown.lake, tmp_path / "tables").words
    ended = operator.run("pipeline", "run", *words, "--master", "no such place")
    assert ended.code == 1 and "crossdock: Spark does not start" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("name", ["a*b", "a?b", "a[b]", "a{b,c}", "a\\b", "a%20b"])
def test_a_folder_whose_name_is_a_pattern_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / name / "lake"
    (lake / "_delta_log").mkdir(parents=True)
    assert main(["pipeline", "status", "--data", str(tmp_path / name)]) == 1
    assert f"the folder {lake} has " in capsys.readouterr().err
    (tmp_path / "link").symlink_to(tmp_path / name)
    assert main(["pipeline", "status", "--data", str(tmp_path / "link")]) == 1
    assert "which Spark reads as a pattern" in capsys.readouterr().err


def test_locations_may_be_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    where = pipeline_options.locations(
        {"lake": "s3://jobs/eu-1/", "tables": "gs://jobs/a%20b", "data": None, "config": None}
    )
    assert (where.lake, where.tables) == ("s3://jobs/eu-1", "gs://jobs/a%20b")
    (tmp_path / "mine" / "_delta_log").mkdir(parents=True)
    where = pipeline_options.locations({"lake": "mine", "tables": "made", "data": None, "config": None})
    assert (where.lake, where.tables) == (f"{tmp_path}/mine", f"{tmp_path}/made")
