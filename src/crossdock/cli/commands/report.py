"""`crossdock report`: reports from the tables, in the terminal, as JSON, or as a page with plots. Needs no Spark."""

import datetime as dt
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from crossdock import __version__
from crossdock.cli.output import meter, note, print_json, width
from crossdock.cli.parameters import Name, Span
from crossdock.cli.pipeline_options import Locations, TablesCommand, locations, objectives_of
from crossdock.cli.render import times
from crossdock.cli.render.tables import lasting, size, some
from crossdock.journal.files import write_whole
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.objectives import Objective

if TYPE_CHECKING:
    from crossdock.pipeline.reports.freshness import Freshness
    from crossdock.pipeline.reports.tables import Reader

_EXAMPLES = """\b
Examples:
  crossdock report queue                           every queue, the last 7 days
  crossdock report queue mail --days 30            one queue, day by day and hour by hour
  crossdock report failures --html failures.html   a page with plots, in one file
  crossdock report workers --days 1 --json
  crossdock report slow --queue mail --top 5
  crossdock report slo --queue mail --done-within 5m --ratio 0.99
  crossdock report capacity --target-wait 2s
  crossdock report cost --price 0.12 --currency EUR
  crossdock report flaky --days 30
"""

#: Pages that are not in the module of most.
_PAGES = {
    "queue": "queue_pages",
    "queues": "queue_pages",
    "slo": "planning_pages",
    "capacity": "planning_pages",
    "cost": "planning_pages",
    "flaky": "planning_pages",
}


class ReportCommand(TablesCommand):
    """A report over some days, as text, JSON or HTML."""

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
                help="Last day, for example 2026-11-15. [the current day]",
            ),
            click.Option(
                ["--server"], type=Name(), metavar="NAME", help="Of this server alone. [the sums of all servers]"
            ),
            click.Option(["--top"], type=click.IntRange(1, 1_000), default=20, metavar="N", help="Rows per list. [20]"),
            click.Option(
                ["--html", "html_file"],
                type=click.Path(path_type=Path, dir_okay=False, resolve_path=True, allow_dash=True),
                metavar="FILE",
                help="Write one HTML file with plots. - is stdout.",
            ),
        ]


_of_one = click.option("--queue", type=Name(), metavar="QUEUE", help="Of this queue alone.")


@click.command("queue", cls=ReportCommand, epilog=_EXAMPLES)
@click.argument("queue", type=Name(), required=False, metavar="[QUEUE]")
def of_queue(queue: str | None, **values: Any) -> None:
    """Throughput, outcomes, waits, runs and outlook of all queues or one.

    Needs no running server, no Spark and no Java: crossdock pipeline run has made the tables.
    """
    _report("queue" if queue else "queues", values, queue)


@click.command("failures", cls=ReportCommand, epilog=_EXAMPLES)
@_of_one
def of_failures(queue: str | None, **values: Any) -> None:
    """Deaths, failures and retries, their top causes, and examples.

    Numbers and ids in messages are folded, so that equal causes are counted together.
    """
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


@click.command("slo", cls=ReportCommand, epilog=_EXAMPLES)
@_of_one
@click.option("--done-within", type=Span(), metavar="SPAN", help="Objective of --queue: from push to success, 5m.")
@click.option("--start-within", type=Span(), metavar="SPAN", help="Objective of --queue: from ready to leased, 10s.")
@click.option(
    "--ratio", type=click.FloatRange(0, 1, min_open=True, max_open=True), metavar="R", help="Its share of jobs. [0.99]"
)
def of_slo(
    queue: str | None, done_within: float | None, start_within: float | None, ratio: float | None, **values: Any
) -> None:
    """Objectives of queues: jobs in time, error budgets and burn rates.

    Objectives are in the settings, for example [slo.mail] done_within = "5m" ratio = 0.99. With --done-within or
    --start-within, that of --queue is tried out instead.
    """
    tried = done_within is not None or start_within is not None
    if (tried or ratio is not None) and queue is None:
        raise click.UsageError("--done-within, --start-within and --ratio need --queue")
    if ratio is not None and not tried:
        raise click.UsageError("--ratio needs --done-within or --start-within")

    def make(reader: "Reader", top: int, where: Locations) -> Any:
        from crossdock.pipeline.reports.slo import slo

        wanted = objectives_of(where.settings)
        if tried:
            wanted = [Objective(queue or "", done_within, 0.99 if ratio is None else ratio, start_within)]
        wanted = [each for each in wanted if queue in (None, each.queue)]
        if not wanted:
            of = f"the queue {queue} has no objective" if queue else "no queue has an objective"
            raise PipelineError(
                f"{of}: set [slo.{queue or 'QUEUE'}] in the settings file, or try one with --queue and --done-within"
            )
        return slo(reader, wanted[:top])

    _report("slo", values, queue if tried else None, make=make)


@click.command("capacity", cls=ReportCommand, epilog=_EXAMPLES)
@_of_one
@click.option(
    "--target-wait",
    type=Span(),
    metavar="SPAN",
    help="Mean wait to reach. [start_within of the queue's objective, else 10s]",
)
@click.option(
    "--arrival-scv",
    type=click.FloatRange(0, 10_000),
    default=1.0,
    metavar="X",
    help="Variance / mean² of the time between arrivals: 0 even, 1 random, more for bursts. [1]",
)
def of_capacity(queue: str | None, target_wait: float | None, arrival_scv: float, **values: Any) -> None:
    """Workers that each queue needs in its busiest hour.

    Computed from arrivals, attempts per job and the distribution of run times.
    """

    def make(reader: "Reader", top: int, where: Locations) -> Any:
        from crossdock.pipeline.reports.capacity import capacity

        return capacity(reader, top, queue, target_wait_s=target_wait, arrival_scv=arrival_scv)

    _report("capacity", values, queue, make=make)


@click.command("cost", cls=ReportCommand, epilog=_EXAMPLES)
@_of_one
@click.option(
    "--price",
    type=click.FloatRange(0, 1_000_000),
    metavar="N",
    help="Price of a worker hour. [pipeline.price_per_worker_hour]",
)
@click.option("--currency", metavar="TEXT", help="Its currency. [pipeline.currency]")
def of_cost(queue: str | None, price: float | None, currency: str | None, **values: Any) -> None:
    """Cost of each queue's run time, and of its failed attempts."""

    def make(reader: "Reader", top: int, where: Locations) -> Any:
        from crossdock.pipeline.reports.cost import cost

        settings = where.settings.pipeline
        each = settings.price_per_worker_hour if price is None else price
        if not each:
            raise PipelineError(
                "there is no price: set pipeline.price_per_worker_hour in the settings file, or pass --price"
            )
        return cost(reader, top, queue, price=each, currency=settings.currency if currency is None else currency)

    _report("cost", values, queue, make=make)


@click.command("flaky", cls=ReportCommand, epilog=_EXAMPLES)
@_of_one
def of_flaky(queue: str | None, **values: Any) -> None:
    """Kinds whose jobs often need several attempts."""
    _report("flaky", values, queue)


def _report(
    name: str,
    values: dict[str, Any],
    queue: str | None = None,
    *,
    make: "Callable[[Reader, int, Locations], Any] | None" = None,
) -> None:
    """`name` is a module below pipeline.reports and the function in it, unless `make` is given."""
    from crossdock.pipeline.reports.freshness import freshness
    from crossdock.pipeline.reports.tables import Days, Reader

    days, until, server, top, html_file, as_json = (
        values.pop(each) for each in ("days", "until", "server", "top", "html_file", "as_json")
    )
    where = locations(values, lake_needed=False)
    _check_days(days, until)
    if as_json and str(html_file) == "-":
        raise click.UsageError("--json and --html - both write to stdout; name a file for the page")
    last = until.date() if until else dt.datetime.now(dt.UTC).date()
    with meter() as progress:
        reader = Reader(where.tables, Days.until(last, days), server=server, progress=progress)
        reader.expect_server()
        if queue:
            reader.expect_queue(queue)
        if make is not None:
            found = make(reader, top, where)
        else:
            module = getattr(import_module(f"crossdock.pipeline.reports.{name}"), name)
            found = module(reader, top, queue) if queue else module(reader, top)
        fresh = freshness(reader, where.lake)
    if as_json:
        print_json({"tables": msgspec.to_builtins(fresh), **msgspec.to_builtins(found)})
    if as_json and html_file is None:
        return
    page = _page_of(name)(found, _facts(fresh, server))
    if html_file is not None:
        _write(html_file, page, f"{fresh.first} to {fresh.last}, tables up to {_upto(fresh)}")
        return
    from crossdock.cli.render.terminal import text

    click.echo(text(page, width()))


def _page_of(name: str) -> Callable[[Any, list[str]], Any]:
    module = import_module(f"crossdock.cli.render.{_PAGES.get(name, 'report_pages')}")
    page: Callable[[Any, list[str]], Any] = getattr(module, f"{name}_page")
    return page


def _write(file: Path, page: Any, age: str) -> None:
    from crossdock.cli.render.html import document

    made_by = f"Crossdock {__version__}, {times.minute(dt.datetime.now(dt.UTC), year=True)}"
    text = document(page, made_by, age)
    if str(file) == "-":
        click.echo(text, nl=False)
        return
    if file.exists() and not file.is_file():
        raise click.UsageError(f"--html {file} is not a file; - is stdout")
    written = write_whole(file, [text.encode()])
    note(f"wrote {file}, {size(written)}; only its owner can read it")


def _check_days(days: int, until: Any) -> None:
    """Raises click.UsageError if the days begin before the first date of the calendar."""
    if until is not None and (until.date() - dt.date.min).days < days:
        raise click.UsageError(f"--until {until.date()} has no {some(days, 'day')} before it")


def _upto(fresh: "Freshness") -> str:
    return times.instant(fresh.upto.timestamp()) if fresh.upto else str(fresh.newest or "nothing")


def _facts(fresh: "Freshness", server: str | None) -> list[str]:
    days = (fresh.last - fresh.first).days + 1
    behind = "everything is ingested"
    if not fresh.lakes:
        behind = "there is no lake here, so the tables' lag is not known"
    elif fresh.waiting:
        behind = f"{some(fresh.waiting_rows, 'event')} not ingested yet: run crossdock pipeline run"
    seen = f"; observed: {lasting(fresh.observed_s)}" if fresh.observed_s else ""
    facts = [f"{fresh.first} to {fresh.last}, {some(days, 'day')}, UTC{seen}", f"tables up to {_upto(fresh)}; {behind}"]
    if server is not None:
        facts.append(f"server {server}")
    elif len(fresh.servers) > 1:
        facts.append(f"{some(len(fresh.servers), 'server')}: {', '.join(fresh.servers)}")
    facts += fresh.troubles
    if fresh.newest is not None and fresh.newest < fresh.first:
        facts.append(
            f"no data in these days; the newest day in the tables is {fresh.newest}: use --until {fresh.newest}"
        )
    return facts
