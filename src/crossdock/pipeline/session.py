"""The Spark session. Where it runs comes from outside: `--master`, or spark-submit's own settings."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from crossdock.pipeline.environment import check_java, check_master
from crossdock.pipeline.errors import PipelineError, in_words

#: Days are UTC days, files are zstd, and times are what every Parquet reader knows. The rest is for one machine:
#: no UI, nothing beyond loopback, few shuffle partitions, output of many dates without a sort.
TABLES: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    "spark.sql.files.openCostInBytes": "65536",
    "spark.ui.showConsoleProgress": "false",
    # No call site of every expression: a sixth of the time to build a plan.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # No checksum files and no _SUCCESS beside what delta.py moves away: Hadoop starts a chmod for each.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # A Python worker and the JVM greet each other when they connect; 15 s are too few on a machine with other work.
    "spark.python.authenticate.socketTimeout": "600s",
}
LOCAL: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "4",
    # Driver and executor are one process: a late heartbeat means a busy machine, not a lost executor.
    "spark.network.timeout": "1800s",
    "spark.executor.heartbeatInterval": "60s",
}


#: Errors only: Spark's first words are about libraries that nobody here misses.
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")


def start(master: str = "", conf: Mapping[str, str] | None = None, cds: Path | None = None) -> SparkSession:
    """A session, or the one that is there. Without a master: spark-submit's, else all processors of this machine.

    `cds` is an archive of loaded classes that halves the start of the JVM: made at its end if it is not there yet.
    Raises NoJava, or PipelineError if Spark does not start.
    """
    # Workers must run this Python, whatever the PATH says: theirs may lack what ours has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    connect = master.startswith("sc://")
    check_master(master)
    builder = SparkSession.builder.appName("crossdock pipeline")
    if connect:
        builder = builder.remote(master)
    else:
        if not submitted:
            check_java()
        master = master or ("" if submitted else "local[*]")
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(master) if master else builder
    for key, value in _conf(master, connect, conf or {}, cds).items():
        builder = builder.config(key, value)
    with in_words("Spark does not start (Java may have said more above; look at --master and --conf)"):
        return builder.getOrCreate()


def _conf(master: str, connect: bool, given: Mapping[str, str], cds: Path | None) -> dict[str, str]:
    if connect:
        # The server has the rest; what belongs to a session goes with it.
        for key in given:
            if not key.startswith("spark.sql."):
                raise PipelineError(f"--conf {key} is the Connect server's affair: start it so, or leave that out")
        return {key: value for key, value in TABLES.items() if key.startswith("spark.sql.session")} | dict(given)
    local = LOCAL if master.startswith("local") else {}
    whole = {**TABLES, **local, **given}
    options = [whole.get("spark.driver.extraJavaOptions", "-XX:+UseParallelGC" if local else "")]
    if local:
        options.append(f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
    if cds is not None:
        how = "SharedArchiveFile" if cds.exists() else "ArchiveClassesAtExit"
        options.append(f'"-XX:{how}={cds}" -Xlog:cds=off -Xlog:cds+dynamic=off')
    if any(options):
        whole["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
    return whole
