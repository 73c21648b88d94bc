"""`crossdock pipeline` as people type it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crossdock.cli.commands import pipeline as verb
from crossdock.cli.main import main
from crossdock.journal.data_dir import DATABASE
from crossdock.lake.manifest import DONE
from tests.pipeline.classes import quick
from tests.pipeline.conftest import Grown
from tests.support.command_line import Operator


def test_status_shows_what_is_in_the_tables(grown: Grown, capsys: pytest.CaptureFixture[str]) -> None:
    folders = ["--lake", str(grown.lake), "--tables", str(grown.tables)]
    assert main(["pipeline", "status", *folders]) == 0
    said = capsys.readouterr().out
    rows, segments = (sum(getattr(each, name) for each in grown.ran) for name in ("rows", "segments"))
    assert f"taken in   {rows:,} events of {segments} segments, 2 batches\nwaiting    nothing\n" in said
    assert main(["pipeline", "status", "--json", *folders]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["events"], told["batch"], told["set_aside"]) == (rows, 2, {})
    assert {table["name"]: table["batch"] for table in told["tables"]} == dict.fromkeys(
        (table["name"] for table in told["tables"]), 2
    )


@pytest.fixture
def fresh(tmp_path: Path) -> str:
    """A data folder whose server has not written a segment yet."""
    (tmp_path / "fresh").mkdir()
    (tmp_path / "fresh" / DATABASE).touch()
    return str(tmp_path / "fresh")


def test_status_of_nothing(fresh: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "status", "--data", fresh]) == 0
    assert "taken in   0 events of 0 segments, 0 batches" in capsys.readouterr().out
    (Path(fresh) / "lake" / "events").mkdir(parents=True)
    assert main(["pipeline", "status", "--lake", f"{fresh}/lake"]) == 0


VERBS = [
    ["pipeline", "run"],
    ["pipeline", "stream"],
    ["pipeline", "rebuild"],
    ["pipeline", "status"],
    ["lake", "status"],
    ["job", "replay", "--queue", "mail", "--dry"],
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_folder_without_a_lake_is_reported_and_nothing_is_made(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "mistyped"
    assert main([*verb, "--data", str(missing)]) == 1
    assert f"there is no lake in {missing}/lake yet: start the server, or name" in capsys.readouterr().err
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
def test_a_lake_without_its_manifest_is_not_taken_for_empty(
    verb: list[str], grown: Grown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = shutil.copytree(grown.lake, tmp_path / "lake")
    (lake / DONE).unlink()
    assert main([*verb, "--data", str(tmp_path)]) == 1
    assert "_done.json is gone, and segments are there" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["lake"]


def test_without_java_it_says_what_to_do(
    fresh: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["pipeline", "run", "--data", fresh]) == 1
    assert f"JAVA_HOME={tmp_path} has no bin/java: install Java 17 or newer" in capsys.readouterr().err


def test_without_spark_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verb, "find_spec", lambda name: None)
    assert main(["pipeline", "status", "--data", str(tmp_path)]) == 1
    assert "pyspark is not installed: the pipeline needs what `make install-pipeline`" in capsys.readouterr().err


def test_a_stream_is_not_left_to_a_connect_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "stream", "--data", str(tmp_path), "--master", "sc://localhost"]) == 2
    assert "a Connect server runs the batches of a stream itself" in capsys.readouterr().err


def test_a_setting_of_spark_has_a_value(fresh: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "run", "--data", fresh, "--conf", "spark.ui.enabled"]) == 2
    assert "--conf spark.ui.enabled is not KEY=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize("master", ["sc://127.0.0.1:1", "spark://127.0.0.1:1,127.0.0.1:2"])
def test_an_unreachable_master_is_reported_at_once(fresh: str, master: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "run", "--data", fresh, "--master", master]) == 1
    assert f"nobody answers at {master} (Connection refused): start it" in capsys.readouterr().err


@pytest.mark.slow
def test_a_failed_start_of_spark_is_reported_in_a_sentence(fresh: str, tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    ended = operator.run("pipeline", "run", "--data", fresh, "--master", "no such place")
    assert ended.code == 1 and "crossdock: Spark does not start" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("name", ["a*b", "a?b", "a[b]", "a{b,c}", "a\\b", "a%20b"])
def test_a_folder_whose_name_is_a_pattern_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / name / "lake"
    (lake / "events").mkdir(parents=True)
    assert main(["pipeline", "status", "--data", str(tmp_path / name)]) == 1
    assert f"the folder {lake} has " in capsys.readouterr().err
    (tmp_path / "link").symlink_to(tmp_path / name)
    assert main(["pipeline", "status", "--data", str(tmp_path / "link")]) == 1
    assert "which Spark takes for a pattern" in capsys.readouterr().err


@pytest.mark.slow
def test_each_run_reports_segments_that_are_missing_or_set_aside(grown: Grown, classes: Path, tmp_path: Path) -> None:
    lake, tables = (shutil.copytree(each, tmp_path / each.name) for each in (grown.lake, grown.tables))
    min((lake / "events").glob("*/*.parquet")).unlink()
    (lake / "events" / "a stray").touch()
    words = [sys.executable, "-m", "crossdock", "pipeline", "run", "--lake", str(lake), "--tables", str(tables)]
    options = quick(classes).replace("-XX:+UseSerialGC", "")
    for _ in range(2):
        done = subprocess.run(
            words, env={**os.environ, "JAVA_TOOL_OPTIONS": options}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1 and "put the others back from a copy of the lake" in done.stderr
        assert "set aside 1 segment: `crossdock pipeline status` names them" in done.stderr
