"""The whole pipeline on a real standalone cluster: a master and two workers on loopback."""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from crossdock.pipeline.catalog import Tables
from tests.pipeline.clusters import (
    ENV,
    HOME,
    SOURCE,
    Cluster,
    can_hide,
    flags,
    on_cluster,
    run_that_loses_an_executor,
    standalone,
)
from tests.pipeline.conftest import Grown
from tests.pipeline.hidden import Hidden, assert_the_lake_is_not_seen, assert_the_tables_are_not_seen
from tests.pipeline.pictures import assert_same, picture
from tests.support.patience import PROGRAM_PATIENCE_S

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hidden(grown: Grown, tmp_path_factory: pytest.TempPathFactory) -> Hidden:
    """Folders that the cluster's executors do not see."""
    return Hidden.beside(grown, tmp_path_factory.mktemp("hidden"))


@pytest.fixture(scope="module")
def cluster(classes: Path, hidden: Hidden, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone(classes, tmp_path_factory.mktemp("cluster"), hidden if can_hide(hidden.tables) else ()) as running:
        yield running


def run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=ENV, timeout=PROGRAM_PATIENCE_S, check=False, capture_output=True, text=True)


def test_the_whole_pipeline_on_a_master_and_two_workers(
    grown: Grown, classes: Path, cluster: Cluster, tmp_path: Path
) -> None:
    submit = [str(HOME / "bin" / "spark-submit"), "--master", cluster.url, *flags(on_cluster(classes))]
    folders = ["--lake", str(grown.lake), "--tables", str(tmp_path / "tables")]
    done = run([*submit, str(SOURCE / "crossdock" / "__main__.py"), "pipeline", "run", *folders])
    assert done.returncode == 0, done.stderr
    assert f", 19 tables, {sum(each.rows for each in grown.ran):,} events, " in done.stdout
    for name in ("one", "two"):
        assert "Asked to launch executor" in (cluster.folder / f"{name}.log").read_text(), f"worker {name} ran tasks"
    assert_same(picture(tmp_path / "tables"), picture(grown.tables))


def test_a_run_survives_the_loss_of_an_executor(grown: Grown, classes: Path, cluster: Cluster, tmp_path: Path) -> None:
    dead = run_that_loses_an_executor(cluster, classes, grown.lake, tmp_path / "tables")
    assert dead not in cluster.executors()
    started = re.findall(r"Launching executor app-\S+/(\d+)", (cluster.folder / "master.log").read_text())
    assert max(map(int, started)) > 1, "a third executor replaced the dead one"
    assert_same(picture(tmp_path / "tables"), picture(grown.tables))


@pytest.mark.parametrize("what", ["tables", "lake"])
def test_executors_that_do_not_see_the_same_folders_are_reported(
    what: str, hidden: Hidden, cluster: Cluster, grown: Grown, classes: Path, tmp_path: Path
) -> None:
    hidden.expect_possible()
    lake = hidden.lake if what == "lake" else grown.lake
    tables = hidden.tables if what == "tables" else tmp_path / "tables"
    words = ["pipeline", "run", "--lake", str(lake), "--tables", str(tables), "--master", cluster.url, "--cds", "off"]
    done = run([sys.executable, "-m", "crossdock", *words, *flags(on_cluster(classes))])
    assert_it = assert_the_tables_are_not_seen if what == "tables" else assert_the_lake_is_not_seen
    assert_it(done.returncode, done.stderr, Tables(str(tables)))
