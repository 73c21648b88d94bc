"""`crossdock job take`: lease one job as a worker does, show it, and settle it."""

import sys
from contextlib import closing
from typing import Any

import click

from crossdock.cli import completion
from crossdock.cli.options import AdminCommand, remote_server
from crossdock.cli.output import note, print_json
from crossdock.cli.parameters import Name, Span
from crossdock.cli.protocol_clients import WORKERS
from crossdock.cli.render.tables import age, clean
from crossdock.client.base import Taken, Worker

_EXAMPLES = """\b
Examples:
  crossdock job take mail reports                       look at it, then settle it
  crossdock job take ping --via workq --done            complete it
  crossdock job take mail --fail "no such user" --wait 1m
  crossdock job take mail --via qless --done
  crossdock job take mail --leave --json                for a program that settles it
"""


@click.command("take", cls=AdminCommand, epilog=_EXAMPLES)
@click.argument("queues", type=Name(), nargs=-1, required=True, metavar="QUEUE...", shell_complete=completion.queues)
@click.option("--via", type=click.Choice(list(WORKERS)), default="faktory", help="The protocol. [faktory]")
@click.option("--wait", type=Span(), default="2s", metavar="SPAN", help="How long to wait for a job. [2s]")
@click.option("--done", is_flag=True, help="Complete it.")
@click.option("--fail", "message", metavar="MESSAGE", help="Fail it with this message. In qless this is final.")
@click.option("--leave", is_flag=True, help="Leave it leased until the lease ends. In Masenko it ends at once.")
@click.option(
    "--listen", multiple=True, metavar="PROTOCOL=ADDRESS", help="Address of the listener. [that of the running server]"
)
def take(queues: tuple[str, ...], via: str, wait: float, as_json: bool, **values: Any) -> int:
    """Lease one job as a worker does, show it, and settle it.

    Without --done, --fail or --leave the command asks what to do with the job. Exit code 1: there was no job. A server
    on another machine is named with --listen: the HTTP API of --server cannot lease jobs.
    """
    done, message, leave = values.pop("done"), values.pop("message"), values.pop("leave")
    found = [done, message is not None, leave]
    if sum(found) > 1:
        raise click.UsageError("give one of --done, --fail and --leave")
    if not any(found) and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("stdin is not a terminal; pass --done, --fail or --leave")
    remote = remote_server(values)
    if remote is not None:
        raise click.UsageError(
            f"job take leases a job over a worker's protocol, and {remote} is the address of the HTTP API; leave out "
            f"--server and name the listener, such as --listen {via}=HOST:PORT"
        )
    with closing(WORKERS[via](values)) as worker:
        job = worker.take(list(queues), wait)
        if job is None:
            if as_json:
                print_json({"job": None, "settled": None})
            else:
                note(f"no job within {age(wait)} in {', '.join(map(clean, queues))}")
            return 1
        if not as_json:
            click.echo(_shown(job))
        if not any(found):
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
    """Whether the job is done, or why it failed. Neither: the job stays leased, as after Ctrl-C."""
    choices = click.Choice(["done", "fail", "leave"])
    try:
        answer = click.prompt("what to do with it", type=choices, default="leave", err=True)
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
