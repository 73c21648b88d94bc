"""Java that is missing, broken or too old is told in one sentence with its cure; and how it is called."""

import os
from pathlib import Path

import pytest

from crossdock.pipeline.environment import OLDEST, check_java
from crossdock.pipeline.errors import NoJava, PipelineError
from crossdock.pipeline.session import _conf


def fake(folder: Path, script: str) -> dict[str, str]:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


def test_the_one_that_is_here_will_do() -> None:
    assert check_java() >= OLDEST
    assert check_java({"PATH": os.environ["PATH"]}) >= OLDEST


@pytest.mark.parametrize(
    ("said", "version"), [('openjdk version "11.0.2" 2019-01-15', 11), ('java version "1.8.0_392"', 8)]
)
def test_too_old(tmp_path: Path, said: str, version: int) -> None:
    with pytest.raises(NoJava, match=f"needs Java {OLDEST}, and .* is Java {version}: install Java {OLDEST} or newer"):
        check_java(fake(tmp_path, f"echo '{said}' >&2"))


def test_missing_or_broken(tmp_path: Path) -> None:
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


def test_an_archive_of_classes_in_a_folder_with_a_space(tmp_path: Path) -> None:
    archive = tmp_path / "my archive.jsa"
    assert (
        f'"-XX:ArchiveClassesAtExit={archive}"'
        in _conf("local[1]", False, {}, archive)["spark.driver.extraJavaOptions"]
    )


def test_the_java_of_a_connect_server_is_not_checked() -> None:
    assert _conf("sc://head", True, {"spark.sql.shuffle.partitions": "8"}, None)["spark.sql.shuffle.partitions"] == "8"
    with pytest.raises(PipelineError, match=r"--conf spark\.driver\.memory is the Connect server's affair"):
        _conf("sc://head", True, {"spark.driver.memory": "1g"}, None)
