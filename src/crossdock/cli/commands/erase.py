"""`crossdock lake erase`: erase a person's data from the state, the journal, the lake and the tables."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from crossdock.cli import completion
from crossdock.cli.options import AdminCommand, local_server, settings_of
from crossdock.cli.output import NothingDone, agreed, meter, note, print_json
from crossdock.cli.parameters import Name, PastTime, Seconds
from crossdock.cli.render.tables import clean, size, some
from crossdock.client.admin import AdminClient
from crossdock.client.errors import Refused
from crossdock.journal.data_dir import DATABASE
from crossdock.lake.location import absolute
from crossdock.server.lake_keeper import location_of, options_of

if TYPE_CHECKING:
    from crossdock.lake.erase import Counted
    from crossdock.lake.selection import Chosen, Progress, Which
    from crossdock.lake.table import Lake
    from crossdock.pipeline.catalog import Tables

_EXAMPLES = """\b
Examples:
  crossdock lake erase --jid 2c1d8c4e-0d52-4f0c-9d0a-8f1c8b3f9a11 --dry-run
  crossdock lake erase --jid 2c1d8c4e-0d52-4f0c-9d0a-8f1c8b3f9a11 --jid 7f4ad1e0c2 --yes
  crossdock lake erase --payload-contains anna@example.org
  crossdock lake erase --tag customer-42 --since 2026-01-01 --until 2026-02-01
"""

#: Numbers and jids in one request to the server.
_MANY: Final = 1_000
_LOOK_S: Final = 0.5


class _Live(NamedTuple):
    """Jobs in the server's state."""

    numbers: list[int]
    jids: set[str]
    leased: int


class _Found(NamedTuple):
    lake: "Lake | None"
    chosen: "Chosen"  #: with the numbers of live jobs
    live: _Live
    in_lake: "Counted"
    in_tables: dict[str, int]


class _Places(NamedTuple):
    client: AdminClient | None  #: None: there is no journal
    location: str | Path
    data: Path
    tables: "Tables | None"  #: None: there are none
    wait_s: float
    group: str  #: of users that may read the lake


@click.command("erase", cls=AdminCommand, epilog=_EXAMPLES)
@click.option("--jid", "jids", type=Name(), multiple=True, metavar="JID", help="With this jid. May be repeated.")
@click.option("--queue", type=Name(), metavar="QUEUE", help="Was in this queue.", shell_complete=completion.queues)
@click.option("--kind", type=Name(), metavar="KIND", help="Of this kind (Faktory jobtype).")
@click.option("--since", type=PastTime(), metavar="TIME|SPAN", help="Had an event not before: 2026-11-01, or 2d ago.")
@click.option("--until", type=PastTime(), metavar="TIME|SPAN", help="Had an event before this time.")
@click.option("--tag", type=Name(), metavar="TAG", help="Had this tag.")
@click.option(
    "--payload-contains", "contains", type=Name(), metavar="TEXT",
    help="Had this text in its payload, its custom data, an error or a note.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only count.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--tables", metavar="LOCATION", help="Folder or URL of the tables. Default: `tables` in the data folder.")
@click.option(
    "--wait", type=Seconds(1, 86_400), default=600.0, metavar="SECONDS",
    help="How long to wait for the lake, the journal, or a process that writes the tables. [600]",
)  # fmt: skip
def erase(
    dry_run: bool, yes: bool, as_json: bool, tables: str | None, wait: float, **values: Any
) -> None:  # fmt: skip
    """Erase a person's data from the server's state, its journal, the lake and the tables.

    Jobs are chosen by jid or by filters, which must all match; jobs that replay a chosen job are included. The command
    counts what it found and asks for confirmation. Then it deletes the jobs that are still there, also leased and
    complete ones, removes their entries from the journal and its snapshots, and rewrites the files of the tables and
    the lake that have their rows. Rows stay, so that all counts stay the same, but jids, payloads, custom data, error
    texts, tags and notes are gone. Old files are deleted at once.

    The server must run, since only it can remove entries of its journal. An interrupted erase is run again. Backups and
    copies are not changed: see docs/how-to/erase.md.
    """
    from crossdock.lake.selection import ERASED, Which

    given = {name: values.pop(name) for name in Which._fields}
    which = Which(**{name: value for name, value in given.items() if value is not None})
    if which == Which():
        raise click.UsageError("choose jobs: --jid, --queue, --kind, --since, --until, --tag or --payload-contains")
    if ERASED in which.jids:
        raise click.UsageError(f"erased jobs have the jid {ERASED}; there is nothing left of them to erase")
    settings = settings_of(values).settings
    if which.contains and settings.lake.payloads != "full":
        note(f"lake.payloads is {settings.lake.payloads}: the lake has no payloads in which to look for a text")
    with ExitStack() as stack:
        client = stack.enter_context(local_server(values)) if (settings.server.data / DATABASE).exists() else None
        if client is None:
            note(f"{settings.server.data} has no journal: only the lake and the tables are looked at")
        places = _Places(
            client=client,
            location=location_of(settings),
            data=settings.server.data,
            tables=_tables(tables or settings.server.data / "tables"),
            wait_s=wait,
            group=options_of(settings).group,
        )
        with meter(lines=True) as progress:
            found = _find(places, which, progress)
        _show(found)
        if dry_run:
            _tell(as_json, found, done=False)
            return
        if not yes and not agreed(f"erase {_in_words(found)}?"):
            raise NothingDone("nothing was changed")
        with meter(lines=True) as progress:
            in_lake = _erase(places, found, progress)
    _tell(as_json, found._replace(in_lake=in_lake), done=True)


def _tables(location: str | Path) -> "Tables | None":
    from crossdock.pipeline.catalog import Tables

    found = Tables(absolute(location))
    return found if any(table.open() is not None for table in found) else None


def _find(places: _Places, which: "Which", progress: "Progress") -> _Found:
    """Raises Refused if there is nothing to erase, or a jid is unknown."""
    import pyarrow as pa

    from crossdock.lake import erase as lake_erase
    from crossdock.lake.selection import Chosen, choose
    from crossdock.lake.table import Lake, NoLake

    if places.client is not None:
        _export(places.client, progress, places.wait_s, "nothing was changed")
    lake: Lake | None = None
    chosen = Chosen(pa.array([], pa.int64()), pa.array([], pa.string()), list(which.jids))
    in_lake = lake_erase.Counted(0, 0, 0, 0)
    try:
        lake = Lake.open(places.location)
    except NoLake as error:
        if which.by_filter:
            raise Refused(
                f"{error}. Filters look into the lake: without one use --jid, or crossdock job delete"
            ) from error
    if lake is not None:
        chosen = choose(lake, which, progress)
        in_lake = lake_erase.count(lake, chosen, progress)
    live = _live(places.client, chosen, () if which.by_filter else which.jids)
    numbers = pa.array(sorted({*chosen.numbers.to_pylist(), *live.numbers}), pa.int64())
    wide = pa.array(sorted({*chosen.jids.to_pylist(), *live.jids, *chosen.unknown}), pa.string())
    chosen = chosen._replace(numbers=numbers, jids=wide)
    known, in_tables = set(live.jids), {}
    if places.tables is not None and lake is not None:
        from crossdock.pipeline.erase import count

        counted = count(places.tables, lake, chosen, progress)
        in_tables = counted.rows
        known |= counted.jids
    unknown = [] if which.by_filter else [jid for jid in chosen.unknown if jid not in known]
    if unknown:
        names = ", ".join(clean(jid) for jid in unknown[:10]) + (", …" if len(unknown) > 10 else "")
        raise Refused(f"not found in the state, the lake or the tables: {names}; nothing was changed")
    if not (live.numbers or in_lake.rows or in_tables):
        raise Refused("no job matches; nothing was changed")
    return _Found(lake, chosen, live, in_lake, in_tables)


def _live(client: AdminClient | None, chosen: "Chosen", jids: tuple[str, ...], *, erase: bool = False) -> _Live:
    """The chosen jobs, and the jobs with these jids, that the server still has. `erase`: delete them, and what is
    stored under the chosen jids."""
    found: dict[int, dict[str, Any]] = {}
    if client is not None:
        asked = {"numbers": chosen.numbers.to_pylist(), "jids": list(jids)}
        for what, ids in (asked | ({"forget": chosen.jids.to_pylist()} if erase else {})).items():
            for first in range(0, len(ids), _MANY):
                answer = client.ask("erase", **{what: ids[first : first + _MANY]}, dry_run=not erase)
                found |= {job["number"]: job for job in answer["jobs"]}
    leased = sum(job["leased"] for job in found.values())
    return _Live(list(found), {job["jid"] for job in found.values()}, leased)


def _erase(places: _Places, found: _Found, progress: "Progress") -> "Counted":
    """State and journal first, the lake last: until then the jobs are found again if this is interrupted."""
    from crossdock.lake.erase import Counted, LakeEraser
    from crossdock.lake.file_changes import changing_files
    from crossdock.lake.store import store_of
    from crossdock.lake.table import Lake

    if places.client is not None:
        progress("deleting jobs", 0, 1)
        _live(places.client, found.chosen, (), erase=True)
        _export(places.client, progress, places.wait_s, "the jobs were deleted from the state only; run it again")
        _compact(places.client, progress, places.wait_s)
    if found.lake is None:
        return Counted(0, 0, 0, 0)
    places.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as stack:
        waiting: Callable[[], None] = lambda: progress("waiting for the lake's maintenance", 0, 1)  # noqa: E731
        stack.enter_context(changing_files(places.data, places.wait_s, waiting))
        if places.tables is not None:
            from crossdock.pipeline.erase import erase as erase_tables
            from crossdock.pipeline.lock import writing

            # Until the lake is erased, too: a run in between would bring the data back.
            progress("waiting for the tables", 0, 1)
            stack.enter_context(writing(places.tables.location, places.wait_s))
            erase_tables(places.tables, Lake.open(places.location), found.chosen, progress)
        return LakeEraser(store_of(places.location, places.group), places.data, found.chosen, progress).run()


def _export(client: AdminClient, progress: "Progress", wait_s: float, otherwise: str) -> None:
    """Wait until the lake has all entries that the journal has now."""
    first = client.ask("export")
    for answer in _asked(lambda: client.ask("export"), wait_s):
        if answer["exported"] is None or answer["exported"] >= first["last"]:
            return
        progress("waiting for the lake to have the whole journal", answer["exported"], first["last"])
    lacks = first["last"] - answer["exported"]
    raise NothingDone(
        f"the lake still lacks {some(lacks, 'journal entry')} after {wait_s:.0f} s; {otherwise}. The server's log and "
        "crossdock lake status say why"
    )


def _compact(client: AdminClient, progress: "Progress", wait_s: float) -> None:
    """Wait until the journal and its snapshots no longer have the entries up to now."""
    upto = client.ask("compact")["upto"]
    for answer in _asked(lambda: client.ask("compact", upto=upto), wait_s):
        if answer["done"]:
            return
        progress(f"removing journal entries, waiting for {answer['waits_for']}", 0, 1)
    raise NothingDone(
        f"the jobs were deleted, but the journal still has entries of them after {wait_s:.0f} s: it waits for "
        f"{answer['waits_for']}. The tables and the lake were not changed; run the command again"
    )


def _asked(ask: Callable[[], dict[str, Any]], wait_s: float) -> Iterator[dict[str, Any]]:
    give_up = time.monotonic() + wait_s
    while True:
        yield ask()
        if time.monotonic() > give_up:
            return
        time.sleep(_LOOK_S)


def _in_words(found: _Found) -> str:
    leased = f" ({found.live.leased:,} leased)" if found.live.leased else ""
    parts = [f"{some(len(found.live.numbers), 'job')} of the state{leased}"]
    if found.lake is not None:
        parts.append(f"{some(found.in_lake.rows, 'row')} in {some(found.in_lake.files, 'file')} of the lake")
    if found.in_tables:
        parts.append(f"{some(sum(found.in_tables.values()), 'row')} of the tables")
    return f"{some(len(found.chosen.numbers), 'job')}: {', '.join(parts)}"


def _show(found: _Found) -> None:
    leased = f", {found.live.leased:,} of them leased: their workers are not stopped" if found.live.leased else ""
    note(f"state    {some(len(found.live.numbers), 'job')}{leased}")
    if found.lake is None:
        note("lake     there is none")
    else:
        counted = found.in_lake
        rows = f"{some(counted.rows, 'row')} of {some(len(found.chosen.numbers), 'job')}"
        note(f"lake     {rows} in {some(counted.files, 'file')}, {size(counted.bytes)} to rewrite")
    shown = ", ".join(f"{name} {rows:,}" for name, rows in found.in_tables.items()) or "no rows"
    note(f"tables   {shown}")


def _tell(as_json: bool, found: _Found, *, done: bool) -> None:
    if as_json:
        print_json(
            {
                "erased": done,
                "jobs": len(found.chosen.numbers),
                "state": {"jobs": len(found.live.numbers), "leased": found.live.leased},
                "lake": None if found.lake is None else {"rows": found.in_lake.rows, "files": found.in_lake.files},
                "tables": found.in_tables,
            }
        )
    elif done:
        click.echo(f"erased {_in_words(found)}")
