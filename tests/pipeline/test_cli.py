"""`crossdock pipeline` as people type it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crossdock.cli import pipeline as verb
from crossdock.cli.main import main
from tests.pipeline.classes import quick
from tests.pipeline.conftest import Grown


def test_status_tells_what_is_in_the_tables(grown: Grown, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_status_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "status", "--data", str(tmp_path)]) == 0
    assert "taken in   0 events of 0 segments, 0 batches" in capsys.readouterr().out


def test_without_java_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["pipeline", "run", "--data", str(tmp_path)]) == 1
    assert f"JAVA_HOME={tmp_path} has no bin/java: install Java 17 or newer" in capsys.readouterr().err


def test_a_folder_mistyped_does_not_become_one_of_empty_tables(tmp_path: Path) -> None:
    missing = tmp_path / "mistyped"
    words = [sys.executable, "-m", "crossdock", "pipeline", "run", "--data", str(missing)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"there is no lake in {missing}/lake yet: start the server, or name its folder by --lake" in done.stderr
    assert not missing.exists()


def test_without_spark_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verb, "find_spec", lambda name: None)
    assert main(["pipeline", "status", "--data", str(tmp_path)]) == 1
    assert "pyspark is not installed: the pipeline needs what `make install-pipeline`" in capsys.readouterr().err


def test_a_stream_is_not_left_to_a_connect_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "stream", "--data", str(tmp_path), "--master", "sc://localhost"]) == 2
    assert "a Connect server runs the batches of a stream itself" in capsys.readouterr().err


def test_a_setting_of_spark_has_a_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "run", "--data", str(tmp_path), "--conf", "spark.ui.enabled"]) == 2
    assert "--conf spark.ui.enabled is not KEY=VALUE" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_tells_each_time_of_segments_that_are_missing(grown: Grown, classes: Path, tmp_path: Path) -> None:
    lake, tables = (shutil.copytree(each, tmp_path / each.name) for each in (grown.lake, grown.tables))
    min((lake / "events").glob("*/*.parquet")).unlink()
    words = [sys.executable, "-m", "crossdock", "pipeline", "run", "--lake", str(lake), "--tables", str(tables)]
    options = quick(classes).replace("-XX:+UseSerialGC", "")
    done = subprocess.run(
        words, env={**os.environ, "JAVA_TOOL_OPTIONS": options}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "put the others back from a copy of the lake" in done.stderr
