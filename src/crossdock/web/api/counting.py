"""Counts jobs. The server examines a bounded number of jobs for a request, so a count may take several."""

from typing import Any, Final

from crossdock.web.admin import Admin, ServerUnavailable
from crossdock.web.api import models

#: The server examines 30,000 jobs for a request, so this covers far more jobs than fit into its memory.
_REQUESTS: Final = 10_000


async def count_jobs(admin: Admin, do: str, **fields: Any) -> models.Count:
    """`do` is count, or an action with `dry_run`. Raises Refused or ServerUnavailable."""
    total, after, as_of = 0, None, None
    for _ in range(_REQUESTS):
        found = await admin.ask(do, after=after, as_of=as_of, **fields)
        total, after, as_of = total + found["count"], found["after"], found["as_of"]
        if after is None:
            return models.Count(count=total, as_of=as_of)
    raise ServerUnavailable("there are too many jobs to count")
