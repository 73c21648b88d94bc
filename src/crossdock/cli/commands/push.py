"""`crossdock push`: push one job over any protocol."""

import uuid
from collections.abc import Callable
from typing import Any, Final

import click

from crossdock.cli.options import AdminCommand, remote_server, server
from crossdock.cli.output import print_json
from crossdock.cli.parameters import Name, Span, delay, future, json_text, moment, whole_second
from crossdock.cli.protocol_clients import WORKERS, faktory, masenko, qless, workq
from crossdock.client.jobs import NewJob

_EXAMPLES = """\b
Examples:
  crossdock push mail welcome '[42, "de"]'
  crossdock push reports monthly '[]' --at 2026-12-01T03:00:00Z --retry 3
  crossdock push mail remind '[42]' --at 10m --priority 9 --custom '{"unique_for": 600}'
  crossdock push mail welcome '[42]' --listen faktory=10.0.0.5:7419
  crossdock --server https://host:7420 --token-file F push mail welcome '[42]' --tag vip
  crossdock push ping 'any text' --via workq --reserve-for 30 --ttl 2h
  crossdock push mail welcome '{"to": 42}' --via masenko --at 10m
  crossdock push mail app.Welcome '{"to": 42}' --via qless --tag vip --depends-on 2c1d8c4e
"""


@click.command("push", cls=AdminCommand, epilog=_EXAMPLES)
@click.argument("words", nargs=-1, required=True, metavar="QUEUE KIND ARGS_JSON")
@click.option("--via", type=click.Choice(list(WORKERS)), default="faktory", help="The protocol. [faktory]")
@click.option("--jid", type=Name(), metavar="JID", help="The job's ID. Workq: a UUID. [random]")
@click.option("--priority", type=int, metavar="N", help="Higher first. Faktory: 1 to 9 [5]; others: any [0].")
@click.option("--at", metavar="TIME|SPAN", help="Not before: 2026-12-01T03:00:00Z, or 45s, 10m, 2h, 7d from now.")
@click.option(
    "--retry", type=int, metavar="N", help="[Faktory 25; 0 drops it, -1 buries it. Workq 0, Masenko 20, qless 5]"
)
@click.option("--reserve-for", type=int, metavar="SECONDS", help="Lease time. [Faktory 1800, Workq 60]")
@click.option("--ttl", type=Span(), metavar="SPAN", help="Workq: job and result are removed after this. [1d]")
@click.option("--custom", metavar="JSON", help="Faktory: unique_for, expires_in, bid, track, or the worker's own.")
@click.option("--tag", "tags", type=Name(), multiple=True, metavar="TAG", help="qless, HTTP: a tag. May be repeated.")
@click.option(
    "--depends-on",
    type=Name(),
    multiple=True,
    metavar="JID",
    help="qless: not before this job is complete. May be repeated.",
)
@click.option(
    "--listen", multiple=True, metavar="PROTOCOL=ADDRESS", help="Address of the listener. [that of the running server]"
)
def push(words: tuple[str, ...], via: str, as_json: bool, **values: Any) -> None:
    """Push one job and print its jid once it is on disk.

    The job is pushed through a protocol, as a client does it, at the address and with the password of the settings.
    With --server it is pushed through the HTTP API, as a Faktory job, maybe with tags. The audit trail has it.

    \b
    Faktory: crossdock push QUEUE KIND ARGS_JSON
    Workq:   crossdock push NAME PAYLOAD --via workq (the payload is any text)
    Masenko: crossdock push QUEUE NAME [PAYLOAD_JSON] --via masenko (prints Masenko's id)
    qless:   crossdock push QUEUE KIND [DATA_JSON] --via qless
    """
    named = _PUSH[via](words, values) if remote_server(values) is None else _http(words, via, values)
    if as_json:
        print_json(named)
    else:
        click.echo(next(iter(named.values())))


def _http(words: tuple[str, ...], via: str, values: dict[str, Any]) -> dict[str, Any]:
    if via != "faktory":
        raise click.UsageError(f"--server pushes through the HTTP API; leave out --via {via}, or name --listen instead")
    options = _given(values, "the HTTP API", "jid", "priority", "at", "retry", "reserve_for", "custom", "tags")
    queue, kind, args = _job_words(words, options)
    fields = {"jid": "jid", "priority": "priority", "retry": "retries", "reserve_for": "lease_s", "tags": "tags"}
    job = {name: options[option] for option, name in fields.items() if option in options}
    job["args"] = json_text("ARGS_JSON", args, "[")
    if "custom" in options:
        job["custom"] = json_text("--custom", options["custom"], "{")
    if "at" in options:
        job["at"] = future("--at", options["at"])
    with server(values) as client:
        return {"jid": client.ask("push", queue=queue, kind=kind, **job)["jid"]}


def _job_words(words: tuple[str, ...], options: dict[str, Any]) -> tuple[str, str, str]:
    """Queue, kind and arguments of a job with the fields of Faktory."""
    if len(words) != 3:
        raise click.UsageError("give QUEUE KIND ARGS_JSON, such as: mail welcome '[42]'")
    if not 1 <= options.get("priority", 5) <= 9:
        raise click.BadParameter("through Faktory it is 1 to 9", param_hint="--priority")
    queue, kind, args = words
    _expect_names(QUEUE=queue, KIND=kind)
    return queue, kind, args


def _faktory(words: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any]:
    options = _given(values, "faktory", "jid", "priority", "at", "retry", "reserve_for", "custom")
    queue, kind, args = _job_words(words, options)
    job = NewJob(
        kind=kind,
        queue=queue,
        args=json_text("ARGS_JSON", args, "["),
        jid=options.get("jid") or str(uuid.uuid4()),
        retries=options.get("retry", 25),
        priority=options.get("priority"),
        lease_s=options.get("reserve_for"),
        at=moment(options["at"]) if "at" in options else None,
        custom=json_text("--custom", options["custom"], "{") if "custom" in options else None,
    )
    with faktory(values) as client:
        return {"jid": client.push(job)}


def _workq(words: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any]:
    options = _given(values, "workq", "jid", "priority", "at", "retry", "reserve_for", "ttl")
    if len(words) != 2:
        raise click.UsageError("through Workq give NAME PAYLOAD, such as: ping 'any text'")
    if options.get("retry", 0) < 0:
        raise click.UsageError("through Workq, --retry is 0 or more")
    name, payload = words
    _expect_names(NAME=name)
    jid = options.get("jid") or str(uuid.uuid4())
    flags = [f"-priority={options['priority']}"] if "priority" in options else []
    flags += [f"-max-fails={options['retry'] + 1}"] if "retry" in options else []
    time = whole_second(moment(options["at"])) if "at" in options else ""
    with workq(values) as client:
        client.add(
            jid,
            name,
            payload.encode("utf-8", "surrogateescape"),
            ttr_ms=options.get("reserve_for", 60) * 1_000,
            ttl_ms=round(options.get("ttl", 86_400.0) * 1_000),
            time=time,
            flags=" ".join(flags),
        )
    return {"jid": jid}


def _masenko(words: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any]:
    options = _given(values, "masenko", "at", "retry")
    if len(words) not in (2, 3):
        raise click.UsageError("through Masenko give QUEUE NAME and maybe PAYLOAD_JSON, such as: mail welcome '[42]'")
    _expect_names(QUEUE=words[0], NAME=words[1])
    task: dict[str, Any] = {"queue": words[0], "name": words[1]}
    if len(words) == 3:
        task["payload"] = json_text("PAYLOAD_JSON", words[2], "")
    if "retry" in options:
        task["retry"] = options["retry"]
    if "at" in options:
        task["execute_at"] = moment(options["at"])
    with masenko(values) as client:
        return {"id": client.push(task)}


def _qless(words: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any]:
    options = _given(values, "qless", "jid", "priority", "at", "retry", "tags", "depends_on")
    if len(words) not in (2, 3):
        raise click.UsageError("through qless give QUEUE KIND and maybe DATA_JSON, such as: mail app.Welcome '{}'")
    _expect_names(QUEUE=words[0], KIND=words[1])
    jid = options.get("jid") or uuid.uuid4().hex
    data = json_text("DATA_JSON", words[2] if len(words) == 3 else "{}", "")
    names = {"priority": "priority", "retry": "retries", "tags": "tags", "depends_on": "depends"}
    more = {name: options[option] for option, name in names.items() if option in options}
    wait_s = delay(options["at"]) if "at" in options else 0.0
    with qless(values) as client:
        client.put(words[0], jid, words[1], bytes(data), wait_s, **more)
    return {"jid": jid}


#: The options that not every protocol has.
_OPTIONS: Final = ("jid", "priority", "at", "retry", "reserve_for", "ttl", "custom", "tags", "depends_on")


def _given(values: dict[str, Any], protocol: str, *known: str) -> dict[str, Any]:
    """The options that were given, removed from `values`. Raises UsageError for one that this protocol lacks."""
    found = {name: value for name in _OPTIONS if (value := values.pop(name)) not in (None, ())}
    for name in found:
        if name not in known:
            flag = {"tags": "tag"}.get(name, name.replace("_", "-"))
            raise click.UsageError(f"{protocol} has no --{flag}")
    return found


def _expect_names(**names: str) -> None:
    """Raises click.BadParameter for an empty name: a server may accept it, but no filter would find the job again."""
    for what, name in names.items():
        if not name:
            raise click.BadParameter("it is empty; give a name", param_hint=what)


#: By protocol: a function that pushes a job from its words and options, and returns its ID.
_PUSH: Final[dict[str, Callable[[tuple[str, ...], dict[str, Any]], dict[str, Any]]]] = {
    "faktory": _faktory,
    "workq": _workq,
    "masenko": _masenko,
    "qless": _qless,
}
