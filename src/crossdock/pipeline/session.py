"""Starts the Spark session. `--master` or spark-submit's settings decide where it runs."""

import atexit
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from crossdock.pipeline import jvm
from crossdock.pipeline.class_archive import ClassArchive
from crossdock.pipeline.connect import connect
from crossdock.pipeline.environment import check_java, check_master
from crossdock.pipeline.errors import PipelineError, in_words

#: Days are UTC, files use zstd, and timestamps have a type that every Parquet reader supports. LOCAL is for one
#: machine: no UI, loopback only, few shuffle partitions.
TABLES: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    "spark.sql.files.openCostInBytes": "65536",
    "spark.ui.showConsoleProgress": "false",
    # Recording the call site of every expression takes a sixth of the time to build a plan.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # No checksum and _SUCCESS files: delta.py does not need them, and Hadoop starts a chmod for each.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Time for the handshake of a Python worker with the JVM. The default of 15 s is too short on a busy machine.
    "spark.python.authenticate.socketTimeout": "600s",
}
LOCAL: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "4",
    # Files are named one by one. A Spark job that looks at them costs more than looking.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    # Driver and executor are one process: a late heartbeat means a busy machine, not a lost executor.
    "spark.network.timeout": "1800s",
    "spark.executor.heartbeatInterval": "60s",
}
#: For a batch of few events.
FEW: Final[Mapping[str, str]] = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
#: For a run over few events from a cold start, which mostly loads, compiles and plans: also no generated code, which
#: takes longer to compile than to run once.
SMALL: Final[Mapping[str, str]] = {
    **FEW,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

#: C1 is the first compiler of the JVM: its code is ready sooner and runs slower. Over millions of events on a warm
#: session it takes nearly twice the CPU time of the second compiler.
_SMALL_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LARGE_JAVA: Final = "-XX:+UseParallelGC"
#: Checking the classes of Spark's own jars takes a seventh of a small run. An archive holds checked classes, so it must
#: be made with the check.
_UNCHECKED_JAVA: Final = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"

#: Log errors only: Spark's start messages are about optional libraries.
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")

#: Time for the JVM to write an archive of classes and end.
_END_S: Final = 300.0

TIMEOUT_S: Final = 60.0

_archiving: list[ClassArchive] = []  #: the archive that the JVM of this process is making


def start(
    master: str = "",
    conf: Mapping[str, str] | None = None,
    cds: Path | ClassArchive | None = None,
    *,
    small: bool = False,
    verbose: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> SparkSession:
    """Start a session, or return the existing one. Default master: spark-submit's, else all processors of this machine.

    * `cds`: an archive of Java classes (class_archive.py). A missing one is made when `stop` ends the session.
    * `small`: settings for a run over few events. They halve its CPU time; a stream or a large run is slower with them.
    * `verbose`: show Spark's own messages. Otherwise only errors are shown.
    * `timeout_s`: how long a Connect server may be silent before calls fail.

    Raises NoJava, or PipelineError if Spark does not start.
    """
    # Workers must run this Python: another one on the PATH may lack the packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    check_master(master)
    given = dict(conf or {})
    if master.startswith("sc://"):
        return _remote(master, given, small=small, verbose=verbose, timeout_s=timeout_s)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        check_java()
    master = master or ("" if submitted else "local[*]")
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    own = not submitted and not jvm.running()
    archive = ClassArchive(cds) if isinstance(cds, Path) else cds
    whole = _conf(master, given, archive if own else None, small=small, verbose=verbose or not own)
    try:
        session = _classic(master, whole, own=own, verbose=verbose)
    except PipelineError:
        if archive is None or not own or jvm.running():  # the archive is not the cause
            raise
        archive.discard()
        archive = None
        whole = _conf(master, given, None, small=small, verbose=verbose)
        session = _classic(master, whole, own=own, verbose=verbose)
    if own and archive is not None and archive.making:
        _archiving.append(archive)
    return session


def stop(spark: SparkSession, note: Callable[[str], None] = lambda text: None) -> None:
    """Stop the session. If Java makes an archive of classes, wait for it, and say so with `note`."""
    spark.stop()
    while _archiving:
        archive = _archiving.pop()
        note(f"saving Java's classes in {archive.path}, which makes later starts cheaper (once; --cds off: never)")
        if not (jvm.end(_END_S) and archive.finish()):
            archive.discard()


@atexit.register
def _end_without_archive() -> None:
    """A program that fails does not wait for an archive, and leaves no JVM that writes one."""
    while _archiving:
        jvm.kill()
        _archiving.pop().discard()


def _remote(url: str, given: Mapping[str, str], *, small: bool, verbose: bool, timeout_s: float) -> SparkSession:
    whole = _connect_conf(given, small=small)
    with in_words(f"there is no Spark session at {url.partition(';')[0]}"):
        session = connect(url, timeout_s, verbose=verbose)
        for key, value in whole.items():
            session.conf.set(key, value)
        return session


def _connect_conf(given: Mapping[str, str], *, small: bool) -> dict[str, str]:
    """Only session settings can be sent; the Connect server has its own for the rest."""
    for key in given:
        if not key.startswith("spark.sql."):
            raise PipelineError(
                f"--conf {key} is a setting of the Connect server: start the server with it, or leave it out"
            )
    # The server is warm, so its compiler and generated code are left alone.
    few = FEW if small else {}
    zone = {key: value for key, value in TABLES.items() if key.startswith("spark.sql.session")}
    return {**zone, **few, **given}


def _classic(master: str, whole: Mapping[str, str], *, own: bool, verbose: bool) -> SparkSession:
    """A session in this process's own JVM, which is started if `own`."""
    conf = {"spark.app.name": "crossdock pipeline", **({"spark.master": master} if master else {}), **whole}
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    with (
        in_words("Spark does not start (check --master and --conf; --verbose shows Java's messages)"),
        warnings.catch_warnings(),
    ):
        if not verbose:
            warnings.simplefilter("ignore")
        if own:
            jvm.launch(conf, verbose=verbose)
        session = builder.getOrCreate()
    jvm.show_output()
    return session


def _conf(
    master: str, given: Mapping[str, str], archive: ClassArchive | None, *, small: bool = False, verbose: bool = False
) -> dict[str, str]:
    local = LOCAL if master.startswith("local") else {}
    whole = {**TABLES, **local, **(SMALL if small else {}), **given}
    options = [whole.get("spark.driver.extraJavaOptions") or (_SMALL_JAVA if small else _LARGE_JAVA if local else "")]
    archived = "" if archive is None else archive.options
    options.append(archived or (_UNCHECKED_JAVA if small else ""))
    if not verbose:
        options.append(f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
    if any(options):
        whole["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
    return whole
