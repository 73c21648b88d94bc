"""`crossdock try`: takes one job as a worker would, shows it, and settles it as told."""

import sys
from contextlib import closing
from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, tell
from crossdock.cli.doors import WORKERS
from crossdock.cli.filters import Name, Span
from crossdock.cli.show import age, clean
from crossdock.client.base import Taken, Worker

_EXAMPLES = """\b
Examples:
  crossdock try mail reports                       look, then say what became of it
  crossdock try ping --via workq --done            take it and complete it
  crossdock try mail --fail "no such user" --wait 1m
  crossdock try mail --via qless --done
  crossdock try mail --leave --json                for a program that settles it by itself
"""


@click.command("try", cls=OperatorCommand, epilog=_EXAMPLES)
@click.argument("queues", type=Name(), nargs=-1, required=True, metavar="QUEUE...")
@click.option("--via", type=click.Choice(list(WORKERS)), default="faktory", help="The door. [faktory]")
@click.option("--wait", type=Span(), default="2s", metavar="SPAN", help="Wait so long for a job. [2s]")
@click.option("--done", is_flag=True, help="It succeeded.")
@click.option("--fail", "message", metavar="MESSAGE", help="It failed, and why; through qless for good.")
@click.option("--leave", is_flag=True, help="Leave it leased until the lease ends; Masenko's ends at once.")
@click.option("--listen", multiple=True, metavar="DOOR=ADDRESS", help="Where the door is; else as the settings say.")
def try_(queues: tuple[str, ...], via: str, wait: float, as_json: bool, **values: Any) -> int:
    """Take one job of these queues, show it, and settle it.

    Without --done, --fail or --leave it asks what became of the job. Exit code 1: there was none.
    """
    done, message, leave = values.pop("done"), values.pop("message"), values.pop("leave")
    told = [done, message is not None, leave]
    if sum(told) > 1:
        raise click.UsageError("give one of --done, --fail and --leave")
    if not any(told) and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("nobody is there to ask: say what becomes of the job with --done, --fail or --leave")
    with closing(WORKERS[via](values)) as worker:
        job = worker.take(list(queues), wait)
        if job is None:
            if as_json:
                print_json({"job": None, "settled": None})
            else:
                tell(f"no job came in {age(wait)} in {', '.join(map(clean, queues))}")
            return 1
        if not as_json:
            click.echo(_shown(job))
        if not any(told):
            done, message = _ask()
        settled = _settle(worker, job, done, message)
    if as_json:
        shown = job._asdict() | {"payload": job.payload.decode("utf-8", "replace")}
        print_json({"job": shown, "settled": settled})
    else:
        click.echo(settled if settled != "left" else f"left: {worker.left}")
    return 0


def _shown(job: Taken) -> str:
    payload = clean(job.payload.decode("utf-8", "replace"))
    lines = [("id", job.ident), ("queue", job.queue), ("kind", job.kind), ("payload", payload)]
    return "\n".join(f"{name:8} {clean(text)}" for name, text in lines)


def _ask() -> tuple[bool, str | None]:
    """Done or not, and why it failed. Neither: it is left, as it is by one who goes without an answer."""
    choices = click.Choice(["done", "fail", "leave"])
    try:
        answer = click.prompt("what became of it", type=choices, default="leave", err=True)
        if answer == "fail":
            return False, click.prompt("why", default="", show_default=False, err=True)
    except click.Abort:
        click.echo(err=True)
        return False, None
    return answer == "done", None


def _settle(worker: Worker, job: Taken, done: bool, message: str | None) -> str:
    if done:
        worker.done(job)
        return "done"
    if message is not None:
        worker.failed(job, message)
        return "failed"
    return "left"
