"""`crossdock pipeline run|stream|rebuild`: build tables from the lakes with Spark, on this machine or on a cluster."""

import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.output import meter, note, print_json
from crossdock.cli.parameters import Seconds
from crossdock.cli.pipeline_options import (
    Locations,
    SparkCommand,
    end_session,
    locations,
    objectives_of,
    session,
)
from crossdock.cli.render.tables import some

if TYPE_CHECKING:
    from crossdock.pipeline.catalog import Progress
    from crossdock.pipeline.ingest import Ingested
    from crossdock.pipeline.lakes import KnownLake
    from crossdock.pipeline.run import RunSettings

#: A run over less than this uses Spark settings for small work.
_SMALL_BYTES = 16 * 1024 * 1024

EXAMPLES = """\b
Examples:
  crossdock pipeline run                           all that is new, then stop
  crossdock pipeline stream                        as it comes, until Ctrl-C
  crossdock pipeline rebuild                       all tables again, from the events
  crossdock pipeline status                        what is in the tables, and what is not yet
  crossdock pipeline add s3://jobs/eu-2            the events of another server too
  crossdock pipeline register                      name the tables in a Spark catalog
  crossdock pipeline run --master spark://host:7077 --lake /mnt/lake --tables /mnt/tables
"""


class OpenedTables:
    """The tables, their lakes and the settings of a command."""

    def __init__(self, where: Locations) -> None:
        from crossdock.lake.location import is_url
        from crossdock.lake.table import Lake, NoLake
        from crossdock.pipeline.catalog import Tables
        from crossdock.pipeline.lakes import add_lake, known_lakes

        there = True
        try:
            Lake.open(where.lake)  # before anything is created
        except NoLake:
            if is_url(where.lake):
                raise
            there = False  # the server has written nothing yet: `locations` has found its journal
        self.tables = Tables(where.tables)
        self.tables.create()
        if there:
            add_lake(self.tables["lakes"], where.lake)
        self.known: list[KnownLake] = known_lakes(self.tables["lakes"])
        self.lakes: list[Lake] = [Lake.open(each.location) for each in self.known]
        self.settings = run_settings(where)
        self._where = where

    def expect_lakes(self) -> None:
        """Raises NoLake if there is none yet."""
        from crossdock.lake.table import NoLake

        if not self.known:
            raise NoLake(f"the server has not written its lake in {self._where.lake} yet: try again in a minute")


def run_settings(where: Locations) -> "RunSettings":
    from crossdock.pipeline.run import RunSettings

    settings = where.settings.pipeline
    return RunSettings(
        keep_hourly_days=settings.keep_hourly_days,
        price_per_worker_hour=settings.price_per_worker_hour,
        objectives=objectives_of(where.settings),
        flow_links=settings.flow_links,
    )


@click.command("run", cls=SparkCommand, epilog=EXAMPLES)
def run(as_json: bool, wait: float, **values: Any) -> int:
    """Ingest everything new, update the tables, and stop.

    It may be killed at any moment and started again: each event is counted once. Without new events it starts no Java.
    Exit code 1 if a quality check of the tables fails.
    """
    began = time.monotonic()
    where = locations(values)
    with meter(lines=True) as progress:
        progress("looking for new files", 0, 1)
        from crossdock.pipeline.lock import writing
        from crossdock.pipeline.planning import lost, waiting

        with writing(where.tables, wait):
            opened = OpenedTables(where)
            found = waiting(opened.tables, opened.lakes)
            missing = lost(opened.tables, opened.lakes)
        small = found.bytes < _SMALL_BYTES
        made = _ingest(where, opened, values, progress, wait, small=small) if found.files else []
        with writing(where.tables, wait):
            days, faults = _finish(opened, progress, changed=bool(made))
    rows = sum(each.rows for each in made)
    if as_json:
        files = sum(each.files for each in made)
        print_json(
            {"batches": len(made), "files": files, "rows": rows, "days": days, "faults": faults,
             "lost": [each._asdict() for each in missing]}
        )  # fmt: skip
    elif made or days:
        seconds = time.monotonic() - began
        many = sum(1 for _ in opened.tables)
        absent = sum(each.entries for each in missing)
        less = f", {absent:,} journal entries lost" if absent else ""
        click.echo(f"{some(days, 'day')}, {some(many, 'table')}, {some(rows, 'event')}{less}, {seconds:.0f} s")
    else:
        click.echo("nothing new")
    for each in missing:
        note(f"warning: {each}")
    for fault in faults:
        note(fault)
    return 1 if faults else 0


def _ingest(
    where: Locations, opened: OpenedTables, values: dict[str, Any], progress: "Progress", wait: float, *, small: bool
) -> "list[Ingested]":
    # A Connect server would run the micro-batches of a stream, and cannot commit to tables of this machine. For few
    # events a stream costs more than the batch.
    direct = small or values["master"].startswith("sc://")
    spark = session(values, progress, small=small)
    from crossdock.pipeline.context import PipelineContext
    from crossdock.pipeline.lock import writing
    from crossdock.pipeline.run import take
    from crossdock.pipeline.stream import Stream

    made: list[Ingested] = []
    context = PipelineContext(spark, where.tables, progress=progress)
    if direct:
        with writing(where.tables, wait):
            made += take(context, opened.lakes)
    else:
        Stream(context, opened.known, opened.settings, wait_s=wait, heard=made.append).available()
    end_session(spark)
    return made


def _finish(opened: OpenedTables, progress: "Progress", *, changed: bool) -> tuple[int, list[str]]:
    """Refresh the views, check the dates that changed, and clean up. Needs no Spark."""
    from crossdock.lake.table import Lake
    from crossdock.pipeline.quality import faults_of
    from crossdock.pipeline.run import refresh_all, tidy

    dates = refresh_all(opened.tables, opened.settings, progress)
    lakes = [Lake.open(each.location) for each in opened.known]
    faults: list[str] = []
    if dates:
        progress("checking tables", 0, 1)
        faults = faults_of(opened.tables, lakes, dates, rows=False)
    if changed:
        tidy(opened.tables, lakes, opened.settings, progress)
    return len(dates), faults


@click.command("stream", cls=SparkCommand, epilog=EXAMPLES)
@click.option(
    "--every", type=Seconds(0.1, 3_600), default=5.0, metavar="SECONDS", help="How often to look for new files. [5]"
)
@click.option(
    "--refresh", type=Seconds(1, 86_400), default=60.0, metavar="SECONDS", help="How often to update the views. [60]"
)
def stream(as_json: bool, wait: float, every: float, refresh: float, **values: Any) -> None:
    """Ingest files as they are written, until Ctrl-C or SIGTERM.

    Each batch updates the attempts and the rollups. The views are computed every --refresh seconds.
    """
    if values["master"].startswith("sc://"):
        raise click.UsageError(
            "a Spark Connect server cannot run this stream, because it would run its batches without the tables: use "
            "another --master, or start crossdock pipeline run at intervals"
        )
    stop = threading.Event()
    where = locations(values)
    with meter(lines=True) as progress:
        opened = OpenedTables(where)
        opened.expect_lakes()
        spark = session(values, progress)
    from crossdock.pipeline.context import PipelineContext
    from crossdock.pipeline.stream import Stream

    def heard(made: "Ingested") -> None:
        if as_json:
            print_json(made._asdict())
        else:
            click.echo(f"{some(made.rows, 'event')} of {some(made.files, 'file')}")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    note("streaming; Ctrl-C ends it")
    context = PipelineContext(spark, where.tables)
    streaming = Stream(
        context,
        opened.known,
        opened.settings,
        wait_s=wait,
        heard=heard,
        missing=lambda lost: note(f"warning: {lost}"),
    )
    streaming.run(stop, every_s=every, refresh_s=refresh)
    end_session(spark)


@click.command("rebuild", cls=SparkCommand, epilog=EXAMPLES)
def rebuild(as_json: bool, wait: float, **values: Any) -> int:
    """Make all tables again from the events in the lakes.

    Rows of dates that a lake has deleted are kept. The tables change all at once, when everything is computed.
    """
    where = locations(values)
    with meter(lines=True) as progress:
        from crossdock.pipeline.lock import writing

        with writing(where.tables, wait):
            opened = OpenedTables(where)
            opened.expect_lakes()
            spark = session(values, progress)
            from crossdock.pipeline.context import PipelineContext
            from crossdock.pipeline.rebuild import rebuild as rebuild_all

            made = rebuild_all(PipelineContext(spark, where.tables, progress=progress), opened.lakes)
            end_session(spark)
            days, faults = _finish(opened, progress, changed=True)
    if as_json:
        print_json({**made._asdict(), "days": days, "faults": faults})
    else:
        click.echo(f"rebuilt {some(days, 'day')} from {some(made.rows, 'event')} of {some(made.files, 'file')}")
    for fault in faults:
        note(fault)
    return 1 if faults else 0
