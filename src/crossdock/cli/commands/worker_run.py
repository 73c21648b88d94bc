"""`crossdock worker run` and `crossdock worker check`: run the tasks of a Python module, and probe that it works."""

import asyncio
from pathlib import Path
from typing import Any

import click

from crossdock.cli.output import print_json
from crossdock.cli.parameters import Span
from crossdock.logs import LogOptions
from crossdock.model.errors import CrossdockError
from crossdock.worker import logs, status
from crossdock.worker.loading import NotLoadable, check_target
from crossdock.worker.options import (
    LEASE_LEAST_S,
    LEASE_MOST_S,
    PREFETCH_AT_MOST,
    PROCESSES_AT_MOST,
    SLOTS_AT_MOST,
    WorkerOptions,
    read_size,
)
from crossdock.worker.queues import ORDERS, read_queues
from crossdock.worker.supervisor import Supervisor

_RUN_EXAMPLES = """\b
Examples:
  crossdock worker run shop.tasks
  crossdock worker run shop.tasks -q mail:5,default --processes 4 --threads 20
  crossdock worker run shop.tasks:app --asyncio 200 --timeout 2m --max-memory 512M
  crossdock worker run shop.tasks --reload
"""

_CHECK_EXAMPLES = """\b
Examples:
  crossdock worker check
  crossdock worker check --status /run/shop/worker.json
"""


class Size(click.ParamType[int]):
    """`512M`, `2G`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else read_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command("run", epilog=_RUN_EXAMPLES)
@click.argument("target", metavar="MODULE[:APP]")
@click.option(
    "-q",
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME[:WEIGHT],…",
    help="Queues to work, maybe with weights. [those of the tasks]",
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    help="ordered: a queue only while those before it are empty; weighted: each by its weight; round-robin: one job of "
    "each in turn. [weighted if a weight is given, else ordered]",
)
@click.option(
    "--processes",
    type=click.IntRange(1, PROCESSES_AT_MOST),
    default=1,
    metavar="N",
    help="Processes that run tasks. [1]",
)
@click.option(
    "--threads",
    type=click.IntRange(1, SLOTS_AT_MOST),
    metavar="N",
    help="Jobs at a time in each process, in threads. [10]",
)
@click.option(
    "--asyncio",
    "asyncio_slots",
    type=click.IntRange(1, SLOTS_AT_MOST),
    metavar="N",
    help="Jobs at a time in each process, on an event loop. Tasks that are not coroutines run in threads beside it.",
)
@click.option(
    "--prefetch",
    type=click.IntRange(0, PREFETCH_AT_MOST),
    default=250,
    metavar="N",
    help="Jobs that a process may hold beyond those it runs, at most. Fewer are held while tasks take long. [250]",
)
@click.option("--lease", type=Span(), default=60.0, metavar="SPAN", help="Lease of a job, renewed while it runs. [60s]")
@click.option("--timeout", type=Span(), metavar="SPAN", help="Time limit of tasks that have none of their own. [none]")
@click.option(
    "--grace", type=Span(), default=25.0, metavar="SPAN", help="Time that jobs get when the worker stops. [25s]"
)
@click.option("--max-jobs", type=click.IntRange(1), metavar="N", help="Replace a process after this many jobs. [never]")
@click.option(
    "--max-memory", type=Size(), metavar="SIZE", help="Replace a process that uses more, such as 512M. [none]"
)
@click.option(
    "--max-deaths",
    type=click.IntRange(1, 1_000),
    default=3,
    metavar="N",
    help="Give up a job that ended its process this often in a row. [3]",
)
@click.option(
    "--sandbox",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Give each process a working folder in DIR, emptied between jobs. [none]",
)
@click.option(
    "--app-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder in which modules are looked for first. [the current one]",
)
@click.option("--url", metavar="URL", envvar="CROSSDOCK_WORKER_URL", help="Server, instead of that of the app.")
@click.option("--reload", is_flag=True, help="Start new processes when a source file changes, for development.")
@click.option("--label", "labels", multiple=True, metavar="TEXT", help="Shown by worker list. May be repeated.")
@click.option(
    "--status",
    "status_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Status file for worker check. [one for each worker, in a folder of the user]",
)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", help="Lines to log. [info]"
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", help="Format of the log. [text]")
def run(target: str, **values: Any) -> None:
    """Run the tasks of a Python module.

    MODULE is imported in each process; APP is the name of its crossdock.App, if it has several. The worker fetches
    jobs of any protocol whose kind is the name of a task. It runs until a signal or the server stops it.

    \b
    Signals:
      TERM, INT  finish the running jobs within --grace and stop; twice: stop at once
      TSTP       fetch no more jobs
      TTIN       print the stacks of all threads
    """
    options = _options(target, values)
    try:
        check_target(target)
    except NotLoadable as error:
        raise click.UsageError(str(error)) from error
    logs.configure(LogOptions(options.log_level, options.log_format))
    asyncio.run(_run(options))


async def _run(options: WorkerOptions) -> None:
    await Supervisor(options).run()


def _options(target: str, values: dict[str, Any]) -> WorkerOptions:
    """Raises click.UsageError."""
    if values["threads"] is not None and values["asyncio_slots"] is not None:
        raise click.UsageError("--threads and --asyncio are two ways to run jobs; give one of them")
    if not LEASE_LEAST_S <= values["lease"] <= LEASE_MOST_S:
        raise click.UsageError(f"--lease must be from {LEASE_LEAST_S:g} s to {LEASE_MOST_S:g} s")
    try:
        queues = read_queues(values["queues"])
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return WorkerOptions(
        target=target,
        queues=queues,
        order=values["order"],
        url=values["url"],
        processes=values["processes"],
        mode="threads" if values["asyncio_slots"] is None else "asyncio",
        slots=values["asyncio_slots"] or values["threads"] or 10,
        prefetch=values["prefetch"],
        lease_s=values["lease"],
        timeout_s=values["timeout"] or None,
        grace_s=values["grace"],
        max_jobs=values["max_jobs"],
        max_memory=values["max_memory"],
        max_deaths=values["max_deaths"],
        sandbox=values["sandbox"],
        folder=(values["app_dir"] or Path.cwd()).resolve(),
        reload=values["reload"],
        labels=values["labels"],
        status=values["status_file"],
        log_level=values["log_level"],
        log_format=values["log_format"],
    )


class NotHealthy(CrossdockError):
    """A worker does not work, or there is none."""


@click.command("check", epilog=_CHECK_EXAMPLES)
@click.option(
    "--status",
    "status_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Status file of the worker, as given to worker run. [those of all workers of this user]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(status_file: Path | None, as_json: bool) -> None:
    """Check the Python workers on this machine, for probes.

    The exit code is 0 if each worker has a process that is ready, and the server has replied to it within half a
    minute. Otherwise it is 1, and the message says what is wrong. A worker that is quiet or stops is healthy.
    """
    if status_file is None:
        found = list(status.found())
        where = "on this machine for this user"
    else:
        one = status.read(status_file)
        found, where = ([] if one is None else [one]), f"with the status file {status_file}"
    if not found:
        raise NotHealthy(f"no worker runs {where}; start one with crossdock worker run")
    if as_json:
        print_json({"workers": [_described(each) for each in found]})
    else:
        for each in found:
            click.echo(_sentence(each))
    problems = [f"worker {each.pid}: {problem}" for each in found if (problem := status.problem_of(each))]
    if problems:
        raise NotHealthy("; ".join(problems))


def _described(found: status.Status) -> dict[str, Any]:
    return {
        "pid": found.pid,
        "worker": found.wid,
        "module": found.target,
        "server": found.server,
        "state": found.state,
        "processes": found.ready,
        "slots": found.slots,
        "running": found.running,
        "done": found.done,
        "failed": found.failed,
        "problem": status.problem_of(found),
    }


def _sentence(found: status.Status) -> str:
    return (
        f"worker {found.pid} ({found.target}) is {found.state}; processes ready: {found.ready}, slots in use: "
        f"{found.running} of {found.slots}, jobs done: {found.done}, failed: {found.failed}"
    )
