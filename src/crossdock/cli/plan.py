"""`crossdock plan add`, `crossdock plan rm`: a job that comes again and again, and no more of it."""

import time
from datetime import datetime
from typing import Any

import click

from crossdock.cli.acting import NothingDone
from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.filters import Name, span
from crossdock.cli.show import clean
from crossdock.cli.values import json_text

_ADD_EXAMPLES = """\b
Examples:
  crossdock plan add shop 1d 'Jobs\\Nightly'
  crossdock plan add shop P1M 'Jobs\\Invoices' '{"dry": false}' --id invoices --start 2026-12-01T03:00:00Z
  crossdock plan add shop 10m 'Jobs\\Poll' --uid poll --deferrable-by 30
"""

_RM_EXAMPLES = """\b
Examples:
  crossdock plan rm shop_invoices
"""


_EXAMPLES = """\b
Examples:
  crossdock plan add shop 1d 'Jobs\\Nightly' --id nightly
  crossdock plan rm shop_nightly
"""


@click.group("plan", epilog=_EXAMPLES)
def plan() -> None:
    """Add or remove a plan: a job that comes again and again."""


@plan.command("add", cls=OperatorCommand, epilog=_ADD_EXAMPLES)
@click.argument("source", type=Name())
@click.argument("interval")
@click.argument("kind", type=Name(), metavar="CLASS")
@click.argument("args", required=False, metavar="[ARGS_JSON]")
@click.option("--id", "ident", type=Name(), metavar="ID", help="What it is called; without it a random name.")
@click.option("--start", metavar="TIME|SPAN", help="The first run: 2026-12-01T03:00:00Z, or 10m from now. [now]")
@click.option("--name", type=Name(), metavar="NAME", help="The job's name, which chooses its pool. [the class]")
@click.option("--uid", type=Name(), metavar="UID", help="Its unique id: only one such job waits or runs at a time.")
@click.option("--deferrable-by", type=int, metavar="SECONDS", help="With --uid: one may wait for the running one.")
def add(source: str, interval: str, kind: str, args: str | None, as_json: bool, **values: Any) -> None:
    """Add a plan and print its name once it is on disk.

    INTERVAL is a span, such as 45s, 10m, 2h or 7d, or by the calendar: P1M is a month, P1Y2M3DT4H5M6S all there is. The
    first run is at the start, or as many intervals later as it takes to be still to come.
    """
    names = ("ident", "start", "name", "uid", "deferrable_by")
    ident, start, name, uid, deferrable_by = (values.pop(each) for each in names)
    if deferrable_by is not None and not uid:
        raise click.UsageError("--deferrable-by needs --uid: a job is deferred by another one of its unique id")
    request = {
        "source": source,
        "interval": _interval(interval),
        "kind": kind,
        "id": ident,
        "name": name,
        "args": None if args is None else _args(args),
        "uid": uid,
        "deferrable_by": deferrable_by,
        "start": None if start is None else _start(start),
    }
    with server(values) as client:
        made = client.ask("plan-add", **request)
    if as_json:
        print_json(made)
    else:
        click.echo(made["plan"])


@plan.command("rm", cls=OperatorCommand, epilog=_RM_EXAMPLES)
@click.argument("plans", type=Name(), nargs=-1, required=True, metavar="PLAN...")
def rm(plans: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """Remove plans. What they have enqueued stays."""
    with server(values) as client:
        answer = client.ask("plan-rm", plans=list(plans))
    if as_json:
        print_json(answer)
    else:
        for each in answer["done"]:
            click.echo(f"removed {clean(each)}")
    if answer["unknown"]:
        raise NothingDone("; ".join(f"there is no plan {clean(each)}" for each in answer["unknown"]))


def _interval(text: str) -> str:
    seconds = span(text)
    if seconds is None:
        return text  # the server says what is wrong with it
    if seconds != int(seconds):
        raise click.UsageError("an interval is made of whole seconds")
    return f"PT{int(seconds)}S"


def _args(text: str) -> Any:
    return json_text("ARGS_JSON", text, "{" if text.lstrip().startswith("{") else "[")


def _start(text: str) -> float:
    seconds = span(text)
    if seconds is not None:
        return time.time() + seconds
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no time; write 2026-12-01T03:00:00Z, or 45s, 10m, 2h, 7d", param_hint="--start"
        ) from None
