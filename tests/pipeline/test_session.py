"""Sessions in processes of their own: what they print, how they fail, and which file system they use.

python -m tests.pipeline.test_session FOLDER     reads and writes local paths while HDFS is the default file system
"""

import subprocess
import sys
from pathlib import Path

import pytest

from crossdock.pipeline.environment import spark_path
from crossdock.pipeline.session import start, stop
from tests.pipeline.classes import QUICK
from tests.support.patience import PROGRAM_PATIENCE_S, wait_until

#: No such host exists. Any use of the default file system fails.
ELSEWHERE = {"spark.hadoop.fs.defaultFS": "hdfs://nowhere.invalid:9000", "spark.sql.warehouse.dir": "file:///tmp"}


def main(folder: Path) -> None:
    spark = start("local[1]", ELSEWHERE, Path(sys.argv[2]), small=True)
    rows, out = spark_path(folder / "my rows"), spark_path(folder / "streamed")
    spark.range(9).selectExpr("id", "id % 3 as part").write.partitionBy("part").parquet(rows)
    named = [spark_path(path) for path in sorted((folder / "my rows").rglob("*.parquet"))]
    assert spark.read.option("basePath", rows).parquet(*named).where("part = 1").count() == 3
    stream = spark.readStream.schema("id long, part int").parquet(rows)
    writer = stream.writeStream.format("parquet").option("checkpointLocation", spark_path(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(out).awaitTermination()
    print(spark.read.parquet(out).count())
    stop(spark)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, timeout=PROGRAM_PATIENCE_S
    )


def test_local_paths_do_not_depend_on_the_default_file_system_and_nothing_is_printed(
    classes: Path, tmp_path: Path
) -> None:
    done = run("-W", "default", "-m", "tests.pipeline.test_session", str(tmp_path), str(classes))
    assert (done.returncode, done.stdout, done.stderr) == (0, "9\n", "")


FAILS = """
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.session import start
try:
    start("local[1]", {"spark.driver.memory": "99999999g"}, verbose=%s)
except PipelineError as error:
    print(error)
"""


@pytest.mark.parametrize("verbose", [False, True])
def test_a_jvm_that_does_not_start_is_reported_in_one_sentence(verbose: bool) -> None:
    done = run("-c", FAILS % verbose)
    [line] = done.stdout.splitlines()
    assert line.startswith("Spark does not start (check --master and --conf")
    assert "Could not reserve enough space" in (done.stderr if verbose else line)
    assert bool(done.stderr) is verbose


def test_a_damaged_archive_is_ignored(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jsa"
    damaged.write_bytes(b"no archive" * 1_000)
    program = "import sys; from pathlib import Path; from crossdock.pipeline.session import start\n"
    program += (
        f"spark = start('local[1]', {{'spark.driver.extraJavaOptions': '{QUICK}'}}, Path(sys.argv[1]), small=True)\n"
    )
    done = run("-c", f"{program}print(spark.range(3).count())", str(damaged))
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_a_program_that_fails_makes_no_archive(tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path; from crossdock.pipeline.session import start\n"
    program += "spark = start('local[1]', cds=Path(sys.argv[1]), small=True)\n"
    program += "print(spark.sparkContext._gateway.proc.pid)\nsys.exit('no reason')"
    done = run("-c", program, str(tmp_path / "classes.jsa"))
    assert (done.returncode, done.stderr) == (1, "no reason\n")
    wait_until(lambda: not Path(f"/proc/{done.stdout.strip()}").exists(), "the end of the JVM")
    assert list(tmp_path.iterdir()) == []


if __name__ == "__main__":
    main(Path(sys.argv[1]))
