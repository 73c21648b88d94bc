"""`crossdock job`: list, retry, kill, move, delete, release, tag and track jobs; and `crossdock tag list`."""

from typing import Any, Final

import click

from crossdock.cli import completion
from crossdock.cli.actions import JobAction, NamedAction, job_action, named_action
from crossdock.cli.filters import FilterCommand, chosen, expect, flags
from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import note, print_json
from crossdock.cli.parameters import Name
from crossdock.cli.render import times
from crossdock.cli.render.tables import age, clean, columns, cut, number, some
from crossdock.client.admin import AdminClient
from crossdock.protocols.admin.filter_language import STATES

#: The server's limit of a page.
_PAGE: Final = 200

_IDS: Final = "An ID is a job's number or its jid. A FILTER is a word of the filter language (see job list)."
_ID: Final = "An ID is a job's number or its jid."
_BY_FILTER: Final = """With filters the command first counts the matching jobs and asks for confirmation. It then acts
on the counted jobs only."""

_LIST_EXAMPLES = """\b
Examples:
  crossdock job list
  crossdock job list state:dead kind:invoice error:"timed out"
  crossdock job list queue:mail -state:dead,failed older:10m --count
  crossdock job list --state ready --queue mail
  crossdock job list --tag customer-42
  crossdock job list --failure 'Time*'
  crossdock job list --tracked
  crossdock job list --state retrying --limit 1000 --json
"""


@click.command("list", cls=FilterCommand, epilog=_LIST_EXAMPLES)
@click.argument("words", type=Name(), nargs=-1, metavar="[FILTER]...", shell_complete=completion.words)
@flags(*STATES)
@click.option("--tracked", is_flag=True, help="Only tracked jobs (see job track).")
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=50, metavar="N", help="Rows to show. [50]")
@click.option("--after", metavar="CURSOR", help="Continue after the page that printed this cursor.")
@click.option("--count", is_flag=True, help="Print only the number of jobs.")
def list_jobs(
    words: tuple[str, ...],
    as_json: bool,
    tracked: bool,
    limit: int,
    after: str | None,
    count: bool,
    **values: Any,
) -> None:
    """List jobs, all of them or those that match a filter.

    FILTER is a word such as state:dead, queue:mail, kind:welcome, tag:vip, id:4711, group:Timeout, error:text,
    payload:text, protocol:qless, worker:NAME, older:2h, newer:10m, since:2026-11-18T10:00 or until:2d. Jobs must match
    every word. A comma separates alternatives, * at the end matches by prefix, and - in front negates. A word without a
    field searches jid, kind, queue and error. The flags are short for some of these words.

    Order: leased jobs first, then ready jobs queue by queue in the order they will be leased, then the other states by
    due time. With --tag jobs come in the order they were tagged, with --failure the newest comes first. FOR is how long
    a job has been in its state.

    With --tracked the list shows when tracking began. Without other filters it includes tracked jobs that no longer
    exist, as "gone".
    """
    if tracked and (count or after is not None):
        raise click.UsageError("--tracked lists all tracked jobs at once; leave out --count and --after")
    filters = chosen(values, words)
    with server(values) as client:
        if tracked:
            _print_tracked(list(client.rows("tracked", **filters))[:limit], as_json)
            return
        if count:
            _print_count(client, filters, as_json)
            return
        rows, after = _page(client, limit, after, filters)
    if as_json:
        print_json({"jobs": rows, "after": after})
        return
    heads = (">NUMBER", "JID", "QUEUE", "KIND", "STATE", ">FOR", ">TRIES", "WHAT")
    click.echo(columns(heads, [_cells(row) for row in rows]))
    if after is not None:
        note(f"there are more jobs; for the next page add --after {after}")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """The last column is the worker, the due time, the error or the payload, whichever the state calls for."""
    if row["state"] == "leased":
        what = f"by {row['worker'] or 'a nameless worker'}"
    elif row["state"] == "scheduled":
        what = f"due {times.stamp(row['due'])}"
    else:
        what = str(row["error"] or row["payload"])
    head = (str(row["number"]), cut(row["jid"], 36), row["queue"], row["kind"], row["state"])
    return (*head, age(row["age_s"]), number(row["attempts"]), cut(what, 60))


def _page(
    client: AdminClient, limit: int, after: str | None, filters: dict[str, Any]
) -> tuple[list[dict[str, Any]], str | None]:
    """Up to `limit` rows, in as many requests as needed: the server looks at a bounded number of jobs in each."""
    rows: list[dict[str, Any]] = []
    first: dict[str, Any] | None = None
    while True:
        page = client.ask("jobs", limit=min(_PAGE, limit - len(rows)), after=after, **filters)
        first = page if first is None else first
        rows += page["jobs"]
        after = page["after"]
        if after is None or len(rows) == limit:
            expect(len(rows), first, filters)
            return rows, after


def _print_count(client: AdminClient, filters: dict[str, Any], as_json: bool) -> None:
    steps = list(client.steps("count", **filters))
    counted = sum(step["count"] for step in steps)
    expect(counted, steps[0], filters)
    if as_json:
        print_json({"count": counted})
    else:
        click.echo(some(counted, "job"))


def _print_tracked(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json({"tracked": rows})
        return
    heads = ("JID", "TRACKED SINCE", "STATE", ">FOR", ">NUMBER", "QUEUE", "KIND")
    click.echo(columns(heads, [_tracked_cells(row) for row in rows]))


def _tracked_cells(row: dict[str, Any]) -> tuple[str, ...]:
    head = (cut(row["jid"], 36), times.stamp(row["since"]))
    job = row["job"]
    if job is None:
        return (*head, "gone", "-", "-", "-", "-")
    return (*head, job["state"], age(job["age_s"]), str(job["number"]), job["queue"], job["kind"])


def _to(text: str, *, required: bool = False) -> click.Option:
    return click.Option(
        ["--to"], required=required, type=Name(), metavar="QUEUE", help=text, shell_complete=completion.queues
    )


retry = job_action(
    JobAction(
        "retry",
        "retried",
        ("retrying", "failed", "dead", "scheduled"),
        f"""Make failed, dead and retrying jobs ready now, by ID or filter.

Scheduled jobs are included only with --state scheduled, or by ID. Retrying, scheduled and dead jobs keep their count of
failures. Failed jobs start over with all their tries. With --to QUEUE failed and dead jobs start over with all their
tries in that queue; no other state is included then.

{_IDS} {_BY_FILTER}
""",
        """\b
Examples:
  crossdock job retry 4711
  crossdock job retry state:dead kind:invoice error:"timed out"
  crossdock job retry --failure 'Time*' --to slow --yes
  crossdock job retry --queue mail --older-than 1h --yes
""",
        (_to("Start failed and dead jobs over in this queue. [each stays in its own]"),),
    )
)

kill = job_action(
    JobAction(
        "kill",
        "killed",
        ("ready", "retrying", "scheduled", "blocked", "held"),
        f"""Move waiting jobs to the dead jobs, by ID or filter.

All waiting jobs can be killed: ready, scheduled, retrying, blocked by other jobs, held by a throttle or a batch.
Masenko jobs that depend on a killed job fail with it. Dead jobs are kept for 180 days; job retry makes them
ready again.

{_IDS} {_BY_FILTER}
""",
        """\b
Examples:
  crossdock job kill 4711
  crossdock job kill --state retrying --kind invoice
  crossdock job kill --queue mail --yes
  crossdock job kill --state blocked --older-than 7d
""",
    )
)

move = job_action(
    JobAction(
        "move",
        "moved",
        ("ready", "retrying", "scheduled", "blocked", "held"),
        f"""Move waiting jobs to another queue, by ID or filter.

A job keeps its state, its position by priority and age, its tries and its dependencies. Held jobs leave their batch and
become ready. Leased jobs are not moved. Failed and dead jobs are not moved: job retry --to brings them to a queue.

{_IDS} {_BY_FILTER}
""",
        """\b
Examples:
  crossdock job move --queue old --to new
  crossdock job move --queue mail --kind invoice --older-than 1h --to slow --yes
  crossdock job move 4711 4712 --to urgent
""",
        (_to("The queue to move the jobs to.", required=True),),
    )
)

delete = job_action(
    JobAction(
        "delete",
        "deleted",
        ("ready", "retrying", "scheduled", "dead", "blocked", "held", "failed", "leased", "complete"),
        f"""Delete jobs, by ID or filter.

Leased and complete jobs are included only with --state, or by ID. Deleting a leased job does not stop its worker; the
worker's result is ignored.

{_IDS} {_BY_FILTER}
""",
        """\b
Examples:
  crossdock job delete 4711
  crossdock job delete --state dead --older-than 30d
  crossdock job delete --state ready --queue mail --yes
""",
    )
)

cancel = job_action(
    JobAction(
        "cancel",
        "canceled",
        ("ready", "retrying", "scheduled", "blocked", "held", "leased"),
        f"""Remove waiting and leased jobs, by ID or filter.

The worker of a leased job is not stopped; its result is ignored, as after a lost lease. Ended jobs are not included:
job delete removes them.

{_IDS} {_BY_FILTER}
""",
        """\b
Examples:
  crossdock job cancel 4711
  crossdock job cancel queue:mail kind:newsletter
  crossdock job cancel worker:w-17 --yes
""",
    )
)

release = job_action(
    JobAction(
        "release",
        "released",
        ("leased",),
        f"""End the leases of workers that are gone, by ID or filter.

A released lease counts as expired: by the rules of its protocol the job is ready again, waits for a retry, or has
failed. A later result of the old worker is ignored. Jobs of a connected worker are refused: those of a Faktory worker
are released with --force, those of a Masenko worker end with its connection.

{_IDS} {_BY_FILTER}
""",
        """\b
Examples:
  crossdock job list --state leased                jobs and their workers
  crossdock job release 4711
  crossdock job release --queue mail --older-than 1h
  crossdock job release 4711 --force               although its worker is connected
""",
        (click.Option(["--force"], is_flag=True, help="Include jobs of connected Faktory workers."),),
    )
)


def _retag(do: str, text: str, examples: str) -> click.Command:
    """`job tag` and `job untag`."""

    @click.command(do, cls=AdminCommand, help=text, epilog=examples)
    @click.argument("ident", type=Name(), metavar="ID", shell_complete=completion.jobs)
    @click.argument("texts", type=Name(), nargs=-1, required=True, metavar="TAG...", shell_complete=completion.tags)
    def command(ident: str, texts: tuple[str, ...], as_json: bool, **values: Any) -> None:
        with server(values) as client:
            answer = client.ask(do, id=ident, tags=texts)
        if as_json:
            print_json(answer)
        else:
            shown = clean(", ".join(answer["tags"])) or "no tags"
            click.echo(f"job {answer['number']}: {shown}")

    return command


tag = _retag(
    "tag",
    f"""Add tags to a job and print all its tags.

Jobs of every protocol can have tags; job list --tag finds them. {_ID}
""",
    """\b
Examples:
  crossdock job tag 4711 urgent
  crossdock job tag 4711 urgent customer-42 --json
""",
)

untag = _retag(
    "untag",
    f"""Remove tags from a job and print the tags it has left.

A tag that the job does not have is ignored. {_ID}
""",
    """\b
Examples:
  crossdock job untag 4711 urgent
  crossdock job untag 4711 urgent customer-42 --json
""",
)

track = named_action(
    NamedAction(
        "track",
        "tracking",
        "job",
        f"""Track jobs: publish their changes on the Redis listener.

Events are published as qless publishes them: ql:popped, ql:completed, ql:failed and so on. Jobs of every protocol can
be tracked. job list --tracked shows them, also after they are gone. {_ID}
""",
        """\b
Examples:
  crossdock job track 4711
  crossdock job track 2c1d8c4e-0d52-4f0c-9d0a-8f1c8b3f9a11 --json
""",
        "job list",
        completion.jobs,
        member="ids",
        has_all=False,
    )
)

untrack = named_action(
    NamedAction(
        "untrack",
        "untracked",
        "job",
        f"""Stop tracking jobs.

{_ID} Of a job that is gone it is the jid.
""",
        """\b
Examples:
  crossdock job untrack 4711
  crossdock job untrack --all
""",
        "job list --tracked",
        completion.jobs,
        member="ids",
    )
)

_TAG_LIST_EXAMPLES = """\b
Examples:
  crossdock tag list
  crossdock tag list --top 10
  crossdock job list --tag urgent                  the jobs of one tag
  crossdock tag list --json
"""


@click.command("list", cls=AdminCommand, epilog=_TAG_LIST_EXAMPLES)
@click.option("--top", type=click.IntRange(1, 200), metavar="N", help="Only the N tags with the most jobs.")
def list_tags(top: int | None, as_json: bool, **values: Any) -> None:
    """List the tags with the number of their jobs."""
    with server(values) as client:
        rows = list(client.rows("tags")) if top is None else client.ask("tags", by="jobs", limit=top)["tags"]
    if as_json:
        print_json({"tags": rows})
        return
    click.echo(columns(("TAG", ">JOBS"), [(cut(row["tag"], 80), number(row["jobs"])) for row in rows]))
