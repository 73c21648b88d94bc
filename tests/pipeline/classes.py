"""An archive of the Java classes that Spark loads, which more than halves the start of a JVM; a run starts a dozen.

Made once for this Java and this Spark, and kept in pytest's cache: python -m tests.pipeline.classes FILE
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
from pyspark import SparkContext

from crossdock.pipeline.session import start
from tests.support.locks import locked
from tests.support.patience import PROGRAM_PATIENCE_S

#: The JVM's first compiler only, and the plainest collector: nothing here runs long.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def archive(cache: Path) -> Path:
    """Made if it is not there; other processes that ask meanwhile wait for it."""
    java = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr
    key = hashlib.sha256(java + pyspark.__version__.encode() + str(Path(pyspark.__file__).parent).encode())
    path = cache / f"spark-{key.hexdigest()[:16]}.jsa"
    with locked(cache / "lock"):
        if not path.exists():
            subprocess.run(
                [sys.executable, "-m", "tests.pipeline.classes", str(path)], check=True, timeout=PROGRAM_PATIENCE_S
            )
    return path


def quick(classes: Path) -> str:
    """Options of a JVM that has the archive."""
    return f"{QUICK} -XX:SharedArchiveFile={classes} -Xlog:cds=off -Xlog:cds+dynamic=off"


def main(path: Path) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    spark = start("local[1]", {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": QUICK}, beside)
    out = beside.with_suffix(".rows")
    spark.range(99).selectExpr("id", "id % 7 as day", "cast(id as string) name").write.partitionBy("day").parquet(
        str(out)
    )
    rows = spark.read.parquet(str(out))
    rows.groupBy("day").count().join(rows, "day").orderBy("id").collect()
    gateway = SparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(PROGRAM_PATIENCE_S)  # the archive is written at its very end
    shutil.rmtree(out)
    beside.rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
