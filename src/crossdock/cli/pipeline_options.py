"""Flags of the commands that read lakes and write tables, and the Spark session that they choose."""

import logging
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from crossdock.cli.options import AdminCommand, settings_of
from crossdock.cli.output import note
from crossdock.cli.parameters import Seconds
from crossdock.lake.location import absolute, is_url
from crossdock.lake.table import expect
from crossdock.model.errors import CrossdockError
from crossdock.pipeline.environment import expect_plain
from crossdock.pipeline.errors import PipelineError, in_words
from crossdock.pipeline.objectives import Objective
from crossdock.server.lake_keeper import location_of
from crossdock.settings.schema import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from crossdock.pipeline.catalog import Progress


#: Time for a JVM that is ending.
_END_S: Final = 2.0


class TablesCommand(AdminCommand):
    """A command with flags for the folders of the lake and the tables."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            click.Option(
                ["--lake"],
                metavar="LOCATION",
                help="Folder or URL of the lake. Default: the one in the settings.",
            ),
            click.Option(
                ["--tables"],
                metavar="LOCATION",
                help="Folder or URL of the tables. Default: `tables` in the data folder.",
            ),
        ]


class SparkCommand(TablesCommand):
    """A command that runs Spark on these folders."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            click.Option(
                ["--master"],
                default="",
                metavar="URL",
                help="Spark master: local[N], spark://…, sc://…. Default: that of spark-submit, else this machine.",
            ),
            click.Option(["--conf"], multiple=True, metavar="KEY=VALUE", help="A Spark setting. May be repeated."),
            click.Option(
                ["--cds"],
                default="auto",
                metavar="FILE",
                help="Java class archive, which makes starts cheaper. FILE is created if it is missing. `auto`: in the "
                "cache folder, created by the tenth start (180 MB). `off`: none. [auto]",
            ),
            click.Option(
                ["--timeout"],
                type=Seconds(1, 86_400),
                default=60.0,
                metavar="SECONDS",
                help="How long a Spark Connect server may be silent before the command fails. [60]",
            ),
            click.Option(["--verbose"], is_flag=True, help="Show the warnings of Spark and Java."),
            click.Option(
                ["--wait"],
                type=Seconds(0, 86_400),
                default=600.0,
                metavar="SECONDS",
                help="How long to wait while another process writes the tables. [600]",
            ),
        ]

    def invoke(self, ctx: click.Context) -> Any:
        with in_words("Spark failed; no table was changed halfway. Fix the cause and run the command again"):
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.Abort, click.exceptions.Exit, CrossdockError):
                raise
            except Exception as error:
                if death := _death_of_java():
                    raise PipelineError(
                        f"Spark's Java process has ended ({death}): run this command again (no data is lost)"
                    ) from error
                raise


def _death_of_java() -> str:
    """How Spark's JVM has ended; empty: there is none, or it runs."""
    if "pyspark" not in sys.modules:
        return ""
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return ""
    try:
        code = process.wait(_END_S)  # calls may fail shortly before
    except subprocess.TimeoutExpired:
        return ""
    return f"exit code {code}" if code >= 0 else f"signal {-code}; the system kills processes when memory runs out"


def _silence(spark: "SparkSession") -> None:
    """Hide the traces of a stream that fails, and those of py4j and pyspark when the JVM dies. The command reports the
    cause in a sentence."""
    from pyspark import accumulators

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: record.module != "java_gateway")  # py4j uses the root logger, too
    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        server.handle_error = lambda self, request, client_address: None  # type: ignore[method-assign]
    java: Any = spark._jvm
    log4j = java.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel("org.apache.spark.sql.execution.streaming", log4j.Level.OFF)


class Locations(NamedTuple):
    lake: str
    tables: str
    settings: Settings


def locations(values: dict[str, Any], *, lake_needed: bool = True) -> Locations:
    """Where the lake and the tables are, and the settings.

    Raises NoLake before anything is created, so that a mistyped folder does not get empty tables, or PipelineError if
    Spark cannot read from such paths."""
    named, tables = values.pop("lake"), values.pop("tables")
    settings = settings_of(values).settings
    lake = absolute(named or location_of(settings))
    if named or lake_needed:
        expect(lake, None if named else settings.server.data)
    tables = absolute(tables or settings.server.data / "tables")
    for location in (lake, tables):
        if not is_url(location):
            expect_plain(Path(location))
    return Locations(lake, tables, settings)


def objectives_of(settings: Settings) -> list[Objective]:
    """The objectives in the settings file, by queue."""
    return [
        Objective(queue, entry.done_within_s, entry.ratio, entry.start_within_s)
        for queue, entry in settings.slo.items()
    ]


def needs_spark() -> None:
    """Raises PipelineError, which names what to install."""
    for name in ("pyspark", "deltalake"):
        if find_spec(name) is None:
            raise PipelineError(
                f"{name} is not installed; install the pipeline with: pip install 'crossdock[pipeline]'"
            )


def session(values: dict[str, Any], progress: "Progress", *, small: bool = False) -> "SparkSession":
    """A Spark session by the flags. `small`: for a run over few events. End it with `end_session`.

    Raises PipelineError if something is not installed.
    """
    needs_spark()
    from crossdock.pipeline.class_archive import ClassArchive, automatic
    from crossdock.pipeline.session import TIMEOUT_S, start

    conf = {}
    for text in values.pop("conf"):
        key, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--conf {text} is not KEY=VALUE")
        conf[key] = value
    progress("starting Spark", 0, 1)
    master, cds = values.pop("master"), values.pop("cds", "auto")
    if cds == "off" or master.startswith("sc://"):
        archive = None
    else:
        archive = automatic(making=small) if cds == "auto" else ClassArchive(Path(cds))
    timeout_s, verbose = values.pop("timeout", TIMEOUT_S), values.pop("verbose", False)
    spark = start(master, conf, archive, small=small, verbose=verbose, timeout_s=timeout_s)
    if not verbose and not master.startswith("sc://"):
        _silence(spark)
    return spark


def end_session(spark: "SparkSession") -> None:
    from crossdock.pipeline.session import stop

    stop(spark, note)
