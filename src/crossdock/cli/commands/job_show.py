"""`crossdock job show`: the live state of one job, and its history from the lake."""

from collections.abc import Iterator
from typing import Any, Final

import click
from msgspec.structs import replace

from crossdock.cli import completion
from crossdock.cli.options import AdminCommand, server, settings_of
from crossdock.cli.output import note as say
from crossdock.cli.output import print_json
from crossdock.cli.parameters import Name
from crossdock.cli.render import times
from crossdock.cli.render.tables import age, clean, lasting, number, some
from crossdock.client.admin import AdminClient
from crossdock.client.errors import Refused
from crossdock.client.http_admin import HttpAdminClient
from crossdock.model.errors import CrossdockError
from crossdock.protocols.admin.timeline import history_note

_EXAMPLES = """\b
Examples:
  crossdock job show 4711
  crossdock job show 4711 --history
  crossdock job show 2c1d8c4e-0d52-4f0c-9d0a-8f1c8b3f9a11
  crossdock job show 4711 --history --json
"""

#: Members on the first lines, and members with sections of their own.
_PLAIN: Final = ("jid", "queue", "kind", "origin", "priority", "attempts", "failures", "tracked", "batch", "expires")
_LISTS: Final = ("tags", "depends_on", "dependents")
_NESTED: Final = ("lease", "error", "lock", "callback", "progress", "policy")

_Part = dict[str, Any]


@click.command("show", cls=AdminCommand, epilog=_EXAMPLES)
@click.argument("ident", type=Name(), metavar="ID", shell_complete=completion.jobs)
@click.option("--history", "with_history", is_flag=True, help="Also show every transition and attempt, from the lake.")
def show(ident: str, with_history: bool, as_json: bool, **values: Any) -> None:
    """Show one job with everything known about it, and its history.

    ID is a job's number or its jid. Shown are why it is not running, its fields, lease, last error, dependencies,
    batch, lock, progress and timeline. An arrow marks what is still to come.

    With --history every transition and attempt follows, newest first, from the lake. The search looks back at most 30
    days and takes at most 5 seconds; the last line says how far it came. The lake has an event when its segment is
    written, by default within a minute. For a job that is gone from the server, the history is shown without the flag.
    If the history cannot be read, the exit code is 1, and --json prints the live state with the reason as "error".
    """
    with server(values) as client:
        answer, gone = _live(client, ident)
        found = answer["job"]
        if not as_json and found is not None:
            click.echo("\n".join(_live_lines(answer)))
        if found is not None and not with_history:
            if as_json:
                print_json(answer)
            return
        try:
            _history(client, values, ident, answer, gone, as_json)
        except CrossdockError as error:
            shown = error
            if gone is not None and not isinstance(error, _Unknown):
                shown = Refused(f"{gone}; no history: {error}")
            if as_json:
                print_json(answer | {"history": None, "error": str(shown)})
            if gone is None and found is None and not with_history:
                _say_progress(ident, answer, error, as_json)
                return
            raise shown from error


class _Unknown(Refused):
    """Neither the server nor the lake has the job."""


def _live(client: AdminClient, ident: str) -> tuple[dict[str, Any], Refused | None]:
    """The reply, and the server's error if it does not know the job."""
    try:
        return client.job(ident), None
    except Refused as error:
        if not str(error).startswith(f"job {ident} not found"):
            raise
        return {"job": None, "progress": None}, error


def _history(
    client: AdminClient, values: dict[str, Any], ident: str, answer: dict[str, Any], gone: Refused | None, as_json: bool
) -> None:
    """Prints each day when it is read. Raises _Unknown."""
    found = answer["job"]
    is_number = ident.isascii() and ident.isdecimal()
    parts = _parts(client, values, found["number"] if found is not None else int(ident) if is_number else ident)
    days: list[_Part] = []
    for part in parts:
        if "finished" in part:
            break
        if not as_json and part["events"]:
            click.echo("\n".join([*_heading(ident, answer, days), *map(_line, part["events"])]))
        days += [part] if part["events"] else []
    else:
        raise Refused("the reply with the history is incomplete")
    if not days and gone is not None:
        raise _Unknown(f"{clean(str(gone))}; the lake does not have it, either: {_extent(part)}")
    if as_json:
        events = [event for day in reversed(days) for event in reversed(day["events"])]
        whole = {name: value for name, value in part.items() if name != "finished"}
        print_json(answer | {"history": {"events": events} | whole})
        return
    lines = [] if days else [*_heading(ident, answer, days), "  the lake has no event of this job yet"]
    click.echo("\n".join([*lines, _extent(part)]))


def _say_progress(ident: str, answer: dict[str, Any], error: CrossdockError, as_json: bool) -> None:
    """All that is known of a job that is gone and has no history."""
    if not as_json:
        click.echo("\n".join(_heading(ident, answer, [])[:-2]))
    say(f"no history: {error}")


def _parts(client: AdminClient, values: dict[str, Any], ident: int | str) -> Iterator[_Part]:
    if isinstance(client, HttpAdminClient):
        return client.history(ident)
    # Arrow takes a while to load, and most commands do not need it.
    from crossdock.lake import job_history
    from crossdock.server.lake_keeper import location_of

    # The server may have been started with other flags than this command.
    rows = {row["name"]: row["value"] for row in client.ask("settings")["settings"]}
    is_on, segment_s = rows["lake.on"] == "true", float(rows["lake.segment_s"])
    settings = settings_of(values).settings
    location = location_of(replace(settings, lake=replace(settings.lake, dir=rows["lake.dir"])))
    return job_history.by_day(location, ident, segment_s if is_on else None)


# As text.


def _live_lines(answer: dict[str, Any]) -> list[str]:
    found = answer["job"]
    lines = [f"job {found['number']}, {found['state']} for {age(found['age_s'])}"]
    lines += [f"not running: {clean(found['why']['text'])}", ""] if found["why"] is not None else [""]
    lines += [f"  {name:10} {clean(times.field(name, found[name]))}" for name in _PLAIN if found[name] is not None]
    lines += [f"  {name:10} {clean(', '.join(found[name]))}" for name in _LISTS if found[name]]
    lines += [f"  {'replay of':10} {clean(found['replayed_from'])}"] if found["replayed_from"] else []
    texts = [(name, found[name]) for name in ("payload", "custom") if found.get(name) is not None]
    lines += [f"  {name:10} {clean(bytes(text).decode())}" for name, text in texts]
    if answer["same_jid"]:
        lines.append(f"  {'older':10} {', '.join(map(str, answer['same_jid']))}, with the same jid")
    for name in _NESTED:
        if found[name] is not None:
            lines += ["", *_section(name, found[name])]
    lines += ["", "timeline"]
    for step in found["timeline"]:
        remark = f"  {clean(step['note'])}" if step["note"] else ""
        lines.append(f"  {times.stamp(step['at']):27} {'→' if step['ahead'] else ' '} {step['what']}{remark}")
    return lines


def _section(name: str, members: dict[str, Any]) -> list[str]:
    lines = [name]
    for key, value in members.items():
        if isinstance(value, list):
            lines += [f"  {key}", *(f"    {clean(str(item))}" for item in value)] if value else []
        elif value is not None:
            lines.append(f"  {key:12} {clean(times.field(key, value))}")
    return lines


def _heading(ident: str, answer: dict[str, Any], days: list[_Part]) -> list[str]:
    """The lines before the first event."""
    if days:
        return []
    if answer["job"] is not None:
        return ["", "history"]
    progress = [*_section("progress", answer["progress"]), ""] if answer["progress"] is not None else []
    return [f"job {clean(ident)} is gone from the server", "", *progress, "history"]


def _line(event: _Part) -> str:
    figures = [
        f"attempt {number(event['attempt'])}" if event.get("attempt") else "",
        f"waited {lasting(event['wait_s'])}" if event.get("wait_s") is not None else "",
        f"ran {lasting(event['run_s'])}" if event.get("run_s") is not None else "",
        history_note(event),
    ]
    return f"  {times.stamp(event['at']):27}   {event['event']}  {clean(', '.join(filter(None, figures)))}".rstrip()


def _extent(last: _Part) -> str:
    """How far the search went."""
    back = f" back to {last['looked_back_to']}" if last["looked_back_to"] else ""
    searched = f"searched {some(last['days'], 'day')}{back} in {lasting(last['seconds'])}"
    return f"{searched}, ended at: {last['stopped_at']}; the lake has events up to {times.stamp(last['upto'])}"
