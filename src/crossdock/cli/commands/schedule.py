"""`crossdock schedule`: cron entries of the settings file, schedules of apps, Resqu plans and qless recurring jobs."""

from typing import Any, Final

import click

from crossdock.cli import completion
from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import NothingDone, print_json
from crossdock.cli.parameters import Name, future, json_text
from crossdock.cli.render import times
from crossdock.cli.render.tables import age, clean, columns, cut
from crossdock.protocols.admin.filter_language import read_span

_SOURCES: Final = ("settings", "app", "resqu", "qless")

_name = click.argument("name", type=Name(), metavar="NAME", shell_complete=completion.schedules)
_source = click.option(
    "--source", type=click.Choice(_SOURCES), help="Where it is defined, if several schedules have this name."
)

_LIST_EXAMPLES = """\b
Examples:
  crossdock schedule list
  crossdock schedule list --source resqu --source-id shop
  crossdock schedule list --json
"""


@click.command("list", cls=AdminCommand, epilog=_LIST_EXAMPLES)
@click.option("--source", type=click.Choice(_SOURCES), help="Only schedules of this source.")
@click.option("--source-id", type=Name(), metavar="ID", help="Only Resqu plans of this sourceId.")
def list_schedules(source: str | None, source_id: str | None, as_json: bool, **values: Any) -> None:
    """List the schedules with their next run.

    SOURCE is where a schedule is defined: "settings" is the settings file (cron entries), "app" is the code of an app
    (its name is APP:NAME), "resqu" are plans, "qless" are recurring jobs. The job of a qless schedule is pushed when
    its time has come and a worker asks its queue.
    """
    with server(values) as client:
        rows = list(client.rows("schedules", source=source, source_id=source_id))
    if as_json:
        print_json({"schedules": rows})
        return
    heads = ("NAME", "SOURCE", "SCHEDULE", "ZONE", "NEXT", ">IN", "QUEUE", "KIND")
    click.echo(columns(heads, [_cells(row) for row in rows]))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    when = (_when(row), row["zone"] or "-", times.stamp(row["next"]) if row["next"] else "never", age(row["next_s"]))
    return (cut(row["name"], 36), row["source"], *when, row["queue"], row["kind"])


def _when(row: dict[str, Any]) -> str:
    return str(row["schedule"] or f"every {age(row['interval_s'])}")


_SHOW_EXAMPLES = """\b
Examples:
  crossdock schedule show nightly
  crossdock schedule show sweep --source qless --json
"""


@click.command("show", cls=AdminCommand, epilog=_SHOW_EXAMPLES)
@_name
@_source
def show(name: str, source: str | None, as_json: bool, **values: Any) -> None:
    """Show one schedule with its job."""
    with server(values) as client:
        answer = client.ask("schedule", name=name, source=source)
    _print(answer, as_json)


def _print(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    found = answer["schedule"]
    lines = [f"schedule {clean(found['name'])}, {_when(found)}", ""]
    for key, value in found.items():
        if key not in ("name", "schedule", "interval_s", "next_s", "payload_bytes") and value not in (None, []):
            text = ", ".join(value) if isinstance(value, list) else times.field(key, value)
            lines.append(f"  {key:13} {clean(text)}")
    click.echo("\n".join(lines))


#: Flags of `add` and `edit`. The member of the request has the flag's name.
_FIELDS: Final = (
    click.Option(["--every"], metavar="SPAN|INTERVAL", help="45s, 10m, 2h, 7d; Resqu: also P1M, P1Y2M3DT4H5M6S."),
    click.Option(["--kind"], type=Name(), metavar="KIND", help="Kind of the job (qless klass, Resqu class)."),
    click.Option(["--payload"], metavar="JSON", help="Payload of the job. Resqu: an object or array."),
    click.Option(["--start"], metavar="TIME|SPAN", help="First run: 2026-12-01T03:00:00Z, or 10m from now."),
    click.Option(
        ["--queue"], type=Name(), metavar="QUEUE", help="qless: queue of the job.", shell_complete=completion.queues
    ),
    click.Option(["--priority"], type=float, metavar="N", help="qless: higher first. [0]"),
    click.Option(["--retries"], type=click.IntRange(0), metavar="N", help="qless: retries of each job. [5]"),
    click.Option(["--backlog"], type=click.IntRange(0), metavar="N", help="qless: missed runs to make up; 0: all. [0]"),
    click.Option(["--tag", "tags"], type=Name(), multiple=True, metavar="TAG", help="qless: a tag. May be repeated."),
    click.Option(["--job-name"], type=Name(), metavar="NAME", help="Resqu: chooses the pool. [the kind]"),
    click.Option(["--uid"], type=Name(), metavar="UID", help="Resqu: unique ID; one such job at a time."),
    click.Option(["--deferrable-by"], type=int, metavar="SECONDS", help="Resqu, with --uid: one more job may wait."),
)


def _fields(values: dict[str, Any]) -> dict[str, Any]:
    """The members of a request, taken out of `values`."""
    found = {str(option.name): values.pop(str(option.name)) for option in _FIELDS}
    every, payload, start = found["every"], found["payload"], found["start"]
    if every is not None:
        seconds = read_span(every)
        found["every"] = every if seconds is None else seconds
    found["payload"] = None if payload is None else json_text("--payload", payload, "")
    found["start"] = None if start is None else future("--start", start)
    found["tags"] = list(found["tags"]) or None
    return found


_ADD_EXAMPLES = """\b
Examples:
  crossdock schedule add sweep --queue chores --kind app.Sweep --every 5m
  crossdock schedule add report --queue mail --kind Report --every 1h --start 5m --payload '[1]' --tag nightly
  crossdock schedule add shop_invoices --via resqu --every P1M --kind 'Jobs\\Invoices' --start 2026-12-01T03:00:00Z
  crossdock schedule add shop_poll --via resqu --every 10m --kind 'Jobs\\Poll' --uid poll --deferrable-by 30
"""


@click.command("add", cls=AdminCommand, epilog=_ADD_EXAMPLES)
@click.argument("name", type=Name(), metavar="NAME")
@click.option("--via", type=click.Choice(["qless", "resqu"]), default="qless", help="Kind of schedule. [qless]")
def add(name: str, via: str, as_json: bool, **values: Any) -> None:
    """Add a schedule.

    A qless schedule needs --queue, --kind and --every. A Resqu plan needs --kind and --every; its NAME is the source's
    ID, an underscore, and an ID. Its first run is at --start, or as many intervals later as it takes to be in the
    future. Cron entries are defined in the settings file.
    """
    fields = _fields(values)
    with server(values) as client:
        answer = client.ask("schedule-add", name=name, source=via, **fields)
    _print(answer, as_json)


_EDIT_EXAMPLES = """\b
Examples:
  crossdock schedule edit sweep --every 10m --priority 3
  crossdock schedule edit sweep --payload '{"deep": true}' --tag nightly --tag slow
  crossdock schedule edit sweep --no-tags
"""


@click.command("edit", cls=AdminCommand, epilog=_EDIT_EXAMPLES)
@_name
@_source
@click.option("--no-tags", is_flag=True, help="qless: remove all tags.")
def edit(name: str, source: str | None, no_tags: bool, as_json: bool, **values: Any) -> None:
    """Change a schedule.

    What is not given stays as it is. Jobs already pushed are not changed. Another interval of a qless schedule counts
    from its last run, of a Resqu plan from now. A schedule of the settings file or of an app is changed there.
    """
    fields = _fields(values)
    if no_tags and fields["tags"]:
        raise click.UsageError("give either --tag or --no-tags")
    if no_tags:
        fields["tags"] = []
    with server(values) as client:
        answer = client.ask("schedule-edit", name=name, source=source, **fields)
    _print(answer, as_json)


for _command in (add, edit):
    _command.params = [*_command.params[:1], *_FIELDS, *_command.params[1:]]

_REMOVE_EXAMPLES = """\b
Examples:
  crossdock schedule remove sweep
  crossdock schedule remove shop_invoices shop_poll
"""


@click.command("remove", cls=AdminCommand, epilog=_REMOVE_EXAMPLES)
@click.argument("names", type=Name(), nargs=-1, required=True, metavar="NAME...", shell_complete=completion.schedules)
@_source
def remove(names: tuple[str, ...], source: str | None, as_json: bool, **values: Any) -> None:
    """Remove schedules.

    Jobs already pushed stay. A schedule of the settings file is removed there. A schedule of an app comes back when the
    app sets its schedules again.
    """
    with server(values) as client:
        answer = client.ask("schedule-remove", names=names, source=source)
    if as_json:
        print_json(answer)
    else:
        for each in answer["done"]:
            click.echo(f"removed {clean(each)}")
    wrong = [f"schedule {clean(each)} not found; crossdock schedule list shows all" for each in answer["unknown"]]
    wrong += [clean(each["why"]) for each in answer["refused"]]
    if wrong:
        raise NothingDone("; ".join(wrong))


_RUN_EXAMPLES = """\b
Examples:
  crossdock schedule run nightly
  crossdock schedule run sweep --source qless --json
"""


@click.command("run", cls=AdminCommand, epilog=_RUN_EXAMPLES)
@_name
@_source
def run(name: str, source: str | None, as_json: bool, **values: Any) -> None:
    """Push the job of a schedule once, now.

    The next run of the schedule stays as it is. Prints the jid of the job.
    """
    with server(values) as client:
        answer = client.ask("schedule-run", name=name, source=source)
    if as_json:
        print_json(answer)
    else:
        click.echo(clean(answer["jid"]))
