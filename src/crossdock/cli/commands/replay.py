"""`crossdock job replay`: pushes jobs of the past again."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from crossdock.cli import completion
from crossdock.cli.commands.pipeline import session
from crossdock.cli.options import AdminCommand, settings_of
from crossdock.cli.output import NothingDone, agreed, meter, note, print_json
from crossdock.cli.parameters import Name, PastTime
from crossdock.cli.protocol_clients import loader, redis
from crossdock.cli.render.tables import clean, some
from crossdock.client.base import ClientError, Refused
from crossdock.client.bulk import Loader, Told, calls
from crossdock.lake.manifest import expect
from crossdock.lake.query import LEASE_AT_MOST, OUTCOMES, RETRIES, RETRIES_AT_MOST, Filter, Past, choose, has, jobs
from crossdock.pipeline.errors import in_words
from crossdock.protocols.timestamps import stamp
from crossdock.server.lake_keeper import folder_of

_EXAMPLES = """\b
Examples:
  crossdock job replay --queue mail --outcome dead --since 2d
  crossdock job replay --kind invoice --since 2026-11-01T00:00:00Z --until 2026-11-02T00:00:00Z --to invoices-again
  crossdock job replay --group TimeoutError --outcome failed --since 1d --id outage-17 --yes
  crossdock job replay --kind invoice --since 90d --master spark://head:7077 --listen redis=10.0.0.5:7379
"""

_SAMPLE: Final = 5
_CALL: Final = 500  #: jobs
_LOOK_S: Final = 0.5


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
@click.option("--dry", is_flag=True, help="Only count the jobs and show some.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--listen", multiple=True, metavar="redis=ADDRESS", help="Address of the Redis listener.")
@click.option("--master", default="", metavar="URL", help="Choose and push with Spark: local[N], spark://…, sc://….")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting. May be repeated.")
def replay(run: str | None, to_queue: str | None, dry: bool, yes: bool, as_json: bool, **values: Any) -> None:
    """Choose jobs from the lake's history and push them again, each exactly once.

    The command prints the number of jobs, shows some, and asks for confirmation. The jid of a new job is a hash of the
    replay's id and the old job; `replay of` in crossdock job show names the old job. An interrupted replay continues
    when it is started again with the same --id and filters; a complete one does nothing more. --since and --until are
    about the event that --outcome names: pushed, succeeded, failed (one try), lost (a lease that expired), dead (its
    last try), removed.

    One process does the work, page by page. For a long history --master runs it on a Spark cluster. Its executors must
    see the lake under the same path, and reach the Redis listener at the address that --listen names.
    """
    given = {name: values.pop(name) for name in Filter._fields}
    which = Filter(**{name: value for name, value in given.items() if value is not None})
    if which == Filter():
        raise click.UsageError("choose jobs: --queue, --kind, --outcome, --group, --tag, --jid, --since or --until")
    run = run or f"replay-{datetime.now(UTC):%Y%m%dT%H%M%S}-{sha256(repr(which).encode()).hexdigest()[:8]}"
    spark = {name: values.pop(name) for name in ("master", "conf")}
    settings = settings_of(values).settings
    folder = folder_of(settings)
    expect(folder, settings.server.data)
    with _by_spark(folder, which, spark, values) if spark["master"] else _by_hand(folder, which) as found:
        _show(found)
        if found.at and not found.many + found.unknown + found.bare:
            _expect(folder, which)
        if not found.many or dry:
            _tell(as_json, {"matched": found.many, "id": run if found.many else None, "new": 0, "known": 0})
            return
        with loader(values, run) as door:
            before = door.loaded()
            if before.state in ("closed", "lapsed"):
                raise NothingDone(_ended(before, clean(run)))
            if not yes and not agreed(f"push {'it' if found.many == 1 else 'them'} again, as replay {clean(run)}?"):
                raise NothingDone("nothing was changed")
            told = _send(door, found, run, to_queue or "")
    _tell(as_json, {"matched": found.many, "id": run, "new": told.total_new, "known": told.total_known})


def _expect(folder: Path, which: Filter) -> None:
    """Raises Refused if nothing was found because history has no such name."""
    for thing, column, value in (("queue", "queue", which.queue), ("failure group", "error_group", which.group)):
        if value and not has(folder, column, value):
            raise Refused(f"there is no {thing} {clean(value)} in the lake's history")


def _ended(before: Told, run: str) -> str:
    pushed = some(before.total_new, "job")
    if before.state == "closed":
        return f"replay {run} is complete: it pushed {pushed} before"
    return (
        f"replay {run} pushed {pushed} and was then left alone for a week; which they are is in history alone "
        "(replayed_from): choose the others under another --id"
    )


class Found(NamedTuple):
    """What was chosen, and how it is sent: the last argument is called with how many jobs more were."""

    at: float
    many: int
    unknown: int
    bare: int
    named: list[str]  #: some of those
    sample: list[Past]
    send: Callable[[Loader, str, str, Callable[[int], None]], None]


@contextmanager
def _by_hand(folder: Path, which: Filter) -> Iterator[Found]:
    """In this process, which needs nothing but the lake."""
    with meter() as progress:
        chosen = choose(folder, which, progress)

    def send(door: Loader, run: str, to_queue: str, more: Callable[[int], None]) -> None:
        begin = f"{run}\0{chosen.lake}\0"
        for count, call in calls((_row(past, begin, to_queue) for past in jobs(chosen)), _CALL):
            door.put(call)
            more(count)

    first = list(jobs(chosen, _SAMPLE))
    yield Found(chosen.at, len(chosen.numbers), chosen.unknown, chosen.bare, chosen.named, first, send)


@contextmanager
def _by_spark(folder: Path, which: Filter, spark_options: dict[str, Any], values: dict[str, Any]) -> Iterator[Found]:
    """The same choice, made and sent by executors."""
    with ExitStack() as stack:
        stack.enter_context(in_words("Spark failed; start it again with the same --id to go on"))
        with meter() as progress:
            spark = session(spark_options, progress)
            stack.callback(spark.stop)
            from crossdock.pipeline import replay as by_spark

            progress("choosing", 0, 1)
            found = stack.enter_context(by_spark.find(spark, folder.absolute(), which, _SAMPLE))

        def send(door: Loader, run: str, to_queue: str, more: Callable[[int], None]) -> None:
            with _watched(door, more):
                by_spark.send(spark, by_spark.frame(found, run, to_queue), redis(values), run)

        yield Found(found.at, found.good, found.unknown, found.bare, found.named, found.sample, send)


@contextmanager
def _watched(door: Loader, more: Callable[[int], None]) -> Iterator[None]:
    """While others send, the server is asked how far they are."""
    over = threading.Event()

    def look() -> None:
        seen = 0
        while not over.wait(_LOOK_S):
            now = door.loaded().total_new
            more(now - seen)
            seen = now

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield
        finally:
            over.set()
        looking.result()


def _show(chosen: Found) -> None:
    newest = f", by history up to {stamp(chosen.at)}" if chosen.at else ": there is no history yet"
    note(f"{some(chosen.many, 'job')} to replay{newest}")
    for past in chosen.sample:
        payload = (past.payload or b"").decode("utf-8", "replace")
        note(f"  {clean(past.jid)}  {clean(past.queue)}  {clean(past.kind)}  {clean(payload[:80])}")
    if chosen.many > _SAMPLE:
        note("  …")
    if chosen.unknown:
        note(f"left out: {some(chosen.unknown, 'job')} pushed before the lake's history begins")
    if chosen.bare:
        names = ", ".join(clean(jid) for jid in chosen.named) + (", …" if chosen.bare > len(chosen.named) else "")
        note(
            f"left out: {some(chosen.bare, 'job')} whose last payload the lake does not have (lake.payloads, "
            f"lake.redact): {names}"
        )


def _send(door: Loader, found: Found, run: str, to_queue: str) -> Told:
    """Totals are the server's."""
    sent = 0

    def update(jobs: int) -> None:
        nonlocal sent
        sent += jobs
        bar.update(jobs)

    try:
        with click.progressbar(
            length=found.many, label="replay", file=sys.stderr, hidden=not sys.stderr.isatty(), show_pos=True
        ) as bar:
            found.send(door, run, to_queue, update)
            return door.finish()
    except (ClientError, KeyboardInterrupt) as error:
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        raise NothingDone(
            f"{why}; at least {sent:,} of {some(found.many, 'job')} were pushed. Start it again with --id {clean(run)} "
            "and the same filters to go on: each job goes in once"
        ) from None


def _row(past: Past, begin: str, to_queue: str) -> tuple[Any, ...]:
    """A job of a load (docs/reference/redis.md), with the tries and the time its first one was given."""
    jid = sha256(f"{begin}{past.number}\0{past.jid}".encode()).hexdigest()[:32]
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
