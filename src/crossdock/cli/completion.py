"""Tab completion of names that the running server knows: queues, jobs, workers, schedules, batches, tags, failures.

A completion asks the server for one page within a second. Without a server, or if anything goes wrong, it offers
nothing and prints nothing.
"""

from collections.abc import Callable
from typing import Any, Final

import click

from crossdock.cli.options import settings_of
from crossdock.client.admin import AdminClient
from crossdock.model.errors import CrossdockError
from crossdock.protocols.admin.filter_language import FIELDS, STATES

_TIMEOUT_S: Final = 1.0
_PAGE: Final = 200

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def _names(listing: str, key: str, *, by_name: bool = True, **fields: Any) -> Completer:
    """Completes from a listing of the admin protocol. `by_name`: its cursor is a name, so the page begins there."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        # The last character is left out: a cursor excludes the name that equals it.
        after = incomplete[:-1] if by_name else ""
        try:
            values = {name: ctx.params.get(name) for name in ("data", "config")}
            with AdminClient(settings_of(values).settings.server.data, _TIMEOUT_S) as client:
                rows = client.ask(listing, limit=_PAGE, after=after or None, **fields)[listing]
        except (CrossdockError, OSError, click.ClickException):
            return []
        return [str(row[key]) for row in rows if str(row[key]).startswith(incomplete)]

    return complete


queues: Final = _names("queues", "queue")
jobs: Final = _names("jobs", "jid", by_name=False)
workers: Final = _names("workers", "worker")
batches: Final = _names("batches", "batch")
tags: Final = _names("tags", "tag")
failures: Final = _names("failures", "failure")
schedules: Final = _names("schedules", "name", by_name=False)


def words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Fields of the filter language, and states."""
    known = [f"{field}:" for field in FIELDS] + [f"state:{state}" for state in STATES]
    return [word for word in known if word.startswith(incomplete)]
