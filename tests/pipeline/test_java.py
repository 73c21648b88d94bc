"""Missing, broken or old Java is reported in one sentence with a remedy. Options of the JVM, and paths for Spark."""

import os
import time
from pathlib import Path

import pytest

from crossdock.pipeline.class_archive import ClassArchive, automatic
from crossdock.pipeline.environment import OLDEST, check_java, spark_path
from crossdock.pipeline.errors import NoJava, PipelineError
from crossdock.pipeline.session import _conf, _connect_conf

JAVA = "spark.driver.extraJavaOptions"


def fake(folder: Path, script: str) -> dict[str, str]:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


def test_the_installed_java_is_accepted() -> None:
    assert check_java() >= OLDEST
    assert check_java({"PATH": os.environ["PATH"]}) >= OLDEST


@pytest.mark.parametrize(
    ("said", "version"), [('openjdk version "11.0.2" 2019-01-15', 11), ('java version "1.8.0_392"', 8)]
)
def test_old_java_is_refused(tmp_path: Path, said: str, version: int) -> None:
    with pytest.raises(NoJava, match=f"needs Java {OLDEST}, and .* is Java {version}: install Java {OLDEST} or newer"):
        check_java(fake(tmp_path, f"echo '{said}' >&2"))


def test_missing_or_broken_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match="there is none on the PATH: install Java"):
        check_java({"PATH": str(tmp_path)})
    with pytest.raises(NoJava, match=f"JAVA_HOME={tmp_path} has no bin/java: install Java"):
        check_java({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(NoJava, match="names no version"):
        check_java(fake(tmp_path / "mute", "exit 1"))
    broken = fake(tmp_path / "broken", "")
    (tmp_path / "broken" / "bin" / "java").write_text("no program")
    with pytest.raises(NoJava, match="does not run"):
        check_java(broken)


def test_small_work_has_its_own_settings() -> None:
    small, large = _conf("local[2]", {}, None, small=True), _conf("local[2]", {}, None)
    assert small["spark.driver.extraJavaOptions"].startswith("-XX:TieredStopAtLevel=1 -XX:+UseSerialGC ")
    assert large["spark.driver.extraJavaOptions"].startswith("-XX:+UseParallelGC ")
    assert (small["spark.sql.adaptive.enabled"], small["spark.sql.shuffle.partitions"]) == ("false", "1")
    assert "spark.sql.adaptive.enabled" not in large
    given = _conf("local[2]", {"spark.sql.shuffle.partitions": "9", "spark.driver.extraJavaOptions": "-Xss2m"}, None)
    assert given["spark.sql.shuffle.partitions"] == "9"
    assert given["spark.driver.extraJavaOptions"].startswith("-Xss2m -Dlog4j2")


def test_the_path_of_the_class_archive_may_have_a_space(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "my archive.jsa")
    assert archive.making
    assert "-XX:-BytecodeVerificationRemote" not in _conf("local[1]", {}, archive, small=True)[JAVA]
    assert f'"-XX:ArchiveClassesAtExit={tmp_path}/my archive.jsa.' in _conf("local[1]", {}, archive)[JAVA]
    archive.path.touch()
    assert (
        f'"-XX:SharedArchiveFile={tmp_path}/my archive.jsa" ' in _conf("local[1]", {}, ClassArchive(archive.path))[JAVA]
    )


def test_the_tenth_start_makes_the_archive_of_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = [automatic(making=number != 10) for number in range(1, 21)]
    assert [archive is not None and archive.making for archive in made] == [False] * 19 + [True]
    archive = made[-1]
    assert archive is not None
    assert not archive.finish(), "Java did not write it"
    archive.path.touch()
    used = automatic(making=True)
    assert used is not None and not used.making and "SharedArchiveFile" in used.options


def test_old_archives_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    automatic(making=True)
    folder = tmp_path / "crossdock"
    for name, age_s in (("spark-0.jsa", 31 * 86_400), ("spark-1.jsa", 86_400), ("spark-1.jsa.7.new", 7_200)):
        (folder / name).touch()
        os.utime(folder / name, (0, time.time() - age_s))
    automatic(making=True)
    assert {path.name for path in folder.iterdir() if path.suffix != ".starts"} == {"spark-1.jsa"}


def test_a_cache_folder_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "crossdock").mkdir()
    (tmp_path / "crossdock").chmod(0o777)
    assert automatic(making=True) is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert automatic(making=True) is None


def test_the_java_of_a_connect_server_is_not_configured() -> None:
    assert _connect_conf({"spark.sql.shuffle.partitions": "8"}, small=True)["spark.sql.shuffle.partitions"] == "8"
    with pytest.raises(PipelineError, match=r"--conf spark\.driver\.memory is a setting of the Connect server"):
        _connect_conf({"spark.driver.memory": "1g"}, small=False)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (Path("/mnt/my lake/a#b"), "file:///mnt/my lake/a#b"),
        ("/mnt/lake", "file:///mnt/lake"),
        ("file:///mnt/lake", "file:///mnt/lake"),
        ("s3://bucket/lake", "s3a://bucket/lake"),
        ("s3a://bucket/lake", "s3a://bucket/lake"),
        ("gs://bucket/lake", "gs://bucket/lake"),
        ("az://box/lake/x", "abfss://box@account.dfs.core.windows.net/lake/x"),
    ],
)
def test_locations_for_spark(location: str | Path, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    assert spark_path(location) == expected


def test_a_relative_location_starts_at_the_working_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert spark_path("lake") == f"file://{tmp_path}/lake"
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(PipelineError, match="set AZURE_STORAGE_ACCOUNT_NAME"):
        spark_path("az://box/lake")
