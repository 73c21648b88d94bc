"""Jobs as a worker fetches them, without a server."""

from typing import Any

import msgspec

from crossdock.client.jobs import FetchedJob, NewJob


def fetched(kind: str, *args: Any, **fields: Any) -> FetchedJob:
    """A job with these arguments. `fields` are those of FetchedJob."""
    return FetchedJob(**{"jid": "job-0001", "kind": kind, "args": msgspec.Raw(msgspec.json.encode(args))} | fields)


def as_fetched(job: NewJob, **fields: Any) -> FetchedJob:
    """A pushed job as a worker receives it. Its arguments pass through JSON."""
    custom = {} if job.custom is None else msgspec.json.decode(msgspec.json.encode(job.custom))
    kwargs = {} if job.kwargs is None else {"kwargs": msgspec.json.decode(msgspec.json.encode(job.kwargs))}
    given: dict[str, Any] = {
        "jid": job.jid,
        "kind": job.kind,
        "queue": job.queue,
        "args": msgspec.Raw(msgspec.json.encode(job.args)),
        "custom": custom | kwargs,
        "tags": tuple(job.tags),
        "batch": job.batch,
        "keep_result": job.keep_result_s > 0,
        "retry": job.retries,
    }
    return FetchedJob(**given | fields)
