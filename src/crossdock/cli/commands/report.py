"""`crossdock report`: what the tables say, in the terminal, as JSON, or as a page with plots."""

import datetime as dt
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from crossdock import __version__
from crossdock.cli.commands.pipeline import TablesCommand, folders, needs_spark
from crossdock.cli.output import meter, note, print_json
from crossdock.cli.parameters import Name
from crossdock.cli.render.tables import size, some
from crossdock.journal.files import write_whole

if TYPE_CHECKING:
    from crossdock.pipeline.reports.freshness import Freshness

_EXAMPLES = """\b
Examples:
  crossdock report queue                           every queue, the last 7 days
  crossdock report queue mail --days 30            one queue, day by day and hour by hour
  crossdock report failures --html failures.html   a page with plots, in one file
  crossdock report workers --days 1 --json
  crossdock report slow --queue mail --top 5
"""


class ReportCommand(TablesCommand):
    """A verb that tells about some days, in one of three ways."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            click.Option(
                ["--days"], type=click.IntRange(1, 366), default=7, metavar="N", help="Number of days, UTC. [7]"
            ),
            click.Option(
                ["--until"],
                type=click.DateTime(["%Y-%m-%d"]),
                metavar="DATE",
                help="The last of them, such as 2026-11-15. [today]",
            ),
            click.Option(
                ["--top"], type=click.IntRange(1, 1_000), default=20, metavar="N", help="Rows of a list. [20]"
            ),
            click.Option(
                ["--html", "html_file"],
                type=click.Path(path_type=Path, dir_okay=False, resolve_path=True, allow_dash=True),
                metavar="FILE",
                help="Write a page with plots, which needs no other file and no network; - is stdout.",
            ),
        ]


_of_one = click.option("--queue", type=Name(), metavar="QUEUE", help="Of this queue alone.")


@click.command("queue", cls=ReportCommand, epilog=_EXAMPLES)
@click.argument("queue", type=Name(), required=False, metavar="[QUEUE]")
def of_queue(queue: str | None, **values: Any) -> None:
    """Throughput, waits, runs, failures and retries of all queues or one.

    Needs no running server, no Spark and no Java: crossdock pipeline run has made the tables.
    """
    _report("queue" if queue else "queues", values, queue)


@click.command("failures", cls=ReportCommand, epilog=_EXAMPLES)
@_of_one
def of_failures(queue: str | None, **values: Any) -> None:
    """Failure groups: since when, how often, on which days, and examples."""
    _report("failures", values, queue)


@click.command("workers", cls=ReportCommand, epilog=_EXAMPLES)
def of_workers(**values: Any) -> None:
    """Utilisation of workers and the outcomes of their attempts."""
    _report("workers", values)


@click.command("slow", cls=ReportCommand, epilog=_EXAMPLES)
@_of_one
def of_slow(queue: str | None, **values: Any) -> None:
    """The slowest kinds, the longest runs and waits, and the longest flows.

    Flows have jobs of many queues: with --queue none are shown.
    """
    _report("slow", values, queue)


def _report(name: str, values: dict[str, Any], queue: str | None = None) -> None:
    """`name` is that of a module below pipeline.reports and of the function in it."""
    needs_spark()
    from crossdock.pipeline.reports.freshness import freshness
    from crossdock.pipeline.reports.tables import Days, Reader

    days, until, top, html_file, as_json = (
        values.pop(each) for each in ("days", "until", "top", "html_file", "as_json")
    )
    lake, tables = folders(values, lake_needed=False)
    _check_days(days, until)
    if as_json and str(html_file) == "-":
        raise click.UsageError("--json and --html - both go to stdout: name a file for the page")
    last = until.date() if until else dt.datetime.now(dt.UTC).date()
    with meter() as progress:
        reader = Reader(tables, Days.until(last, days), progress)
        if queue:
            reader.expect_queue(queue)
        make = getattr(import_module(f"crossdock.pipeline.reports.{name}"), name)
        told = make(reader, top, queue) if queue else make(reader, top)
        fresh = freshness(reader, lake)
    if as_json:
        print_json({"tables": msgspec.to_builtins(fresh), **msgspec.to_builtins(told)})
    if as_json and html_file is None:
        return
    page = _page_of(name)(told, _facts(fresh))
    if html_file is not None:
        _write(html_file, page)
        return
    from crossdock.cli.render.terminal import text

    click.echo(text(page, shutil.get_terminal_size().columns if sys.stdout.isatty() else None))


def _page_of(name: str) -> Callable[[Any, list[str]], Any]:
    module = "queue_pages" if name in ("queue", "queues") else "report_pages"
    page: Callable[[Any, list[str]], Any] = getattr(import_module(f"crossdock.cli.render.{module}"), f"{name}_page")
    return page


def _write(file: Path, page: Any) -> None:
    from crossdock.cli.render.html import document

    text = document(page, f"Crossdock {__version__}, {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC")
    if str(file) == "-":
        click.echo(text, nl=False)
        return
    if file.exists() and not file.is_file():
        raise click.UsageError(f"--html {file} is no file; - is stdout")
    written = write_whole(file, [text.encode()])
    note(f"wrote {file}, {size(written)}; only you may read it, until you let others")


def _check_days(days: int, until: Any) -> None:
    """Raises click.UsageError where they begin before the first date there is."""
    if until is not None and (until.date() - dt.date.min).days < days:
        raise click.UsageError(f"--until {until.date()} has no {some(days, 'day')} before it")


def _facts(fresh: "Freshness") -> list[str]:
    days = (fresh.last - fresh.first).days + 1
    upto = f"{fresh.upto:%Y-%m-%d %H:%M:%S} UTC" if fresh.upto else str(fresh.newest or "nothing")
    waits = "nothing waits to be taken in"
    if fresh.waiting is None:
        waits = "there is no lake here, so what waits to be taken in is not known"
    elif fresh.waiting:
        waits = (
            f"{some(fresh.waiting, 'segment')} of the lake ({size(fresh.waiting_bytes)}) not in them: "
            "crossdock pipeline run takes them in"
        )
    facts = [f"{fresh.first} to {fresh.last}, {some(days, 'day')}, UTC", f"tables up to {upto}; {waits}"]
    if fresh.set_aside or fresh.missing:
        aside = f"{some(fresh.set_aside, 'segment')} set aside, {some(fresh.missing, 'date')} with segments missing"
        facts.append(f"the lake is not whole: {aside}; crossdock pipeline status names them")
    if fresh.newest is not None and fresh.newest < fresh.first:
        facts.append(
            f"nothing is in these days; the newest day in the tables is {fresh.newest}: --until {fresh.newest}"
        )
    return facts
