"""`crossdock push`: a job, through the Faktory door."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import msgspec

from crossdock.cli.control import OperatorCommand, print_json, server, settings_of
from crossdock.cli.filters import span
from crossdock.client.errors import NoServer, Refused
from crossdock.client.faktory import FaktoryClient
from crossdock.server import address

_EXAMPLES = """\b
Examples:
  crossdock push mail welcome '[42, "de"]'
  crossdock push reports monthly '[]' --at 2026-12-01T03:00:00Z --retry 3
  crossdock push mail remind '[42]' --at 10m --priority 9 --custom '{"unique_for": 600}'
  crossdock push mail welcome '[42]' --listen faktory=10.0.0.5:7419
"""


@click.command("push", cls=OperatorCommand, epilog=_EXAMPLES)
@click.argument("queue")
@click.argument("kind")
@click.argument("args", metavar="ARGS_JSON")
@click.option("--jid", metavar="JID", help="Its name; without it a random one.")
@click.option("--priority", type=click.IntRange(1, 9), help="1 to 9, higher first. [5]")
@click.option("--at", metavar="TIME|SPAN", help="Not before: 2026-12-01T03:00:00Z, or 45s, 10m, 2h, 7d from now.")
@click.option("--retry", type=int, metavar="N", help="Retries after failures; 0: drop it, -1: bury it. [25]")
@click.option("--reserve-for", type=int, metavar="SECONDS", help="How long a worker may take. [1800]")
@click.option("--custom", metavar="JSON", help="An object: unique_for, expires_in, bid, track, or the worker's own.")
@click.option("--listen", multiple=True, metavar="faktory=ADDRESS", help="Where the door is; else as the settings say.")
def push(queue: str, kind: str, args: str, as_json: bool, **values: Any) -> None:
    """Push one job and print its jid once it is on disk.

    It goes through the Faktory door, as any client's job would, at the address and with the password of the settings.
    """
    job: dict[str, Any] = {
        "jid": values.pop("jid") or str(uuid.uuid4()),
        "queue": queue,
        "jobtype": kind,
        "args": _json("ARGS_JSON", args, "["),
    }
    custom, at = values.pop("custom"), values.pop("at")
    job |= {name: values.pop(name) for name in ("priority", "retry", "reserve_for")}
    job["custom"] = None if custom is None else _json("--custom", custom, "{")
    job["at"] = None if at is None else _time(at)
    with _door(values) as client:
        client.push({name: value for name, value in job.items() if value is not None})
    if as_json:
        print_json({"jid": job["jid"]})
    else:
        click.echo(job["jid"])


def _json(what: str, text: str, begins: str) -> msgspec.Raw:
    """Checked here, and sent as it was written."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
        if not text.lstrip().startswith(begins):
            raise ValueError("of another type")
    except (ValueError, UnicodeEncodeError) as error:
        shape = "array, such as '[1, \"two\"]'" if begins == "[" else "object, such as '{\"track\": 1}'"
        raise click.UsageError(f"{what} must be a JSON {shape}; in a shell it needs quotes") from error
    return msgspec.Raw(text.replace("\n", " ").encode())


def _time(text: str) -> str:
    seconds = span(text)
    if seconds is None:
        return text  # the server says what is wrong with it
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def _door(values: dict[str, Any]) -> FaktoryClient:
    settings = settings_of(values).settings
    where = address.parse(settings.listen.faktory)
    if where is None:
        raise Refused("the Faktory door is closed: listen.faktory is off; open it, and start the server anew")
    if not where.path and not where.port:  # the server took one that was free; it knows which
        with server(values) as control:
            where = address.parse(control.ask("status")["status"]["doors"]["faktory"])
    if where is None:
        raise Refused("the server has no Faktory door")
    try:
        return FaktoryClient(where.host, where.port, where.path, settings.faktory.password)
    except NoServer as error:
        raise NoServer(f"{error}; start it with crossdock up, or say where it is with --listen faktory=…") from error
