"""`crossdock replay`: jobs of the past, once more."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from crossdock.cli.acting import NothingDone, agreed
from crossdock.cli.control import OperatorCommand, print_json, settings_of, tell
from crossdock.cli.doors import loader, redis
from crossdock.cli.filters import Name, span
from crossdock.cli.meter import meter
from crossdock.cli.pipeline import session
from crossdock.cli.show import clean, some
from crossdock.client.base import ClientError, Refused
from crossdock.client.bulk import Loader, Told, calls
from crossdock.lake.manifest import expect
from crossdock.lake.query import LEASE_AT_MOST, OUTCOMES, RETRIES, RETRIES_AT_MOST, Filter, Past, choose, has, jobs
from crossdock.pipeline.errors import in_words
from crossdock.protocols.timestamps import stamp
from crossdock.server.lake_keeper import folder_of

_EXAMPLES = """\b
Examples:
  crossdock replay --queue mail --outcome dead --since 2d
  crossdock replay --kind invoice --since 2026-11-01T00:00:00Z --until 2026-11-02T00:00:00Z --to invoices-again
  crossdock replay --group TimeoutError --outcome failed --since 1d --id outage-17 --yes
  crossdock replay --kind invoice --since 90d --master spark://head:7077 --listen redis=10.0.0.5:7379
"""

_SAMPLE: Final = 5
_CALL: Final = 500  #: jobs
_LOOK_S: Final = 0.5


class Moment(click.ParamType[float]):
    """An instant, or how long ago it was."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if not isinstance(value, str):
            return float(value)
        ago = span(value)
        if ago is not None:
            return time.time() - ago
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time; write 2026-11-01, 2026-11-01T12:00:00Z, or 2h (ago)", param, ctx)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


@click.command("replay", cls=OperatorCommand, epilog=_EXAMPLES)
@click.option("--queue", type=Name(), metavar="QUEUE", help="Of this queue.")
@click.option("--kind", type=Name(), metavar="KIND", help="Of this kind (Faktory jobtype).")
@click.option("--outcome", type=click.Choice(list(OUTCOMES)), default="pushed", help="What happened. [pushed]")
@click.option("--group", type=Name(), metavar="GROUP", help="Failed with this error type.")
@click.option("--tag", type=Name(), metavar="TAG", help="Pushed with this tag.")
@click.option("--jid", type=Name(), metavar="JID", help="Of this name.")
@click.option("--since", type=Moment(), metavar="TIME|SPAN", help="It happened then or later: 2026-11-01, or 2d ago.")
@click.option("--until", type=Moment(), metavar="TIME|SPAN", help="It happened before.")
@click.option("--to", "to_queue", type=Name(), metavar="QUEUE", help="Put them into this queue, not their own.")
@click.option("--id", "run", type=Name(), metavar="ID", help="Names this replay: each job goes in once under it.")
@click.option("--dry", is_flag=True, help="Only count and show them.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--listen", multiple=True, metavar="redis=ADDRESS", help="Where the Redis door is.")
@click.option("--master", default="", metavar="URL", help="Choose and push with Spark: local[N], spark://…, sc://….")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
def replay(run: str | None, to_queue: str | None, dry: bool, yes: bool, as_json: bool, **values: Any) -> None:
    """Choose jobs from the lake's history and push them again, each exactly once.

    Tells how many there are, shows some, and asks. The new jobs are called by a hash of the replay's id and the old
    job, and name the old one (`replayed from` in crossdock job). An interrupted replay goes on when it is started again
    with the same --id and filters; one that is complete does nothing more. --since and --until are about what
    --outcome names: pushed, succeeded, failed (one try), lost (a lease that ran out), dead (its last try), removed.

    One machine does it, page by page. For a long history --master has Spark do the same on a cluster: the lake must be
    seen by its executors under the same path, and the Redis door reached by them at the address that --listen names.
    """
    given = {name: values.pop(name) for name in Filter._fields}
    which = Filter(**{name: value for name, value in given.items() if value is not None})
    if which == Filter():
        raise click.UsageError("say which jobs: --queue, --kind, --outcome, --group, --tag, --jid, --since or --until")
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
    tell(f"{some(chosen.many, 'job')} to replay{newest}")
    for past in chosen.sample:
        payload = (past.payload or b"").decode("utf-8", "replace")
        tell(f"  {clean(past.jid)}  {clean(past.queue)}  {clean(past.kind)}  {clean(payload[:80])}")
    if chosen.many > _SAMPLE:
        tell("  …")
    if chosen.unknown:
        tell(f"left out: {some(chosen.unknown, 'job')} pushed before the lake's history begins")
    if chosen.bare:
        names = ", ".join(clean(jid) for jid in chosen.named) + (", …" if chosen.bare > len(chosen.named) else "")
        tell(
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
