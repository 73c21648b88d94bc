"""An archive of the Java classes that Spark loads. It halves the start time of a JVM, and a run starts a dozen.

It is made once per version of Java and Spark, and kept in pytest's cache: python -m tests.pipeline.classes FILE
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark

from crossdock.pipeline.session import start, stop
from tests.support.locks import locked
from tests.support.patience import PROGRAM_PATIENCE_S

#: Only the first compiler of the JVM and the simplest collector, because nothing here runs long.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def archive(cache: Path) -> Path:
    """Make the archive if it is missing. Other processes wait for it meanwhile."""
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
    """Options of a JVM that uses the archive."""
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
    stop(spark)
    shutil.rmtree(out)
    beside.rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
