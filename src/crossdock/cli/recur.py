"""`crossdock recur`: makes or changes a job that comes again at an interval."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.filters import Name, Span
from crossdock.cli.recurring import shown
from crossdock.cli.values import json_text

_EXAMPLES = """\b
Examples:
  crossdock recur sweep --queue chores --kind app.Sweep --every 5m
  crossdock recur sweep --every 10m --priority 3
  crossdock recur sweep --payload '{"deep": true}' --tag nightly --tag slow
  crossdock recur sweep --no-tags
"""


@click.command("recur", cls=OperatorCommand, epilog=_EXAMPLES)
@click.argument("ident", type=Name(), metavar="ID")
@click.option("--every", type=Span(), metavar="SPAN", help="The interval: 45s, 10m, 2h, 7d.")
@click.option("--queue", type=Name(), metavar="QUEUE", help="Where its jobs go.")
@click.option("--kind", type=Name(), metavar="KIND", help="What its jobs are (qless klass).")
@click.option("--payload", metavar="JSON", help="What its jobs are given. [{}]")
@click.option("--priority", type=float, metavar="N", help="Higher first. [0]")
@click.option("--retries", type=click.IntRange(0), metavar="N", help="How often each of its jobs is tried again. [5]")
@click.option("--backlog", type=click.IntRange(0), metavar="N", help="Make up for so many missed ones; 0: all. [0]")
@click.option("--in", "offset", type=Span(), metavar="SPAN", help="Of a new one: until its first job. [0s]")
@click.option("--tag", "tags", type=Name(), multiple=True, metavar="TAG", help="Its jobs have these alone; repeatable.")
@click.option("--no-tags", is_flag=True, help="Its jobs have no tags.")
def recur(ident: str, as_json: bool, tags: tuple[str, ...], no_tags: bool, **values: Any) -> None:
    """Make or change a recurring job.

    What is not given of one that is there stays as it is. A new one needs --queue, --kind and --every. Another interval
    counts from its last job. The jobs it has made are not touched. It prints what it is now.
    """
    if tags and no_tags:
        raise click.UsageError("give either --tag or --no-tags")
    payload = values.pop("payload")
    fields = {name: values.pop(name) for name in ("queue", "kind", "priority", "retries", "backlog")}
    fields |= {"interval_s": values.pop("every"), "offset_s": values.pop("offset")}
    fields["payload"] = None if payload is None else json_text("--payload", payload, "")
    fields["tags"] = tags or ([] if no_tags else None)
    with server(values) as client:
        answer = client.ask("recur", id=ident, **fields)
    if as_json:
        print_json(answer)
    else:
        click.echo(shown(answer["recurring"]))
