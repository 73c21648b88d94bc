"""The whole pipeline on a real standalone cluster: a master and two workers on loopback."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.clusters import ENV, HOME, SOURCE, flags, on_cluster, standalone
from tests.pipeline.conftest import Grown
from tests.pipeline.pictures import assert_same, picture
from tests.pipeline.replays import replays
from tests.support.patience import PROGRAM_PATIENCE_S

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the workers and their logs."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def master(classes: Path, folder: Path) -> Iterator[str]:
    with standalone(classes, folder) as url:
        yield url


def test_the_whole_pipeline_on_a_master_and_two_workers(
    grown: Grown, classes: Path, master: str, folder: Path, tmp_path: Path
) -> None:
    submit = [str(HOME / "bin" / "spark-submit"), "--master", master, *flags(on_cluster(classes))]
    folders = ["--lake", str(grown.lake), "--tables", str(tmp_path / "tables")]
    done = subprocess.run(
        [*submit, str(SOURCE / "crossdock" / "__main__.py"), "pipeline", "run", *folders],
        env=ENV,
        timeout=PROGRAM_PATIENCE_S,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "took in" in done.stdout
    for name in ("one", "two"):
        assert "Asked to launch executor" in (folder / f"{name}.log").read_text(), f"worker {name} had a part in it"
    assert_same(picture(tmp_path / "tables"), picture(grown.tables))


def test_a_replay_on_a_master_and_two_workers(grown: Grown, classes: Path, master: str, tmp_path: Path) -> None:
    replays(grown.lake, tmp_path, master, on_cluster(classes))
