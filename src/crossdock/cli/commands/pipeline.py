"""`crossdock pipeline`: makes tables from the lake with Spark, on this machine or on a cluster."""

import signal
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from crossdock.cli.commands.lake import clock_told
from crossdock.cli.options import AdminCommand, settings_of
from crossdock.cli.output import meter, note, print_json
from crossdock.cli.parameters import Seconds
from crossdock.cli.render.tables import columns, size, some
from crossdock.lake.manifest import expect
from crossdock.pipeline.environment import expect_plain
from crossdock.pipeline.errors import PipelineError, in_words
from crossdock.server.lake_keeper import folder_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from crossdock.pipeline.context import PipelineContext, Progress
    from crossdock.pipeline.status import Status


class TablesCommand(AdminCommand):
    """A command with flags for the folders of the lake and the tables."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        folder = click.Path(path_type=Path, file_okay=False)
        self.params += [
            click.Option(
                ["--lake"], type=folder, metavar="DIR", help="The lake; without it the one the settings name."
            ),
            click.Option(
                ["--tables"], type=folder, metavar="DIR", help="The tables; without it `tables` in the data folder."
            ),
        ]


class SparkCommand(TablesCommand):
    """A command that runs Spark on them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            click.Option(
                ["--master"],
                default="",
                metavar="URL",
                help="Where Spark runs: local[N], spark://…, sc://…. Without it spark-submit's, or this machine.",
            ),
            click.Option(["--conf"], multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
            click.Option(
                ["--cds"],
                type=click.Path(path_type=Path, dir_okay=False),
                metavar="FILE",
                help="An archive of Java classes that halves Spark's start; made at the end of the first run with it.",
            ),
            click.Option(
                ["--wait"],
                type=Seconds(0, 86_400),
                default=600.0,
                metavar="SECONDS",
                help="How long to wait for another process that writes the tables. [600]",
            ),
        ]

    def invoke(self, ctx: click.Context) -> Any:
        with in_words("Spark failed, and nothing is half done: start it again when that is mended"):
            return super().invoke(ctx)


def folders(values: dict[str, Any], *, lake_needed: bool = True) -> tuple[Path, Path]:
    """Lake and tables. Raises NoLake, Damaged if the lake's own word is gone, or PipelineError if Spark could not read
    from folders of these names."""
    named, tables = values.pop("lake"), values.pop("tables")
    settings = settings_of(values).settings
    lake = named or folder_of(settings)
    if named or lake_needed:
        expect(lake, None if named else settings.server.data)
    tables = tables or settings.server.data / "tables"
    for folder in (lake, tables):
        expect_plain(folder)
    return lake.absolute(), tables


_EXAMPLES = """\b
Examples:
  crossdock pipeline run                           all that is new, then stop
  crossdock pipeline stream                        as it comes, until Ctrl-C
  crossdock pipeline rebuild --day 2026-11-15      one day anew from the events
  crossdock pipeline status                        what is in the tables, and what is not yet
  crossdock pipeline run --master spark://host:7077 --lake /mnt/lake --tables /mnt/tables
"""


def needs_spark() -> None:
    """Raises PipelineError with what to install."""
    for name in ("pyspark", "deltalake"):
        if find_spec(name) is None:
            raise PipelineError(
                f"{name} is not installed: the pipeline needs what `make install-pipeline` installs, "
                "or pip install 'crossdock[pipeline]'"
            )


def session(values: dict[str, Any], progress: "Progress") -> "SparkSession":
    """Where --master, --conf and --cds say. Raises PipelineError if something is not installed."""
    needs_spark()
    from crossdock.pipeline.session import start

    conf = {}
    for text in values.pop("conf"):
        key, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--conf {text} is not KEY=VALUE")
        conf[key] = value
    progress("starting Spark", 0, 1)
    return start(values.pop("master"), conf, values.pop("cds", None))


def _works(values: dict[str, Any], progress: "Progress") -> "PipelineContext":
    """Raises NoLake before anything is made: a folder mistyped must not become one of empty tables."""
    lake, tables = folders(values)
    spark = session(values, progress)
    from crossdock.pipeline.context import PipelineContext

    return PipelineContext(spark, lake, tables, progress=progress)


@click.command("run", cls=SparkCommand, epilog=_EXAMPLES)
def run(as_json: bool, wait: float, **values: Any) -> int:
    """Ingest every new segment, update the tables, and stop.

    It may be killed at any moment and started again: each event is counted once. Exit code 1 as long as a segment is
    set aside, or missing from the lake.
    """
    with meter() as progress:
        works = _works(values, progress)
        from crossdock.pipeline.lock import writing
        from crossdock.pipeline.run import run as run_all

        with writing(works.tables_folder, wait):
            ran = run_all(works)
        aside, missing = _lacks(works)
        works.spark.stop()
    if as_json:
        print_json({**ran._asdict(), "set_aside": len(aside), "missing": len(missing)})
    else:
        taken = f"{some(ran.rows, 'event')} of {some(ran.segments, 'segment')}"
        click.echo(f"took in {taken}, made {some(ran.days, 'day')} of tables")
    _tell_lacks(aside, missing)
    return 1 if aside or missing else 0


def _lacks(works: "PipelineContext") -> tuple[dict[str, str], list[str]]:
    """What of the lake is set aside, and what is missing: told each time, until it is put back."""
    from crossdock.pipeline.segments import set_aside, survey

    works.ledger.load()
    seen = survey(works.lake, works.ledger.segments)
    return set_aside(seen, works.ledger.known), seen.missing


def _tell_lacks(aside: dict[str, str], missing: list[str]) -> None:
    if aside:
        note(f"set aside {some(len(aside), 'segment')}: `crossdock pipeline status` names them")
    for sentence in missing:
        note(sentence)


@click.command("stream", cls=SparkCommand, epilog=_EXAMPLES)
@click.option("--every", type=Seconds(0.1, 3_600), default=5.0, metavar="SECONDS", help="Look for segments. [5]")
@click.option("--refresh", type=Seconds(1, 86_400), default=60.0, metavar="SECONDS", help="Tables follow. [60]")
def stream(as_json: bool, wait: float, every: float, refresh: float, **values: Any) -> None:
    """Ingest segments as they are written, until Ctrl-C or SIGTERM.

    Attempts are there with each batch; the other tables follow every --refresh seconds.
    """
    if values["master"].startswith("sc://"):
        raise click.UsageError(
            "a Connect server runs the batches of a stream itself, without the ledger: give stream another --master, "
            "or call run again and again"
        )
    stop = threading.Event()
    with meter() as progress:
        works = _works(values, progress)
    _tell_lacks(*_lacks(works))
    from crossdock.pipeline.ingest import Batch
    from crossdock.pipeline.stream import Stream

    def heard(batch: Batch) -> None:
        if as_json:
            print_json(batch._asdict())
        else:
            click.echo(f"batch {batch.number:,}: {some(batch.rows, 'event')} of {some(batch.segments, 'segment')}")
        if batch.faults:
            note(f"set aside {some(batch.faults, 'segment')}: `crossdock pipeline status` names them")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    streaming = Stream(works, every_s=every, refresh_s=refresh, wait_s=wait)
    streaming.heard = heard
    note("streaming; Ctrl-C ends it")
    streaming.run(stop)
    works.spark.stop()


@click.command("rebuild", cls=SparkCommand, epilog=_EXAMPLES)
@click.option(
    "--day", "days", type=click.DateTime(["%Y-%m-%d"]), multiple=True, help="This day alone; may be repeated."
)
def rebuild(as_json: bool, wait: float, days: tuple[Any, ...], **values: Any) -> int:
    """Rebuild all tables from the events, or those of some days.

    Days of which the lake no longer has all segments, or not whole, stay as they are. Exit code 1 if a segment is
    damaged.
    """
    with meter() as progress:
        works = _works(values, progress)
        from crossdock.pipeline.lock import writing
        from crossdock.pipeline.rebuild import rebuild as rebuild_days

        with writing(works.tables_folder, wait):
            works.prepare()
            made = rebuild_days(works, [day.date() for day in days] or None)
        works.spark.stop()
    if as_json:
        print_json(made._asdict())
    else:
        left = f"; left {some(made.kept, 'day')} as they were, whose events are not all there" if made.kept else ""
        click.echo(f"rebuilt from {some(made.rows, 'event')} of {some(made.segments, 'segment')}{left}")
    for name, why in made.damaged.items():
        note(f"{name} is set aside: {why}; put it back from a copy of the lake, and rebuild again")
    return 1 if made.damaged else 0


@click.command("status", cls=TablesCommand, epilog=_EXAMPLES)
def status(as_json: bool, **values: Any) -> int:
    """Show the tables, their lag behind the lake, and rejected segments.

    Starts no Spark and changes nothing. Exit code 1 if a segment is set aside or missing.
    """
    needs_spark()
    from crossdock.pipeline.status import status as status_of

    lake, tables = folders(values)
    told = status_of(lake, tables.absolute())
    if as_json:
        print_json(msgspec.to_builtins(told))
    else:
        click.echo(_text(told))
    return 1 if told.set_aside or told.missing else 0


def _text(told: "Status") -> str:
    waiting = f"{some(told.waiting, 'segment')}, {size(told.waiting_bytes)}" if told.waiting else "nothing"
    lines = [
        f"taken in   {some(told.events, 'event')} of {some(told.segments, 'segment')}, {told.batch:,} batches",
        f"waiting    {waiting}",
        "",
        columns(
            ("TABLE", ">ROWS", ">FILES", ">SIZE", "FROM", "TO", ">BATCH"),
            [
                (each.name, f"{each.rows:,}", f"{each.files:,}", size(each.bytes), str(each.first or "-"),
                 str(each.last or "-"), f"{each.batch:,}")
                for each in told.tables
            ],
        ),
    ]  # fmt: skip
    rebuilt = sum(kind == "rebuilt" for kind in told.days.values())
    lines += ["", f"days       {len(told.days):,}, of which {rebuilt:,} are rebuilt and the others are sums of batches"]
    lines += clock_told(told.set_back)
    lines += [f"fault: {name} is set aside: {why}" for name, why in told.set_aside.items()]
    lines += [f"fault: {sentence}" for sentence in told.missing]
    return "\n".join(lines)
