"""`crossdock job replay`: push jobs from the history again."""

import sys
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import click

from crossdock.cli import completion
from crossdock.cli.options import AdminCommand, settings_of
from crossdock.cli.output import NothingDone, agreed, meter, note, print_json
from crossdock.cli.parameters import Name, PastTime
from crossdock.cli.protocol_clients import loader
from crossdock.cli.render import times
from crossdock.cli.render.tables import clean, some
from crossdock.client.admin import AdminClient
from crossdock.client.bulk import Loader, LoadProgress, calls
from crossdock.client.errors import ClientError, NoServer, Refused
from crossdock.lake.job_outcomes import LeftOut
from crossdock.lake.query import (
    LEASE_AT_MOST,
    OUTCOMES,
    RETRIES,
    RETRIES_AT_MOST,
    Chosen,
    Filter,
    Past,
    choose,
    has,
    jobs,
    mark,
)
from crossdock.lake.table import expect
from crossdock.protocols.timestamps import stamp
from crossdock.server.lake_keeper import location_of

_EXAMPLES = """\b
Examples:
  crossdock job replay --queue mail --outcome dead --since 2d
  crossdock job replay --kind invoice --since 2026-11-01T00:00:00Z --until 2026-11-02T00:00:00Z --to invoices-again
  crossdock job replay --group TimeoutError --outcome failed --since 1d --id outage-17 --yes
  crossdock job replay --queue mail --outcome failed --since 1d --include succeeded --to mail-test
"""

_SAMPLE: Final = 5
_CALL: Final = 500  #: jobs


@click.command("replay", cls=AdminCommand, epilog=_EXAMPLES)
@click.option("--queue", type=Name(), metavar="QUEUE", help="In this queue.", shell_complete=completion.queues)
@click.option("--kind", type=Name(), metavar="KIND", help="Of this kind (Faktory jobtype).")
@click.option("--outcome", type=click.Choice(list(OUTCOMES)), default="pushed", help="What happened to it. [pushed]")
@click.option("--group", type=Name(), metavar="GROUP", help="Failed with this error type.")
@click.option("--tag", type=Name(), metavar="TAG", help="Pushed with this tag.")
@click.option("--jid", type=Name(), metavar="JID", help="With this jid.")
@click.option("--since", type=PastTime(), metavar="TIME|SPAN", help="Not before: 2026-11-01, or 2d ago.")
@click.option("--until", type=PastTime(), metavar="TIME|SPAN", help="Before this time.")
@click.option("--to", "to_queue", type=Name(), metavar="QUEUE", help="Push them to this queue. [their own]")
@click.option("--id", "run", type=Name(), metavar="ID", help="Name of this replay: under it each job is pushed once.")
@click.option(
    "--include", multiple=True, type=click.Choice(LeftOut._fields), help="Replay these, too. May be repeated. [none]"
)
@click.option("--dry", is_flag=True, help="Only count the jobs and show some.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--listen", multiple=True, metavar="redis=ADDRESS", help="Address of the Redis listener.")
def replay(
    run: str | None,
    to_queue: str | None,
    include: tuple[str, ...],
    dry: bool,
    yes: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Choose jobs from the lake's history and push them again, each exactly once.

    The command prints the number of jobs, shows some, and asks for confirmation. The jid of a new job is a hash of the
    replay's id and the old job; `replay of` in crossdock job show names the old job. An interrupted replay continues
    when it is started again with the same --id and filters; a complete one does nothing more. --since and --until are
    about the event that --outcome names: pushed, succeeded, failed (one try), lost (a lease that expired), dead (its
    last try), removed.

    Some of these jobs are left out, so that no work is done twice. The command prints how many, and why:

    \b
    alive      waiting, leased or retrying: they run anyway
    succeeded  have succeeded after the event
    replayed   were replayed after the event, under another --id
    unclear    have ended after the event; the lake does not have their end yet

    With --outcome pushed or succeeded only jobs that are alive are left out. --include replays such jobs, too. The
    running server says which jobs are alive. If it cannot be asked, the last event in the lake decides.
    """
    given = {name: values.pop(name) for name in Filter._fields}
    which = Filter(**{name: value for name, value in given.items() if value is not None})
    if which == Filter():
        raise click.UsageError("choose jobs: --queue, --kind, --outcome, --group, --tag, --jid, --since or --until")
    run = run or f"replay-{datetime.now(UTC):%Y%m%dT%H%M%S}-{sha256(repr(which).encode()).hexdigest()[:8]}"
    settings = settings_of(values).settings
    folder = location_of(settings)
    expect(folder, settings.server.data)
    with meter() as progress:
        chosen = choose(folder, which, progress, run=run, include=include, ask=partial(_ask, settings.server.data))
    many = len(chosen.numbers)
    _show(chosen)
    if chosen.at and not many + chosen.left_out.total + chosen.unknown + chosen.bare:
        _expect(folder, which)
    told = {
        "matched": many,
        "left_out": chosen.left_out._asdict(),
        "skipped": {"unknown": chosen.unknown, "no_payload": chosen.bare},
    }
    if not many or dry:
        _tell(as_json, told | {"id": run if many else None, "new": 0, "known": 0})
        return
    with loader(values, run) as client:
        before = client.loaded()
        if before.state in ("closed", "lapsed"):
            raise NothingDone(_ended(before, clean(run)))
        if not yes and not agreed(f"push {'it' if many == 1 else 'them'} again, as replay {clean(run)}?"):
            raise NothingDone("nothing was changed")
        outcome = _send(client, chosen, run, to_queue or "")
    _tell(as_json, told | {"id": run, "new": outcome.total_new, "known": outcome.total_known})


def _ask(data: Path, numbers: list[int]) -> list[str | None] | None:
    """The states of jobs, as the server on the data folder says. None: it does not run, or belongs to another user.

    The listener of --listen is not asked: it may be that of another server, where the numbers name other jobs.
    """
    try:
        with AdminClient(data) as client:
            return client.states(numbers)
    except NoServer:
        return None


def _expect(folder: str | Path, which: Filter) -> None:
    """Raises Refused if the history has no such name."""
    for thing, column, value in (("queue", "queue", which.queue), ("failure group", "error_group", which.group)):
        if value and not has(folder, column, value):
            raise Refused(f"{thing} {clean(value)} not found in the lake's history")


def _ended(before: LoadProgress, run: str) -> str:
    pushed = some(before.total_new, "job")
    if before.state == "closed":
        return f"replay {run} is complete: it pushed {pushed} before"
    return (
        f"replay {run} pushed {pushed} and expired after a week without requests. The column replayed_from of "
        "the history names them; replay the others with another --id"
    )


def _show(chosen: Chosen) -> None:
    newest = f", history up to {times.stamp(stamp(chosen.at))}" if chosen.at else "; the lake has no history yet"
    note(f"{some(len(chosen.numbers), 'job')} to replay{newest}")
    for past in jobs(chosen, _SAMPLE):
        payload = (past.payload or b"").decode("utf-8", "replace")
        note(f"  {clean(past.jid)}  {clean(past.queue)}  {clean(past.kind)}  {clean(payload[:80])}")
    if len(chosen.numbers) > _SAMPLE:
        note("  …")
    if chosen.left_out.total:
        note(f"{_left_out(chosen.left_out)} (see --include)")
    if chosen.unknown:
        note(f"skipped: {some(chosen.unknown, 'job')} pushed before the lake's history begins")
    if chosen.bare:
        names = ", ".join(clean(jid) for jid in chosen.named) + (", …" if chosen.bare > len(chosen.named) else "")
        note(
            f"skipped: {some(chosen.bare, 'job')} whose payload is not in the lake (lake.payloads, "
            f"lake.redact): {names}"
        )


def _left_out(jobs: LeftOut) -> str:
    parts = [
        (jobs.succeeded, "has succeeded since", "have succeeded since"),
        (jobs.alive, "is still alive", "are still alive"),
        (jobs.replayed, "was replayed before", "were replayed before"),
        (jobs.unclear, "has ended, which is not in the lake yet", "have ended, which is not in the lake yet"),
    ]
    why = ", ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in parts if count)
    return f"{jobs.total:,} left out: {why}"


def _send(client: Loader, chosen: Chosen, run: str, to_queue: str) -> LoadProgress:
    """Send the jobs and return the server's totals."""
    sent, many = 0, len(chosen.numbers)
    rows = (_row(past, run, chosen.lake, to_queue) for past in jobs(chosen))
    try:
        with click.progressbar(
            length=many, label="replay", file=sys.stderr, hidden=not sys.stderr.isatty(), show_pos=True
        ) as bar:
            for count, call in calls(rows, _CALL):
                client.put(call)
                sent += count
                bar.update(count)
            return client.finish()
    except (ClientError, KeyboardInterrupt) as error:
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        raise NothingDone(
            f"{why}; at least {sent:,} of {some(many, 'job')} were pushed. To continue, run it again with "
            f"--id {clean(run)} and the same filters: each job is pushed once"
        ) from None


def _row(past: Past, run: str, lake: str, to_queue: str) -> tuple[Any, ...]:
    """A job of a bulk load (redis.md), with the retries and lease time of the original."""
    jid = mark(run, lake) + sha256(f"{run}\0{lake}\0{past.number}\0{past.jid}".encode()).hexdigest()[8:32]
    args: str | bytes = past.payload or b"" if past.form == "raw" else (past.payload or b"[]").decode()
    retry = RETRIES if past.retries is None else min(max(past.retries, -1), RETRIES_AT_MOST)
    reserve_for = min(int(past.lease_s or 0), LEASE_AT_MOST)
    custom = past.custom.decode() if past.custom else ""
    priority = past.priority if past.priority % 1 else int(past.priority)
    queue = to_queue or past.queue
    return jid, queue, past.kind, args, priority, None, retry, reserve_for, custom, past.tags, past.jid


def _tell(as_json: bool, done: dict[str, Any]) -> None:
    if as_json:
        print_json(done)
    elif done["new"]:
        again = f", {some(done['known'], 'job')} sent more than once" if done["known"] else ""
        click.echo(f"replayed {some(done['new'], 'job')} as {clean(done['id'])}{again}")
